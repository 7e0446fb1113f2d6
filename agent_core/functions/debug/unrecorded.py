"""Finds what a replay cannot reproduce in a function's text: clock, system randomness, threads, files."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.uses import uses

_KINDS: Final = (
    ("the clock", r"(time\.)?(time|monotonic|perf_counter)(_ns)?$"),
    ("the clock", r".*\b(now|utcnow|today)$|time\.(localtime|gmtime|ctime|strftime)$"),
    ("randomness of the system", r"(os\.)?(urandom|getrandom)$|secrets\.\w+$|(uuid\.)?uuid[14]$"),
    ("randomness of the system", r"(random\.)?SystemRandom$|token_(hex|bytes|urlsafe)$"),
    ("numpy's randomness", r"(np|numpy)\.random\..+$|default_rng$"),
    ("the order of threads", r"(threading\.)?Thread$|.*ThreadPoolExecutor$|asyncio\.to_thread$"),
    ("a file", r"open$|.*\.(read_text|read_bytes|iterdir|glob|rglob|open)$|os\.(listdir|scandir|stat|walk)$"),
    ("the process", r"os\.(getpid|times|cpu_count|getloadavg)$|id$"),
)
_KNOWN: Final = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)


def unrecorded(function: Function, snapshot: Snapshot) -> list[str]:
    """Return each such use with its place; nothing that goes through `self` is among them."""
    text = snapshot.modules[function.module].text
    used_names = uses(function, snapshot) | {function.name}
    callees = [
        callee for name, callee in snapshot.functions.items() if name in used_names and callee.module != function.module
    ]
    places = [(function.path, text, frozenset(used_names))]
    places += [(callee.path, snapshot.modules[callee.module].text, frozenset({callee.name})) for callee in callees]
    calls = [(path, call) for path, body, names in places for call in _unrecorded_calls(body, names)]
    return [f"{kind} ({name}, {path}:{line})" for path, (kind, name, line) in calls]


@lru_cache(maxsize=256)
def _unrecorded_calls(text: str, names: frozenset[str]) -> tuple[tuple[str, str, int], ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    bodies = [statement for statement in tree.body if getattr(statement, "name", None) in names]
    return tuple(dict.fromkeys(call for body in bodies for call in _calls(body)))


def _calls(body: ast.AST) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(body):
        if not isinstance(node, ast.Call):
            continue
        name = _dotted(node.func)
        if name.startswith("self.") and not name.startswith("self.scratch"):
            continue
        yield from ((kind, name, node.lineno) for kind, pattern in _KNOWN if pattern.match(name))


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"

"""What a function uses that no replay gives again, by its text: clock, the system's randomness, threads, files."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..registry.uses import uses

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
_KNOWN: Final = tuple((what, re.compile(pattern)) for what, pattern in _KINDS)


def unrecorded(function: Function, snapshot: Snapshot) -> list[str]:
    """Each with the place where it is used; nothing of what goes through `self` is among them."""
    text = snapshot.modules[function.module].text
    wanted = uses(function, snapshot) | {function.name}
    near = [each for name, each in snapshot.functions.items() if name in wanted and each.module != function.module]
    places = [(function.path, text, frozenset(wanted))]
    places += [(each.path, snapshot.modules[each.module].text, frozenset({each.name})) for each in near]
    found = [(path, each) for path, body, names in places for each in _found(body, names)]
    return [f"{what} ({name}, {path}:{line})" for path, (what, name, line) in found]


@lru_cache(maxsize=256)
def _found(text: str, names: frozenset[str]) -> tuple[tuple[str, str, int], ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    bodies = [one for one in tree.body if getattr(one, "name", None) in names]
    return tuple(dict.fromkeys(each for body in bodies for each in _calls(body)))


def _calls(body: ast.AST) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(body):
        if not isinstance(node, ast.Call):
            continue
        name = _dotted(node.func)
        if name.startswith("self.") and not name.startswith("self.scratch"):
            continue
        yield from ((what, name, node.lineno) for what, pattern in _KNOWN if pattern.match(name))


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"

"""Records the answers that a call got through `self`, so that it can be replayed; secrets only by name.

Answers are stored in order, masked, up to a limit. What a replay cannot reproduce is reported: data beyond the limit,
and uses of the clock, system randomness, threads or files that are visible in the function's text.
"""

import ast
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from json import dumps
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core.base.json_form import fields_to_json
from agent_core.registry.depends import modules_of, uses
from agent_core.registry.source import tree_of
from agent_core.storage import SaveRecorded
from sandbox import Failure
from sandbox.wire.values import Unsendable, encode

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from ..answers import CallReport

_KNOWN: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("the clock", r"(time\.)?(time|monotonic|perf_counter)(_ns)?$"),
        ("the clock", r".*\b(now|utcnow|today)$|time\.(localtime|gmtime|ctime|strftime)$"),
        ("randomness of the system", r"(os\.)?(urandom|getrandom)$|secrets\.\w+$|(uuid\.)?uuid[14]$"),
        ("randomness of the system", r"(random\.)?SystemRandom$|token_(hex|bytes|urlsafe)$"),
        ("numpy's randomness", r"(np|numpy)\.random\..+$|default_rng$"),
        ("the order of threads", r"(threading\.)?Thread$|.*ThreadPoolExecutor$|asyncio\.to_thread$"),
        ("a file", r"open$|.*\.(read_text|read_bytes|iterdir|glob|rglob|open)$|os\.(listdir|scandir|stat|walk)$"),
        ("the process", r"os\.(getpid|times|cpu_count|getloadavg)$|id$"),
    )
)


def unrecorded_uses(function: "Function", snapshot: "Snapshot") -> list[str]:
    """Return each use that a replay cannot reproduce, with its place; uses of `self` are not among them."""
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
        tree = tree_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    calls: list[tuple[str, str, int]] = []
    bodies = [statement for statement in tree.body if getattr(statement, "name", None) in names]
    for node in (node for body in bodies for node in ast.walk(body)):
        if not isinstance(node, ast.Call):
            continue
        name = _dotted_name(node.func)
        if not name.startswith("self.") or name.startswith("self.scratch"):
            calls += [(kind, name, node.lineno) for kind, pattern in _KNOWN if pattern.match(name)]
    return tuple(dict.fromkeys(calls))


def _dotted_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


MOST_BYTES: Final = 256 * 1024
MOST_VALUE: Final = 64 * 1024
MOST_LACKING: Final = 20
Row: TypeAlias = dict[str, Any]  # Any: JSON
Value: TypeAlias = Callable[[], Any]  # Any: what `sandbox.wire.values` carries
_RAN: Final = frozenset({"returned", "raised", "timed_out", "killed"})
_SILENT: Final = frozenset({"progress", "debug"})


class Recording:
    """The answers that one call got; calls that it makes are recorded as answers only."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.turn = ""
        self.number = 0  # of the call in its program, if any
        self.zone_then: str | None = None  # in a replay: the time zone of the original call
        self.zone = os.environ.get("TZ", "")
        self.heard: list[Row] = []
        self.lacking: dict[str, None] = {}  # an ordered set
        self._size = 0

    def seed_of(self, depth: int) -> int:
        """Return the seed for the call at this depth of nested calls."""
        return self.seed + depth

    def note(self, name: str, arguments: Row, value: Value, *, refused: str = "") -> None:
        """Record an answer, or why it was refused; everything is masked."""
        if name in _SILENT or self._size > MOST_BYTES:
            return
        if name == "secret":
            self._add({"name": name, "arguments": {"name": str(arguments.get("name"))[:80]}})
            self.omit(f"the value of the secret {str(arguments.get('name'))[:80]}, which is never kept")
            return
        try:
            row = {"name": name, "arguments": encode(arguments)}
            row |= {"refused": refused} if refused else {"value": encode(value())}
        except Unsendable:
            self.omit(f"an answer to self.{name}, which JSON cannot hold")
            return
        self._add(row)

    def _add(self, row: Row) -> None:
        self._size += len(str(row))
        if self._size > MOST_BYTES:
            self.omit(f"what it got through self beyond {MOST_BYTES // 1024} KiB")
        else:
            self.heard.append(row)

    def omit(self, description: str) -> None:
        """Note something that is not recorded, so that a replay will not have it."""
        self.lacking[description] = None


def first_few(lacking: Collection[str]) -> list[str]:
    """Return the missing items up to the limit, and the number of further ones."""
    more = len(lacking) - MOST_LACKING
    return [*list(lacking)[:MOST_LACKING], *([f"… and {more:,} more"] if more > 0 else [])]


def kept_call(
    recording: Recording, function: "Function", snapshot: "Snapshot", arguments: Mapping[str, Any], report: "CallReport"
) -> list[SaveRecorded]:
    """Return the record of a call that ran; empty if its arguments are too large to store."""
    try:
        encoded_arguments = encode(dict(arguments))
    except Unsendable:
        return []
    if report.outcome not in _RAN or len(dumps(encoded_arguments)) > MOST_BYTES:
        return []
    data = {
        "module": function.module,
        "modules": {name: source.version for name, source in modules_of(function.module, snapshot).items()},
        "arguments": encoded_arguments,
        "seed": recording.seed,
        "zone": recording.zone,
        "heard": recording.heard,
        "lacking": first_few([*recording.lacking, *unrecorded_uses(function, snapshot)]),
        "outcome": RecordedOutcome.of(report).to_json(),
        **({"number_in_program": recording.number} if recording.number else {}),
    }
    return [SaveRecorded(function.name, report.outcome, recording.turn, data)]


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """The parts of an outcome that a replay compares: how the call ended, its value, its error and its output.

    Of a large value only the `digest` is stored; an error is stored without its frames.
    """

    outcome: str
    value: Any  # Any: values of JSON
    digest: str
    error: Failure | None
    output: str

    @classmethod
    def of(cls, report: "CallReport") -> "RecordedOutcome":
        """Return the recorded parts of a call's report."""
        text = dumps(report.value)
        return cls(
            report.outcome,
            report.value if len(text) <= MOST_VALUE else None,
            sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            report.error and Failure(report.error.type, report.error.message),
            report.output[:MOST_VALUE],
        )

    @classmethod
    def from_json(cls, data: Row) -> "RecordedOutcome":
        """Return a stored outcome."""
        error = data["error"]
        failure = error and Failure(error["type"], error["message"])
        return cls(data["outcome"], data["value"], data["digest"], failure, data["output"])

    def to_json(self) -> Row:
        """Return the stored and published shape."""
        error = self.error and {"type": self.error.type, "message": self.error.message}
        return {**fields_to_json(replace(self, error=None)), "error": error}

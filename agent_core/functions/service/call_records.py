"""Records of calls: what is stored of each, whether a failure was the function's fault, statistics, and result types.

The answers that a call got through `self` are stored in order, masked, up to a limit, so that it can be replayed;
secrets only by name. What a replay cannot reproduce is reported: data beyond the limit, and uses of the clock, system
randomness, threads or files that are visible in the function's text.

The types are observed for functions with a declared return type that says little or nothing. Only the shape of a value
is kept. For functions of the workspace, keys are kept only if they occur in the source, because any other key may be
data. MCP tools have no source here: the shape of their results is only available to the agent that called them.
"""

import ast
import builtins
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from json import dumps
from statistics import median
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.records import FLAT, dataclass, field, fields_to_json, replace, to_json
from agent_core.registry.depends import modules_of, uses
from agent_core.registry.docstring import read
from agent_core.registry.function import Function, are_keys
from agent_core.registry.registry import Snapshot
from agent_core.storage import (
    CallOwners,
    CallRow,
    CallStore,
    KindRow,
    RecordCall,
    SaveRecorded,
    SaveSeen,
    Stats,
    Write,
)
from sandbox import Failure, Killed, Raised, Returned
from sandbox.wire.large import Large
from sandbox.wire.strict_json import LOOSE, Malformed, read_json
from sandbox.wire.values import Unsendable, encode

from ..answers import CallOutcome, CallReport, Measured, word

if TYPE_CHECKING:
    from ..debug import Watch

_TURNS = 10
_NAMES = re.compile(r"[\w.]+")


def recorded(
    function: "Function", snapshot: "Snapshot", outcome: CallOutcome, seconds: float, turn: str = ""
) -> RecordCall:
    """Return the record of one real call."""
    how, error, message = word(outcome), "", ""
    if isinstance(outcome, Raised):
        error, message = outcome.failure.type, outcome.failure.message
        if is_documented(error, function, snapshot):
            how = "documented"
    elif isinstance(outcome, Killed):
        message = outcome.reason
    measured = (outcome.memory, outcome.cpu_s) if isinstance(outcome, Measured) else ()
    return RecordCall(
        function.name, function.body_hash, how, seconds, turn, error, message, *measured
    )


def noted(
    watch: "Watch",
    function: "Function",
    snapshot: "Snapshot",
    outcome: CallOutcome,
    *,
    seconds: float,
    arguments: Mapping[str, Any],
    turn: str = "",
) -> tuple[Write, ...]:
    """Return the writes of one call: its record, unless the user debugged it, and what a replay needs.

    A call that failed because a grant was missing counts as refused: with the grant it may work.
    """
    writes = watch.writes(function, snapshot, arguments, CallReport.of(outcome))
    if watch.was_stopped:
        return tuple(writes)
    record = recorded(function, snapshot, outcome, seconds, turn)
    is_refused = watch.was_denied and isinstance(outcome, Raised)
    return (replace(record, outcome="refused") if is_refused else record, *writes)


def is_documented(error: str, function: "Function", snapshot: "Snapshot") -> bool:
    """Return whether the docstring names this exception or a built-in base class of it."""
    try:
        body = syntax.parse(dedent(snapshot.text_of(function))).body
    except SyntaxError:  # its lines cannot be parsed alone
        body = []
    defined = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    entries = read(ast.get_docstring(defined[0]) if defined else None).raises
    named = {name.rpartition(".")[2] for entry in entries for name in _NAMES.findall(entry)}
    last = error.rpartition(".")[2]
    kind, families = _builtin(last), tuple(filter(None, map(_builtin, named)))
    return last in named or (kind is not None and issubclass(kind, families))


def _builtin(name: str) -> type[BaseException] | None:
    value = getattr(builtins, name, None)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The counts and times of calls, of one version or of all."""

    calls: int = 0
    returned: int = 0
    failed: int = 0
    failing: int = 0
    holding: int = 0
    first_called: float | None = None
    last_called: float | None = None
    last_returned: float | None = None
    seconds: float = 0.0
    mean_s: float = 0.0
    median_s: float | None = None  # of the stored calls
    longest_s: float = 0.0
    memory: int | None = None
    cpu_s: float | None = None

    @classmethod
    def of(cls, rows: Sequence[Stats], recent: Sequence[CallRow]) -> "CallTotals":
        """Return the totals of these versions; runs of failures and returns are of the one that was called last."""
        if not rows:
            return cls()
        last = max(rows, key=lambda row: row.last_called)
        calls, seconds = sum(row.calls for row in rows), sum(row.seconds for row in rows)
        cpu = [row.cpu for row in rows if row.cpu is not None]
        return cls(
            calls=calls,
            returned=sum(row.returned for row in rows),
            failed=sum(row.failed for row in rows),
            failing=last.failing,
            holding=last.holding,
            first_called=min(row.first_called for row in rows),
            last_called=last.last_called,
            last_returned=max((row.worked for row in rows if row.worked is not None), default=None),
            seconds=seconds,
            mean_s=seconds / calls,
            median_s=median(call.seconds for call in recent) if recent else None,
            longest_s=max(row.longest for row in rows),
            memory=max((row.memory for row in rows if row.memory is not None), default=None),
            cpu_s=sum(cpu) if cpu else None,
        )

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape, which is shorter if there were no calls."""
        data = fields_to_json(self)
        return data if self.calls else {key: data[key] for key in _NEVER_CALLED}


_NEVER_CALLED = ("calls", "returned", "failed", "last_called", "seconds")


@dataclass(frozen=True, slots=True)
class FailureKind:
    """The number of calls that ended in one way other than returning, and the time of the last one."""

    outcome: str
    error: str
    calls: int
    last: float


@dataclass(frozen=True, slots=True)
class VersionStatistics:
    """The calls of one version."""

    version: str
    present: bool
    totals: CallTotals = field(metadata=FLAT)
    kinds: tuple[FailureKind, ...]

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape."""
        head = {"version": self.version, "present": self.present}
        return {**head, **self.totals.to_json(), "kinds": to_json(self.kinds)}


@dataclass(frozen=True, slots=True)
class FunctionStatistics:
    """The calls of a function: in total, by version (the newest first), and the stored single ones."""

    totals: CallTotals = field(metadata=FLAT)
    kinds: tuple[FailureKind, ...]
    turns: tuple[str, ...]
    versions: tuple[VersionStatistics, ...]
    recent: tuple[CallRow, ...]
    released: tuple[tuple[str, float], ...]

    @classmethod
    def none(cls) -> "FunctionStatistics":
        """Return the statistics of a function that was never called."""
        return cls(CallTotals(), (), (), (), (), ())

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape."""
        return {
            **self.totals.to_json(),
            "kinds": to_json(self.kinds),
            "turns": [*self.turns],
            "versions": to_json(self.versions),
            "recent": [
                {
                    key: value
                    for key, value in fields_to_json(call).items()
                    if key not in ("memory", "at", "cpu")
                }
                | {"memory": call.memory, "cpu_s": call.cpu, "at": call.at}
                for call in self.recent
            ],
            "released": [{"version": version, "at": at} for version, at in self.released],
        }


def by_function(rows: Iterable[Stats]) -> dict[str, list[Stats]]:
    """Return the rows grouped by function, in order."""
    grouped: dict[str, list[Stats]] = {}
    for row in rows:
        grouped.setdefault(row.function, []).append(row)
    return grouped


async def statistics(
    store: CallStore, function: "Function", rows: Sequence[Stats], owners: CallOwners = None
) -> FunctionStatistics:
    """Return the totals over all versions, those of each version, and the stored single calls of `owners`."""
    kinds, recent = (
        await store.call_kinds(function.name),
        await store.recent_calls(function.name, owners),
    )
    return FunctionStatistics(
        CallTotals.of(rows, recent),
        _kinds(kinds),
        tuple(dict.fromkeys(call.turn for call in recent if call.turn))[:_TURNS],
        tuple(
            VersionStatistics(
                row.version,
                row.version == function.body_hash,
                CallTotals.of([row], [call for call in recent if call.version == row.version]),
                _kinds([kind for kind in kinds if kind.version == row.version]),
            )
            for row in reversed(rows)
        ),
        tuple(recent),
        tuple(await store.releases(function.name)),
    )


def _kinds(rows: Sequence[KindRow]) -> tuple[FailureKind, ...]:
    """Return the outcomes of calls that did not return, summed over versions."""
    grouped: dict[tuple[str, str], list[KindRow]] = {}
    for row in rows:
        grouped.setdefault((row.outcome, row.error), []).append(row)
    kinds = [
        FailureKind(*key, sum(row.calls for row in same), max(row.last for row in same))
        for key, same in grouped.items()
    ]
    return tuple(sorted(kinds, key=lambda kind: (-kind.calls, -kind.last)))


Shape: TypeAlias = "str | list[Shape] | dict[str, Shape]"
"""The name of a type, a list of item shapes, or a dictionary of shapes by key; `*` means any key.

`*json` has the shape of JSON inside a text, which is how most tools of MCP servers answer.
"""

_SCALARS: Final = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    type(None): "None",
    bytes: "bytes",
}
_CONTAINERS: Final = frozenset(
    {"list", "dict", "tuple", "set", "frozenset", "Sequence", "Mapping", "Iterable"}
)
_CLEAR: Final = frozenset(_SCALARS.values()) | _CONTAINERS | {"Literal", "Optional", "Union"}
_MOST_TEXT: Final = 20_000
"""The number of characters up to which a text is searched for JSON."""
_MOST_ITEMS: Final = 8
_MOST_DEPTH: Final = 3
_LONGEST: Final = 160
"""The maximum number of characters of a type, which is part of every request."""


def shape_of(value: object, keys: Callable[[str], bool], depth: int = 0) -> Shape:
    """Return the shape of a value. The keys of a dictionary are kept if `keys` allows all of them."""
    if depth >= _MOST_DEPTH:
        return (
            type(value).__name__
            if isinstance(value, list | dict)
            else _SCALARS.get(type(value), "Any")
        )
    match value:
        case list() | tuple():
            items = [shape_of(item, keys, depth + 1) for item in value[:_MOST_ITEMS]]
            return [item for at, item in enumerate(items) if item not in items[:at]]
        case dict():
            if are_keys(value) and all(map(keys, value)):
                return {key: shape_of(item, keys, depth + 1) for key, item in value.items()}
            inner = shape_of([*islice(value.values(), _MOST_ITEMS)], keys, depth)
            return {"*": inner[0] if isinstance(inner, list) and len(inner) == 1 else "Any"}
    return _SCALARS.get(type(value), "Any")


def type_text(shape: object, depth: int = 0) -> str:
    """Return a shape as a Python type; an empty text if it is invalid or too long."""
    match shape:
        case str() if shape in _CLEAR or shape == "Any":
            text = shape
        case [] | {} if not shape:
            text = "list" if isinstance(shape, list) else "dict"
        case [*items] if depth <= _MOST_DEPTH:
            text = _of_parts("list[{}]", " | ", [type_text(item, depth + 1) for item in items])
        case {"*": inner}:
            text = _of_parts("dict[str, {}]", "", [type_text(inner, depth + 1)])
        case {"*json": inner}:
            text = _of_parts("str with the JSON of {}", "", [type_text(inner)])
        case {**values} if depth <= _MOST_DEPTH and are_keys(values):
            types = [(key, type_text(value, depth + 1)) for key, value in values.items()]
            text = _of_parts(
                "{{{}}}", ", ", [f"{key}: {kind}" if kind else "" for key, kind in types]
            )
        case _:
            text = ""
    return text if len(text) <= _LONGEST else ""


def _of_parts(form: str, between: str, parts: Collection[str]) -> str:
    return form.format(between.join(parts)) if all(parts) else ""


@lru_cache(maxsize=4096)
def says_little(declared: str) -> bool:
    """Check whether a declared type says little about results: it is missing, `Any`, a bare container, or a class."""
    try:
        tree = syntax.parse(declared, mode="eval").body if declared else ast.Name("Any")
    except SyntaxError:
        return True
    inside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    keys = {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in keys]
    return any(
        node.id not in _CLEAR or (node.id in _CONTAINERS and id(node) not in inside)
        for node in names
    )


class SeenResults:
    """The observed result types, by agent, function and version."""

    def __init__(self, store: CallStore, snapshot: Callable[[], Snapshot]) -> None:
        self._store = store
        self._snapshot = snapshot
        self._texts: dict[tuple[str, str, str], str] = {}
        self._is_loaded = False

    async def load(self) -> None:
        """Load the stored types once; what other processes observe later is loaded at the next start."""
        if not self._is_loaded:
            self._is_loaded = True
            stored = {
                (row.agent, row.function, row.version): type_text(row.shape)
                for row in await self._store.seen()
            }
            self._texts = stored | self._texts

    def of(self, function: Function, agent: str) -> str:
        """Return the type of a function's newest result that this agent may see; empty if the declared one suffices."""
        if not says_little(function.returns):
            return ""
        name, version = function.name, function.body_hash or function.version
        return self._texts.get(("", name, version)) or self._texts.get((agent, name, version), "")

    def note(self, function: Function, outcome: CallOutcome, agent: str) -> tuple[Write, ...]:
        """Return the write of a result's shape if it is new."""
        if (
            not isinstance(outcome, Returned)
            or isinstance(outcome.value, Large)
            or not says_little(function.returns)
        ):
            return ()
        source = self._snapshot().modules.get(function.module)
        value, inside = outcome.value, None
        if (
            isinstance(value, str)
            and value.lstrip().startswith(("{", "["))
            and len(value) <= _MOST_TEXT
        ):
            with suppress(Malformed):
                inside = read_json(value, LOOSE)
        shape = shape_of(
            inside or value,
            lambda key: source is None or re.search(rf"\b{key}\b", source.text) is not None,
        )
        shape = {"*json": shape} if inside else shape
        key = "" if source else agent, function.name, function.body_hash or function.version
        text = type_text(shape)
        if self._texts.get(key) == text:
            return ()
        self._texts[key] = text
        return (SaveSeen(*key, shape),)


_UNREPLAYABLE: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("the clock", r"(time\.)?(time|monotonic|perf_counter)(_ns)?$"),
        ("the clock", r".*\b(now|utcnow|today)$|time\.(localtime|gmtime|ctime|strftime)$"),
        (
            "randomness of the system",
            r"(os\.)?(urandom|getrandom)$|secrets\.\w+$|(uuid\.)?uuid[14]$",
        ),
        ("randomness of the system", r"(random\.)?SystemRandom$|token_(hex|bytes|urlsafe)$"),
        ("numpy's randomness", r"(np|numpy)\.random\..+$|default_rng$"),
        (
            "the order of threads",
            r"(threading\.)?Thread$|.*ThreadPoolExecutor$|asyncio\.to_thread$",
        ),
        (
            "a file",
            r"open$|.*\.(read_text|read_bytes|iterdir|glob|rglob|open)$|os\.(listdir|scandir|stat|walk)$",
        ),
        ("the process", r"os\.(getpid|times|cpu_count|getloadavg)$|id$"),
    )
)


def unrecorded_uses(function: "Function", snapshot: "Snapshot") -> list[str]:
    """Return each use that a replay cannot reproduce, with its place; uses of `self` are not among them."""
    text = snapshot.modules[function.module].text
    used_names = uses(function, snapshot) | {function.name}
    callees = [
        callee
        for name, callee in snapshot.functions.items()
        if name in used_names and callee.module != function.module
    ]
    places = [(function.path, text, frozenset(used_names))]
    places += [
        (callee.path, snapshot.modules[callee.module].text, frozenset({callee.name}))
        for callee in callees
    ]
    calls = [
        (path, call) for path, body, names in places for call in _unrecorded_calls(body, names)
    ]
    return [f"{kind} ({name}, {path}:{line})" for path, (kind, name, line) in calls]


@lru_cache(maxsize=256)
def _unrecorded_calls(text: str, names: frozenset[str]) -> tuple[tuple[str, str, int], ...]:
    try:
        tree = syntax.tree_of(text)
    except SyntaxError:
        return ()
    calls: list[tuple[str, str, int]] = []
    bodies = [statement for statement in tree.body if getattr(statement, "name", None) in names]
    for node in (node for body in bodies for node in ast.walk(body)):
        if not isinstance(node, ast.Call):
            continue
        name = _dotted_name(node.func)
        if not name.startswith("self.") or name.startswith("self.scratch"):
            calls += [
                (kind, name, node.lineno) for kind, pattern in _UNREPLAYABLE if pattern.match(name)
            ]
    return tuple(dict.fromkeys(calls))


def _dotted_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


_MOST_BYTES: Final = 256 * 1024
_MOST_VALUE: Final = 64 * 1024
_MOST_LACKING: Final = 20
Row: TypeAlias = dict[str, Any]  # Any: JSON
_Value: TypeAlias = Callable[[], Any]  # Any: what `sandbox.wire.values` carries
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

    def note(
        self,
        name: str,
        arguments: Row,
        value: _Value,
        *,
        refused: str = "",
        raised: Row | None = None,
    ) -> None:
        """Record an answer, or why it was refused, or what was `raised` in place of it; everything is masked."""
        if name in _SILENT or self._size > _MOST_BYTES:
            return
        if name == "secret":
            self._add({"name": name, "arguments": {"name": str(arguments.get("name"))[:80]}})
            self.omit(
                f"the value of the secret {str(arguments.get('name'))[:80]}, which is never kept"
            )
            return
        try:
            row = {"name": name, "arguments": encode(arguments)}
            row |= {"refused": refused} if refused else {"value": encode(value())}
            row |= {"raised": raised} if raised else {}
        except Unsendable:
            self.omit(f"an answer to self.{name}, which JSON cannot hold")
            return
        self._add(row)

    def _add(self, row: Row) -> None:
        self._size += len(str(row))
        if self._size > _MOST_BYTES:
            self.omit(f"what it got through self beyond {_MOST_BYTES // 1024} KiB")
        else:
            self.heard.append(row)

    def omit(self, description: str) -> None:
        """Note something that is not recorded, so that a replay will not have it."""
        self.lacking[description] = None


def first_few(lacking: Collection[str]) -> list[str]:
    """Return the missing items up to the limit, and the number of further ones."""
    more = len(lacking) - _MOST_LACKING
    return [*list(lacking)[:_MOST_LACKING], *([f"… and {more:,} more"] if more > 0 else [])]


def kept_call(
    recording: Recording,
    function: "Function",
    snapshot: "Snapshot",
    arguments: Mapping[str, Any],
    report: "CallReport",
) -> list[SaveRecorded]:
    """Return the record of a call that ran; empty if its arguments are too large to store."""
    try:
        encoded_arguments = encode(dict(arguments))
    except Unsendable:
        return []
    if report.outcome not in _RAN or len(dumps(encoded_arguments)) > _MOST_BYTES:
        return []
    data = {
        "module": function.module,
        "modules": {
            name: source.version for name, source in modules_of(function.module, snapshot).items()
        },
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
            report.value if len(text) <= _MOST_VALUE else None,
            sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            report.error and Failure(report.error.type, report.error.message),
            report.output[:_MOST_VALUE],
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

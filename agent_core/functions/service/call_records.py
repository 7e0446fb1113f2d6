"""Records of calls: what is stored of each, whether a failure was the function's fault, and statistics."""

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from agent_core.base import syntax
from agent_core.base.json_form import fields_to_json, to_json
from agent_core.registry.docstring import read
from agent_core.registry.standing import summed
from agent_core.storage import CallOwners, CallRow, CallStore, KindRow, RecordCall, Stats, Write
from sandbox import Killed, Raised

from ..answers import CallOutcome, CallReport, Measured, word

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot

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
    return RecordCall(function.name, function.body_hash, how, seconds, turn, error, message, *measured)


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
    entries = read(_docstring(function, snapshot)).raises
    named = {name.rpartition(".")[2] for entry in entries for name in _NAMES.findall(entry)}
    last = error.rpartition(".")[2]
    kind, families = _builtin(last), tuple(filter(None, map(_builtin, named)))
    return last in named or (kind is not None and issubclass(kind, families))


def _docstring(function: "Function", snapshot: "Snapshot") -> str | None:
    try:
        tree = syntax.parse(dedent(snapshot.text_of(function)))
    except SyntaxError:  # its lines cannot be parsed alone
        return None
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return ast.get_docstring(defined[0]) if defined else None


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
    def of(cls, stats: Stats, recent: Sequence[CallRow]) -> "CallTotals":
        """Return the totals, with the median of the stored calls."""
        return cls(
            stats.calls,
            stats.returned,
            stats.failed,
            stats.failing,
            stats.holding,
            stats.first_called,
            stats.last_called,
            stats.worked,
            stats.seconds,
            stats.seconds / stats.calls,
            median(call.seconds for call in recent) if recent else None,
            stats.longest,
            stats.memory,
            stats.cpu,
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
    totals: CallTotals
    kinds: tuple[FailureKind, ...]

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape."""
        head = {"version": self.version, "present": self.present}
        return {**head, **self.totals.to_json(), "kinds": to_json(self.kinds)}


@dataclass(frozen=True, slots=True)
class FunctionStatistics:
    """The calls of a function: in total, by version (the newest first), and the stored single ones."""

    totals: CallTotals
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
            "recent": [_call_json(call) for call in self.recent],
            "released": [{"version": version, "at": at} for version, at in self.released],
        }


def _call_json(call: CallRow) -> dict[str, Any]:  # Any: values of JSON
    data = fields_to_json(call)
    cost = {"memory": call.memory, "cpu_s": call.cpu, "at": call.at}
    return {key: value for key, value in data.items() if key not in ("memory", "at", "cpu")} | cost


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
    kinds, recent = await store.call_kinds(function.name), await store.recent_calls(function.name, owners)
    whole = summed(list(rows))
    return FunctionStatistics(
        CallTotals.of(whole, recent) if whole else CallTotals(),
        _kinds(kinds),
        tuple(dict.fromkeys(call.turn for call in recent if call.turn))[:_TURNS],
        tuple(
            VersionStatistics(
                row.version,
                row.version == function.body_hash,
                CallTotals.of(row, [call for call in recent if call.version == row.version]),
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

"""Calls in the store: statistics of each version of a function, the newest calls, and recorded calls for replay."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from .subject import Subject, Write

KEEP_CALLS = 100
"""The number of calls per function that are kept individually, unless a setting says otherwise."""

CallOwners: TypeAlias = Collection[str] | None
"""The agents with visible calls: a call belongs to the agent of its turn. None means all calls.

That includes calls outside of turns, which belong to no agent.
"""

FAILURES = frozenset({"raised", "timed_out", "killed"})
"""The outcomes that are the function's own fault."""


@dataclass(frozen=True, slots=True)
class RecordCall(Write):
    """One call of a function, for its standing and statistics.

    `outcome` is the published word, or `documented`: it raised an exception that its docstring names. `error` is an
    exception's type; `memory` is the worker's peak in bytes, `cpu` its processor time in seconds.
    """

    function: str
    version: str
    outcome: str
    seconds: float
    turn: str = ""
    error: str = ""
    message: str = ""
    memory: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseFunction(Write):
    """Release this version from quarantine, by the user's decision, and reset its counts of failures and returns."""

    function: str
    version: str


@dataclass(frozen=True, slots=True)
class SaveRecorded(Write):
    """Record a call for replay. `data` is JSON that only the recorder interprets."""

    function: str
    outcome: str
    turn: str
    data: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One recorded call, identified by `n`."""

    n: int
    function: str
    outcome: str
    turn: str
    at: float
    data: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of the calls of one version of a function.

    Refused and interrupted calls, and exceptions that the docstring names, count as neither returned nor failed.
    `failing` is the current run of failures, `holding` the current run of returns (since `since`); `worst` is the
    longest run of failures.
    """

    function: str
    version: str
    calls: int
    returned: int
    failed: int
    failing: int
    holding: int
    first_called: float
    last_called: float
    seconds: float
    worst: int = 0
    since: float | None = None
    worked: float | None = None
    longest: float = 0.0
    memory: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class KindRow:
    """The number of times that a version ended in one way other than returning."""

    version: str
    outcome: str
    error: str
    calls: int
    last: float


@dataclass(frozen=True, slots=True)
class CallRow:
    """One stored call."""

    version: str
    turn: str
    outcome: str
    error: str
    message: str
    seconds: float
    memory: int | None
    at: float
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class SaveExposures(Write):
    """Record the functions that a turn's request probably needed: (name, version, whether it was masked)."""

    turn: str
    model: str
    functions: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class ExposedTurn:
    """A turn with the functions that its request probably needed, by name and version: shown, or masked at random.

    `requests` and `tokens` are the turn's totals; `is_retried`: its message was removed and then sent again.
    """

    turn: str
    model: str
    shown: frozenset[tuple[str, str]]
    masked: frozenset[tuple[str, str]]
    requests: int
    tokens: int
    is_retried: bool = False


@dataclass(frozen=True, slots=True)
class SaveSeen(Write):
    """The shape of a function's newest result, for one agent, or for all if `agent` is empty; both write and row.

    It replaces the shapes of the function's other versions.
    """

    agent: str
    function: str
    version: str
    shape: Any  # Any: JSON


class CallStore(Subject, Protocol):
    """The calls of functions."""

    async def seen(self) -> list[SaveSeen]:
        """Return the recorded shapes of results."""

    async def exposed_turns(self) -> list[ExposedTurn]:
        """Return the newest turns with recorded exposures, oldest first, without open ones."""

    async def call_stats(self, function: str = "") -> list[Stats]:
        """Return the call statistics of each version of each function (or of one), the one called last at the end."""

    async def call_kinds(self, function: str) -> list[KindRow]:
        """Return the kinds of outcomes of a function's calls that did not return, the most frequent first."""

    async def recent_calls(self, function: str, owners: CallOwners = None) -> list[CallRow]:
        """Return the calls of a function that are kept individually, newest first."""

    async def failing(self, failures: int) -> frozenset[tuple[str, str]]:
        """Return the functions, with versions, that failed this many times in a row since their release."""

    async def releases(self, function: str) -> list[tuple[str, float]]:
        """Return the versions of a function that the user released, with the times, oldest first."""

    async def requests_served(self, each: int, owners: CallOwners = None) -> list[tuple[str, str]]:
        """Return (function, request) for the turns of each function's newest `each` successful calls, oldest first."""

    async def requests_mark(self) -> str:
        """Return a text that changes whenever the result of `requests_served` may change."""

    async def recorded_call(self, n: int, owners: CallOwners = None) -> RecordedRow | None:
        """Return one recorded call; None if there is none with that number that belongs to the owners."""

    async def recorded_calls(
        self, function: str = "", outcomes: tuple[str, ...] = (), owners: CallOwners = None
    ) -> list[RecordedRow]:
        """Return recorded calls, newest first: all, those of a function, or those with one of these outcomes."""

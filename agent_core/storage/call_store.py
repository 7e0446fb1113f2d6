"""Calls in the store: statistics of each version of a function, the newest calls, and recorded ones to make again."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from .subject import Subject, Write

KEEP_CALLS = 100
"""So many calls of a function are kept one by one, unless a setting says otherwise."""

CallOwners: TypeAlias = Collection[str] | None
"""The agents whose calls somebody may see: a call belongs to the agent of its turn. None is all of them, and those
outside of turns, too, which belong to no agent.
"""

FAILURES = frozenset({"raised", "timed_out", "killed"})
"""The outcomes that are a function's own fault."""


@dataclass(frozen=True, slots=True)
class RecordCall(Write):
    """One call of a function, for its standing and statistics.

    `outcome` is the published word, or `documented`: it raised what its docstring names. `error` is an exception's
    type; `memory` is the worker's peak in bytes, `cpu` its seconds of processor time.
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
    """Release this version from quarantine by the user's decision. Its failures and returns in a row count anew."""

    function: str
    version: str


@dataclass(frozen=True, slots=True)
class SaveRecorded(Write):
    """Keep a call so that it can be made again. `data` is JSON that only the recorder understands."""

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

    Refused and interrupted calls, and exceptions that the docstring names, are neither returned nor failed. `failing`
    counts failures, `holding` returns in a row until now (since `since`); `worst` is the longest row of failures.
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
    """Keep which functions a turn's request probably needed: (name, version, whether it was masked)."""

    turn: str
    model: str
    functions: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class ExposedTurn:
    """A turn with the functions that its request probably needed, by name and version: shown, or masked at random.

    `requests` and `tokens` are all that it took; `is_retried`: its message was sent again after it was taken back.
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
    """Keep the shape of a function's newest result, for one agent, or for all if `agent` is empty. It is also the row.

    Shapes of its other versions go.
    """

    agent: str
    function: str
    version: str
    shape: Any  # Any: JSON


class CallStore(Subject, Protocol):
    """The calls of functions."""

    async def seen(self) -> list[SaveSeen]:
        """Return the shapes of results that were seen."""

    async def exposed_turns(self) -> list[ExposedTurn]:
        """Return the newest turns of which it is known what they were shown, oldest first; open ones are left out."""

    async def call_stats(self, function: str = "") -> list[Stats]:
        """Return the call statistics of each version of each function (or of one), the one called last at the end."""

    async def call_kinds(self, function: str) -> list[KindRow]:
        """Return the kinds of outcomes of a function's calls that did not return, the most frequent first."""

    async def recent_calls(self, function: str, owners: CallOwners = None) -> list[CallRow]:
        """Return the calls of a function that are still kept one by one, newest first."""

    async def failing(self, failures: int) -> frozenset[tuple[str, str]]:
        """Return the functions, each with its version, that failed so often in a row since they were released."""

    async def releases(self, function: str) -> list[tuple[str, float]]:
        """Return the versions of a function that the user released, with the times, oldest first."""

    async def requests_served(self, each: int, owners: CallOwners = None) -> list[tuple[str, str]]:
        """Return (function, request) of the turns in which its newest `each` calls returned, oldest first."""

    async def requests_mark(self) -> str:
        """Return a text that changes when `requests_served` may."""

    async def recorded_call(self, n: int, owners: CallOwners = None) -> RecordedRow | None:
        """Return one recorded call; None if there is none of that number that is theirs."""

    async def recorded_calls(
        self, function: str = "", outcomes: tuple[str, ...] = (), owners: CallOwners = None
    ) -> list[RecordedRow]:
        """Return recorded calls, newest first: all, those of a function, or those with one of these outcomes."""

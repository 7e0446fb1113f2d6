"""Call statistics: totals of each version of a function, outcomes of calls, and the newest calls one by one."""

from dataclasses import dataclass


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

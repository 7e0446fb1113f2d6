"""What is kept of calls: totals of each version of a function, how calls ended, and the newest calls one by one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stats:
    """How calls of one version of a function went.

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
    """How often a version ended in one way other than returning."""

    version: str
    outcome: str
    error: str
    calls: int
    last: float


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call as it is kept."""

    version: str
    turn: str
    outcome: str
    error: str
    message: str
    seconds: float
    memory: int | None
    at: float
    cpu: float | None = None

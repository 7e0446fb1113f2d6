"""The closed set of ways in which a call can end.

A value, an error's text and a representation are claims of code that is not trusted: the host
shows and compares them as data, and decides nothing by an error's text. `memory` is the worker's peak in bytes and
`cpu_s` the call's processor time, as the kernel told them to the host; None where it did not.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Frame:
    """One of the function's own frames: source line and short representations of its locals."""

    path: str
    line: int
    function: str
    source: str
    locals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as the worker told it, innermost frame last."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Returned:
    """The call gave a value, decoded to plain Python objects; `shown` is its repr as the worker claims it."""

    value: Any  # any value that `sandbox.values` can carry
    shown: str
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The call ended in an exception."""

    failure: Failure
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The call was stopped when its wall-clock limit had passed."""

    limit_s: float
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Killed:
    """The worker died or broke the protocol; `reason` says which, in a sentence."""

    reason: str
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The call was not made: its module, function or arguments cannot be used as they are."""

    reason: str


Outcome: TypeAlias = Returned | Raised | TimedOut | Killed | Refused

"""The closed set of ways in which a call can end.

A value, an error's text and a representation are claims of code that is not trusted: the host
shows and compares them as data, and decides nothing by an error's text. `memory` is the worker's peak in bytes and
`cpu_s` the call's processor time, as the kernel told them to the host; None where it did not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    """An exception as reported by the worker, innermost frame last.

    `cause` is the one that it was raised from, or (`was_handling`) while that was handled; a few, one in another.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    cause: "Failure | None" = None
    was_handling: bool = False

    def each_frame(self, change: Callable[[Frame], Frame]) -> "Failure":
        """Return the same failure with changed frames, including those of its causes."""
        cause = self.cause and self.cause.each_frame(change)
        return replace(self, frames=tuple(change(frame) for frame in self.frames), cause=cause)


@dataclass(frozen=True, slots=True)
class Returned:
    """The call returned a value, decoded to plain Python objects. `shown` is its repr as the worker claims it."""

    value: Any  # any value that `sandbox.wire.values` can carry
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
    """The call was stopped because its wall-clock limit had passed."""

    limit_s: float
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Killed:
    """The worker died or broke the protocol. `reason` says which, in a sentence."""

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

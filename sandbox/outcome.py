"""The closed set of outcomes of a call.

A value, an error message and a representation are claims of untrusted code: the host shows and compares them as data
and bases no decision on an error message. `memory` is the worker's peak in bytes and `cpu_s` the CPU time of the
call, as reported by the kernel; None if it did not report them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of function code: its source line and short representations of its locals.

    `column` is where in its line the code was, as the worker counts columns.
    """

    path: str
    line: int
    function: str
    source: str
    locals: tuple[tuple[str, str], ...] = ()
    column: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as reported by the worker, innermost frame last.

    `cause` is the exception that it was raised from, or during the handling of (`was_handling`); a chain of a few. The
    class is in `module`, `base` is its nearest builtin one, and `arguments` are those of the exception.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    cause: "Failure | None" = None
    was_handling: bool = False
    module: str = field(default="builtins", compare=False)
    base: str = field(default="Exception", compare=False)
    arguments: tuple[Any, ...] | None = field(
        default=None, compare=False
    )  # that can be sent, if all can

    def each_frame(self, change: Callable[[Frame], Frame]) -> "Failure":
        """Return the same failure with changed frames, including those of its causes."""
        cause = self.cause and self.cause.each_frame(change)
        return replace(self, frames=tuple(change(frame) for frame in self.frames), cause=cause)


@dataclass(frozen=True, slots=True)
class Returned:
    """The call returned a value, decoded to plain Python objects. `shown` is its repr according to the worker."""

    value: Any  # any value that `sandbox.wire.values` can carry
    shown: str
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The call ended in an exception. `kept` is a claim: the variables of a program."""

    failure: Failure
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None
    kept: tuple[tuple[str, Any], ...] = ()  # as `value`


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The call was stopped because its wall-clock limit was exceeded. `kept` is as in `Raised`."""

    limit_s: float
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None
    kept: tuple[tuple[str, Any], ...] = ()  # as `value`


@dataclass(frozen=True, slots=True)
class Killed:
    """The worker died or violated the protocol. `reason` is a sentence."""

    reason: str
    output: str
    seconds: float
    memory: int | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The call did not run: its module, function or arguments are unusable, or no worker was available."""

    reason: str


Outcome: TypeAlias = Returned | Raised | TimedOut | Killed | Refused

"""Debugging data that the host sends along with a call, and the way to stop a running one.

Plain values: the breakpoints cross as JSON, and what the worker sees comes back as requests named `debug`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..errors import ProtocolError
from .ends import WorkerEnd


class CallEnded(ProtocolError):
    """Raised by a request handler to end the call. The message completes "the worker was stopped, because …"."""


@dataclass(frozen=True, slots=True)
class Point:
    """One breakpoint: its function's text, which begins at line `first` of its module, and the line."""

    id: int
    module: str
    function: str
    text: str
    first: int
    line: int
    condition: str = ""
    expressions: tuple[str, ...] = ()
    after: int = 0
    every: int = 1
    once: bool = False

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the form that is sent to the worker."""
        return {**asdict(self), "expressions": list(self.expressions)}


class DebugControl:
    """A handle on the worker of a running call."""

    def __init__(self) -> None:
        self._worker: WorkerEnd | None = None

    def take(self, worker: WorkerEnd | None) -> None:
        """Set the worker that the call runs in, None when it has ended."""
        self._worker = worker

    def stop_now(self) -> bool:
        """Stop the worker at the next line of function code. Return False if nothing runs."""
        return self._worker is not None and self._worker.interrupt()


@dataclass(frozen=True, slots=True)
class Debug:
    """The debugging options of one call.

    `human`: stops are questions. `trace`: which lines ran, with changed locals or (`cover`) without; `covers` is the
    module and function to count the lines of. `looks_back`: a call that raised stops where it did.
    """

    points: Sequence[Point] = ()
    human: bool = False
    trace: Literal["", "lines", "cover"] = ""
    covers: tuple[str, str] | None = None
    looks_back: bool = False
    reins: DebugControl = field(default_factory=DebugControl)

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the form that is sent to the worker."""
        return {
            "points": [point.to_json() for point in self.points],
            "human": self.human,
            "trace": self.trace,
            "covers": self.covers and list(self.covers),
            "looks_back": self.looks_back,
        }


@dataclass(frozen=True, slots=True)
class CallHooks:
    """The environment of a call: the seed of `random`, the time zone of a replay, and the debugger."""

    seed: int | None = None
    zone: str | None = None
    debug: Debug | None = None

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the part that is sent along with the job."""
        data = {"seed": self.seed, "zone": self.zone, "debug": self.debug and self.debug.to_json()}
        return {key: value for key, value in data.items() if value is not None}


PLAIN = CallHooks()

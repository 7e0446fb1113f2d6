"""Debugging data that the host sends with a call, and the control to stop a running call.

These are plain values: breakpoints are sent as JSON, and the worker reports in requests named `debug`.
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
    """One breakpoint: a line, and the text of its function, which begins at line `first` of its module."""

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
    by: Literal["human", "agent"] = "agent"  # what a human wrote may act; an agent's only reads

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the JSON for the worker."""
        return {**asdict(self), "expressions": list(self.expressions)}


class DebugControl:
    """A handle on the worker of a running call."""

    def __init__(self) -> None:
        self._worker: WorkerEnd | None = None

    def take(self, worker: WorkerEnd | None) -> None:
        """Set the worker that the call runs in, or None when it has ended."""
        self._worker = worker

    def stop_now(self) -> bool:
        """Stop the worker at its next line of function code. Return False if no call runs."""
        return self._worker is not None and self._worker.interrupt()


@dataclass(frozen=True, slots=True)
class Debug:
    """The debugging options of one call.

    `human`: stops are questions to a human. `trace`: record the lines that ran, with changed locals (`lines`) or
    without (`cover`), for whoever `trace_for` names; `covers` names the function to count lines of, with its module.
    `looks_back`: a call that raised stops at the place of the exception.
    """

    points: Sequence[Point] = ()
    human: bool = False
    trace: Literal["", "lines", "cover"] = ""
    covers: tuple[str, str] | None = None
    looks_back: bool = False
    trace_for: Literal["human", "agent"] = "agent"
    reins: DebugControl = field(default_factory=DebugControl)

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the JSON for the worker."""
        return {
            "points": [point.to_json() for point in self.points],
            "human": self.human,
            "trace": self.trace,
            "covers": self.covers and list(self.covers),
            "looks_back": self.looks_back,
            "trace_for": self.trace_for,
        }


@dataclass(frozen=True, slots=True)
class CallHooks:
    """The environment of a call: the seed of `random`, the time zone of a replay, and the debugger.

    `may_have_secret`: the worker may be given a secret other than by asking for it, so that a model is shown no values.
    """

    seed: int | None = None
    zone: str | None = None
    debug: Debug | None = None
    may_have_secret: bool = True

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the fields that are added to the job's message."""
        data = {"seed": self.seed, "zone": self.zone, "debug": self.debug and self.debug.to_json()}
        data["may_have_secret"] = self.may_have_secret
        return {key: value for key, value in data.items() if value is not None}


PLAIN = CallHooks()

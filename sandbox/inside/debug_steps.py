"""Stepping through a function with the standard library's `bdb`, which stops in function code alone.

Nothing is traced before something stopped; `continue` ends tracing, unless lines are watched by it, or a trace of the
call is made: that takes its events from here, since a thread is traced by one function at a time.
"""

import bdb
import dis
import inspect
import sys
from collections.abc import Container
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, Protocol

from .debug_trace import Tracer

RESUMING = frozenset({"next", "step", "return", "until", "continue"})


WAITS: Final = "waits"
_PAUSES: Final = frozenset(
    {dis.opmap["YIELD_VALUE"], dis.opmap["RESUME"]}
)  # where a paused frame stands; the second: 3.13


class Why(NamedTuple):
    """The reason why a frame is stopped. `id` is that of the breakpoint, if it is one."""

    text: str
    id: int = 0


class StepListener(Protocol):
    """Listener that is notified of a stopped frame, and decides how it continues."""

    def stopped(self, frame: FrameType, why: Why, **more: Any) -> dict[str, Any]:  # Any: JSON
        """Return the command that lets the frame continue."""

    def watched(self, frame: FrameType) -> Why | None:
        """Return why a watched line stops, if it does."""


class Stepper(bdb.Bdb):
    """The stepper of one thread."""

    def __init__(
        self,
        listener: StepListener,
        own_paths: Container[str],
        woven: Container[tuple[str, int]],
        tracer: Tracer | None = None,
    ) -> None:
        super().__init__()
        self._listener = listener
        self._own_paths = own_paths
        self._woven = woven  # lines that are not of the source
        self._tracer = tracer
        self._why = Why("breakpoint")
        self.slow: set[CodeType] = set()  # code with watched lines

    def stop_in(self, frame: FrameType, why: Why) -> None:
        """Stop at the next line that runs in this frame, or in what it calls."""
        self._why = why
        self.set_trace(frame)

    def watch(self, *codes: CodeType) -> None:
        """Trace from now on, to see the lines of these codes."""
        is_new = not self.slow
        self.slow.update(codes)
        if is_new:
            self.reset()
            self.botframe = sys._getframe()
            self._set_stopinfo(self.botframe, None, -1)  # type: ignore[attr-defined] # bdb's own, in every version
            sys.settrace(self.trace_dispatch)

    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:  # Any: as `bdb` types it
        """Dispatch an event as in `bdb`, after a tracer has seen it."""
        follows = self._tracer is not None and self._tracer.sees(frame, event, arg)
        next_trace: Any = super().trace_dispatch(frame, event, arg)
        return self.trace_dispatch if next_trace is None and follows else next_trace

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop here as in `bdb`, in function code alone."""
        return frame.f_code.co_filename in self._own_paths and super().stop_here(frame)

    def break_anywhere(self, frame: FrameType) -> bool:
        """Return whether any line of the frame is watched."""
        return frame.f_code in self.slow

    def break_here(self, frame: FrameType) -> bool:
        """Return whether this line is watched and stops now."""
        why = self._listener.watched(frame) if frame.f_code in self.slow else None
        self._why = why or self._why
        return why is not None

    def user_line(self, frame: FrameType) -> None:
        """Handle a line that is about to run."""
        if (frame.f_code.co_filename, frame.f_lineno) not in self._woven:
            self._stop(frame, self._why)

    def user_return(self, frame: FrameType, value: object) -> None:
        """Handle a function that is about to return a value."""
        pause = _pause(frame, value)
        self._stop(frame, Why(pause or "return"), **({} if pause == WAITS else {"value": value}))

    def user_exception(self, frame: FrameType, info: Any) -> None:  # Any: as `bdb` types it
        """Handle an exception in a frame that is stepped through."""
        if not isinstance(info[1], StopIteration | GeneratorExit | StopAsyncIteration):
            self._stop(frame, Why("exception"), error=info[1])

    def _stop(self, frame: FrameType, why: Why, **more: Any) -> None:
        self._why = Why("step")
        command = self._listener.stopped(frame, why, **more)
        match command["do"]:
            case "next":
                self.set_next(frame)
            case "step":
                self.set_step()
            case "return":
                self.set_return(frame)
            case "until":
                self.set_until(frame, command.get("line") or None)
            case _:
                self._why = Why("breakpoint")
                self.set_continue()

    def set_continue(self) -> None:
        """Stop no longer, except at watched lines."""
        if self.slow or self._tracer is not None:
            self._set_stopinfo(self.botframe, None, -1)  # type: ignore[attr-defined] # as above
        else:
            super().set_continue()


def _pause(frame: FrameType, value: object) -> str:
    """Return what suspends a frame: it waits, or it yields. It is empty if the frame returns."""
    flags, code = frame.f_code.co_flags, frame.f_code.co_code
    if not flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return ""
    if frame.f_lasti < 0 or code[frame.f_lasti] not in _PAUSES:
        return ""
    yields = flags & inspect.CO_GENERATOR or type(value).__name__ == "async_generator_wrapped_value"
    return "yields" if yields else WAITS

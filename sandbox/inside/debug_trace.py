"""Tracing in a worker: a trace of a call, and stepping with the standard library's `bdb`.

A trace has each line once, with its count and the first and last changes of locals, so its size depends on the number
of lines, not on how often they ran. For coverage only the lines count. Stepping stops only in function code; tracing
for it starts at the first stop and ends at `continue`, unless lines are watched or the call is traced. A traced call
gets its events through the stepper, because a thread can have only one trace function.
"""

import bdb
import dis
import inspect
import sys
import threading
import time
from collections.abc import Callable, Container
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, Protocol

from ..wire.caps import ITEM, MOST_CHANGES, MOST_CLAIM, MOST_NAME, MOST_ROWS
from .debug_stop import text_of

_NO_LINES: Final = frozenset({"<module>", "__annotate__"})  # the second evaluates annotations since Python 3.14
_MOST_TOLD: Final = MOST_CLAIM * 4 // 5  # characters of all rows; the rest is for the executable lines
_CAREFUL: Final = 200  # runs of a line with checked changes; after that, only the frame's end is checked
_TELL_EVERY_S: Final = 0.5  # interval of reports, because a call may never end
_LOOK_EVERY: Final = 512  # lines between two looks at the clock
_SUSPENDS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SIMPLE = (int, float, str, bool, bytes, complex, type(None))


class TraceRow:
    """One line of one function."""

    __slots__ = ("count", "first", "function", "last", "line", "names", "path")

    def __init__(self, path: str, line: int, function: str) -> None:
        self.path, self.line, self.function = path, line, function
        self.count = 0
        self.first: list[list[str]] = []
        self.last: list[list[str]] = []
        self.names: set[str] = set()  # locals that it changes

    def size(self) -> int:
        """Return the approximate number of characters of its JSON."""
        pairs = sum(len(name) + len(text) + 3 * ITEM for values in (self.first, self.last) for name, text in values)
        return len(self.path) + len(self.function) + 7 * ITEM + pairs


class FrameState:
    """The state of a frame: the running line, and the locals before it."""

    __slots__ = ("is_behind", "row", "texts", "values")

    def __init__(self) -> None:
        self.row = TraceRow("", 0, "")
        self.values: dict[str, Any] = {}  # Any: any value of function code
        self.texts: dict[str, str] = {}
        self.is_behind = False

    def changes(self, frame: FrameType) -> list[list[str]]:
        """Return the changed locals with short texts of their values."""
        changed = []
        for name, value in list(frame.f_locals.items())[:MOST_CHANGES]:
            is_unchanged = name in self.values and self.values[name] is value and type(value) in _SIMPLE
            if is_unchanged or name.startswith(("__", ".")):
                continue
            text = text_of(name, value)
            if self.texts.get(name) != text:
                changed.append([name, text])
            self.values[name], self.texts[name] = value, text
        return changed


class Tracer:
    """A tracer of function code in the thread that starts it, and in threads that start later."""

    def __init__(
        self,
        own_paths: Container[str],
        woven: Container[tuple[str, int]],
        mode: str,
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        self._own_paths = own_paths
        self._woven = woven  # inserted lines, which are not in the source
        self._covers = mode == "cover"
        self._tell = tell
        self._rows: dict[tuple[CodeType, int], TraceRow] = {}
        self._states: dict[FrameType, FrameState] = {}
        self._seen = 0
        self._told_at = time.monotonic()
        self._dropped = False

    def start(self) -> None:
        """Start tracing."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        """Stop tracing."""
        sys.settrace(None)
        threading.settrace(None)
        self._states.clear()

    def sees(self, frame: FrameType, event: str, value: object) -> bool:
        """Process an event from another trace function. Return whether more events of this frame are wanted."""
        follow = self._call(frame, event, value)
        if follow is not None and event != "call":
            follow(frame, event, value)
        return follow is not None

    def told(self) -> dict[str, Any]:  # Any: JSON
        """Return the rows as JSON, cut to the size limit."""
        rows: list[list[Any]] = []
        budget = _MOST_TOLD
        for row in self._rows.values():
            budget -= row.size()
            if budget < 0:
                return {"rows": rows, "cut": True}
            rows.append([row.path, row.line, row.function, row.count, row.first, row.last])
        return {"rows": rows, "cut": self._dropped}

    def _call(self, frame: FrameType, event: str, _value: object) -> Any:  # Any: a trace function
        if frame.f_code.co_filename not in self._own_paths or frame.f_code.co_name in _NO_LINES:
            return None
        return self._cover if self._covers else self._line

    def _cover(self, frame: FrameType, event: str, _value: object) -> Any:
        if event == "line":
            self._row(frame).count += 1
        return self._cover

    def _line(self, frame: FrameType, event: str, _value: object) -> Any:
        if event == "line" and (frame.f_code.co_filename, frame.f_lineno) in self._woven:
            return self._line
        if event == "line":
            state = self._note(frame)
            state.row = self._row(frame)
            state.row.count += 1
            self._seen += 1
            if self._seen % _LOOK_EVERY == 0 and time.monotonic() - self._told_at >= _TELL_EVERY_S:
                self._told_at = time.monotonic()
                self._tell(self.told())
        elif event == "return":
            state = self._note(frame, at_end=True)
            # For lines that ran too often to be checked each time, use the values at the end of the frame.
            for (code, _), row in self._rows.items():
                if code is frame.f_code and row.count > _CAREFUL and row.names:
                    named = sorted(row.names & state.texts.keys())[:MOST_CHANGES]
                    row.last = [[name, state.texts[name]] for name in named]
            if not frame.f_code.co_flags & _SUSPENDS:
                self._states.pop(frame, None)
        return self._line

    def _row(self, frame: FrameType) -> TraceRow:
        key = frame.f_code, frame.f_lineno
        row = self._rows.get(key)
        if row is None:
            row = TraceRow(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname[:MOST_NAME])
            if len(self._rows) < MOST_ROWS:
                self._rows[key] = row
            else:
                self._dropped = True
        return row

    def _note(self, frame: FrameType, *, at_end: bool = False) -> "FrameState":
        """Record the changes made by the previous line."""
        state = self._states.setdefault(frame, FrameState())
        row = state.row
        if row.count > _CAREFUL and not at_end:
            state.is_behind = True
            return state
        changed = state.changes(frame)
        if changed and row.line and not state.is_behind:
            row.first = row.first or changed
            row.last = changed
            row.names |= {name for name, _ in changed}
        state.is_behind = False  # unobserved changes belong to no line
        return state


def lines_of_code(code: CodeType) -> list[int]:
    """Return the executable lines of a function, including those of functions defined in it."""
    own = {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}
    return sorted(
        own.union(*(lines_of_code(constant) for constant in code.co_consts if isinstance(constant, CodeType)))
    )


RESUMING = frozenset({"next", "step", "return", "until", "continue"})


WAITS: Final = "waits"
_PAUSES: Final = frozenset(
    {dis.opmap["YIELD_VALUE"], dis.opmap["RESUME"]}
)  # last instruction of a paused frame; the second in 3.13


class Why(NamedTuple):
    """The reason for a stop. `id` is that of the breakpoint, or 0."""

    text: str
    id: int = 0


class StepListener(Protocol):
    """A listener that is notified of a stopped frame and decides how it continues."""

    def stopped(self, frame: FrameType, why: Why, **more: Any) -> dict[str, Any]:  # Any: JSON
        """Handle a stop and return the command with which the frame continues."""

    def watched(self, frame: FrameType) -> Why | None:
        """Return the reason to stop at a watched line, or None."""


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
        self._woven = woven  # inserted lines, which are not in the source
        self._tracer = tracer
        self._why = Why("breakpoint")
        self.slow: set[CodeType] = set()  # code with watched lines

    def stop_in(self, frame: FrameType, why: Why) -> None:
        """Stop at the next line that runs in this frame or in a function that it calls."""
        self._why = why
        self.set_trace(frame)

    def watch(self, *codes: CodeType) -> None:
        """Start tracing for the lines of these code objects."""
        is_new = not self.slow
        self.slow.update(codes)
        if is_new:
            self.reset()
            self.botframe = sys._getframe()
            self._set_stopinfo(self.botframe, None, -1)  # type: ignore[attr-defined] # private, but in every version
            sys.settrace(self.trace_dispatch)

    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:  # Any: as `bdb` types it
        """Dispatch an event as `bdb` does, after the tracer has processed it."""
        follows = self._tracer is not None and self._tracer.sees(frame, event, arg)
        next_trace: Any = super().trace_dispatch(frame, event, arg)
        return self.trace_dispatch if next_trace is None and follows else next_trace

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop here, as `bdb` decides, but only in function code."""
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
        """Stop only at watched lines from now on."""
        if self.slow or self._tracer is not None:
            self._set_stopinfo(self.botframe, None, -1)  # type: ignore[attr-defined] # as above
        else:
            super().set_continue()


def _pause(frame: FrameType, value: object) -> str:
    """Return how a frame is suspended, `waits` or `yields`, or "" if it returns."""
    flags, code = frame.f_code.co_flags, frame.f_code.co_code
    if not flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return ""
    if frame.f_lasti < 0 or code[frame.f_lasti] not in _PAUSES:
        return ""
    yields = flags & inspect.CO_GENERATOR or type(value).__name__ == "async_generator_wrapped_value"
    return "yields" if yields else WAITS

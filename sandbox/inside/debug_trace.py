"""A trace of a call: each line once, with its count and the first and last changes of locals.

The report is bounded by the lines that there are, not by how often they ran. For coverage only the lines count.
"""

import inspect
import sys
import threading
import time
from collections.abc import Callable, Container
from types import CodeType, FrameType
from typing import Any, Final

from ..wire.caps import ITEM, MOST_CHANGES, MOST_CLAIM, MOST_NAME, MOST_ROWS
from .debug_stop import text_of

_MOST_TOLD: Final = MOST_CLAIM * 4 // 5  # of all rows: the lines that can run are reported with them
_CAREFUL: Final = 200  # times that a line's changes are looked at; after that only at the frame's end
_TELL_EVERY_S: Final = 0.5  # of a call that may never end
_LOOK_EVERY: Final = 512  # lines
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
        self.names: set[str] = set()  # that it changes

    def size(self) -> int:
        """Return the approximate number of characters of its published form."""
        pairs = sum(len(name) + len(text) + 3 * ITEM for values in (self.first, self.last) for name, text in values)
        return len(self.path) + len(self.function) + 7 * ITEM + pairs


class FrameState:
    """The state of a frame: the line that runs, and its locals before it."""

    __slots__ = ("is_behind", "row", "texts", "values")

    def __init__(self) -> None:
        self.row = TraceRow("", 0, "")
        self.values: dict[str, Any] = {}  # Any: any value of function code
        self.texts: dict[str, str] = {}
        self.is_behind = False

    def changes(self, frame: FrameType) -> list[list[str]]:
        """Return the locals that changed, with their short texts."""
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
    """Tracer of function code in the thread that starts it, and in those that begin after."""

    def __init__(
        self,
        own_paths: Container[str],
        woven: Container[tuple[str, int]],
        mode: str,
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        self._own_paths = own_paths
        self._woven = woven  # lines that are not of the source
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
        """Process an event of someone else's tracing. Return whether more of this frame are wanted."""
        follow = self._call(frame, event, value)
        if follow is not None and event != "call":
            follow(frame, event, value)
        return follow is not None

    def told(self) -> dict[str, Any]:  # Any: JSON
        """Return the rows in the form in which they are sent."""
        rows: list[list[Any]] = []
        budget = _MOST_TOLD
        for row in self._rows.values():
            budget -= row.size()
            if budget < 0:
                return {"rows": rows, "cut": True}
            rows.append([row.path, row.line, row.function, row.count, row.first, row.last])
        return {"rows": rows, "cut": self._dropped}

    def _call(self, frame: FrameType, event: str, _value: object) -> Any:  # Any: a trace function
        if frame.f_code.co_filename not in self._own_paths or frame.f_code.co_name == "<module>":
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
            self._sometimes_tell()
        elif event == "return":
            self._settle(frame, self._note(frame, at_end=True))
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
        """Record what the previous line changed."""
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
        state.is_behind = False  # what changed unseen belongs to no line
        return state

    def _settle(self, frame: FrameType, state: "FrameState") -> None:
        """Set the last values of lines that ran too often to be checked each time to those at the end."""
        for (code, _), row in self._rows.items():
            if code is frame.f_code and row.count > _CAREFUL and row.names:
                row.last = [[name, state.texts[name]] for name in sorted(row.names & state.texts.keys())[:MOST_CHANGES]]

    def _sometimes_tell(self) -> None:
        self._seen += 1
        if self._seen % _LOOK_EVERY or time.monotonic() - self._told_at < _TELL_EVERY_S:
            return
        self._told_at = time.monotonic()
        self._tell(self.told())


def lines_of_code(code: CodeType) -> list[int]:
    """Return the executable lines of a function, including those of functions defined in it."""
    own = {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}
    return sorted(
        own.union(*(lines_of_code(constant) for constant in code.co_consts if isinstance(constant, CodeType)))
    )

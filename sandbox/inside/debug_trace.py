"""What a call did, line by line: each line once, with how often it ran and what the locals became first and last.

What is told is bounded by the lines that there are, not by how often they ran. For coverage only the lines count.
"""

import inspect
import sys
import threading
import time
from collections.abc import Callable, Container
from types import CodeType, FrameType
from typing import Any, Final

from ..caps import ITEM, MOST_CHANGES, MOST_CLAIM, MOST_NAME, MOST_ROWS
from .debug_stop import text_of

_MOST_TOLD: Final = MOST_CLAIM * 4 // 5  # of all rows: the lines that can run are told with them
_CAREFUL: Final = 200  # times that a line's changes are looked at; after that only at the frame's end
_TELL_EVERY_S: Final = 0.5  # of a call that may never end
_LOOK_EVERY: Final = 512  # lines
_SUSPENDS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SIMPLE = (int, float, str, bool, bytes, complex, type(None))


class Row:
    """One line of one function."""

    __slots__ = ("count", "first", "function", "last", "line", "names", "path")

    def __init__(self, path: str, line: int, function: str) -> None:
        self.path, self.line, self.function = path, line, function
        self.count = 0
        self.first: list[list[str]] = []
        self.last: list[list[str]] = []
        self.names: set[str] = set()  # that it changes

    def size(self) -> int:
        """About how many characters it has when it is told."""
        pairs = sum(len(name) + len(text) + 3 * ITEM for held in (self.first, self.last) for name, text in held)
        return len(self.path) + len(self.function) + 7 * ITEM + pairs


class State:
    """What is known of a frame: the line that runs, and its locals as they were before it."""

    __slots__ = ("is_behind", "row", "texts", "values")

    def __init__(self) -> None:
        self.row = Row("", 0, "")
        self.values: dict[str, Any] = {}  # Any: any value of function code
        self.texts: dict[str, str] = {}
        self.is_behind = False

    def changes(self, frame: FrameType) -> list[list[str]]:
        """The locals that are different now, with their short texts."""
        changed = []
        for name, value in list(frame.f_locals.items())[:MOST_CHANGES]:
            known = name in self.values and self.values[name] is value and type(value) in _SIMPLE
            if known or name.startswith(("__", ".")):
                continue
            text = text_of(name, value)
            if self.texts.get(name) != text:
                changed.append([name, text])
            self.values[name], self.texts[name] = value, text
        return changed


class Tracer:
    """Follows the function code of the thread that starts it, and of those that begin after."""

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
        self._rows: dict[tuple[CodeType, int], Row] = {}
        self._states: dict[FrameType, State] = {}
        self._seen = 0
        self._told_at = time.monotonic()
        self._dropped = False

    def start(self) -> None:
        """From now on."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        """No more."""
        sys.settrace(None)
        threading.settrace(None)
        self._states.clear()

    def sees(self, frame: FrameType, event: str, value: object) -> bool:
        """Take an event that somebody else is traced with; whether more of this frame are wanted."""
        follow = self._call(frame, event, value)
        if follow is not None and event != "call":
            follow(frame, event, value)
        return follow is not None

    def told(self) -> dict[str, Any]:  # Any: JSON
        """The rows as they cross."""
        rows: list[list[Any]] = []
        left = _MOST_TOLD
        for one in self._rows.values():
            left -= one.size()
            if left < 0:
                return {"rows": rows, "cut": True}
            rows.append([one.path, one.line, one.function, one.count, one.first, one.last])
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

    def _row(self, frame: FrameType) -> Row:
        key = frame.f_code, frame.f_lineno
        row = self._rows.get(key)
        if row is None:
            row = Row(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname[:MOST_NAME])
            if len(self._rows) < MOST_ROWS:
                self._rows[key] = row
            else:
                self._dropped = True
        return row

    def _note(self, frame: FrameType, *, at_end: bool = False) -> "State":
        """What the line before changed."""
        state = self._states.setdefault(frame, State())
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

    def _settle(self, frame: FrameType, state: "State") -> None:
        """Of lines that ran too often to be looked at each time, the last values are those at the end."""
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
    """The lines of a function that can run, those of what is defined in it too."""
    own = {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}
    return sorted(own.union(*(lines_of_code(one) for one in code.co_consts if isinstance(one, CodeType))))

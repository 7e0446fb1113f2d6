"""Descriptions of a stopped frame, and queries on it: all of it here, under this confinement.

Values become short texts here; a representation that fails, loops or is huge is this call's own trouble.
"""

import inspect
import pprint
import reprlib
import sys
from collections.abc import Container
from types import CodeType, FrameType
from typing import Any

from ..wire import caps
from .context import Context
from .edge import Interruptible, attempt
from .failure import clean, message_of, short

EVALUATING = Interruptible()  # by the human's Ctrl-C
_HAS_PROXY = sys.version_info >= (3, 13)  # a frame's locals are written through

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = 200
_shortener.maxlevel = 4
_shortener.maxlist = _shortener.maxdict = _shortener.maxtuple = _shortener.maxset = 12


class StackStop:
    """A stack at one moment, its own frames only, the outermost first. `last` is the stopped frame."""

    def __init__(self, frames: list[tuple[FrameType, int]], *, is_live: bool = True) -> None:
        self._frames = frames[-caps.MOST_STACK :]
        self._is_live = is_live
        self._locals = {id(frame): frame.f_locals for frame, _ in self._frames}  # once: asking again undoes `set`

    @classmethod
    def at(cls, frame: FrameType, own_paths: Container[str]) -> "StackStop":
        """Return the stack at a frame."""
        frames: list[tuple[FrameType, int]] = []
        current: FrameType | None = frame
        while current is not None:
            if current.f_code.co_filename in own_paths:
                frames.append((current, current.f_lineno))
            current = current.f_back
        return cls(frames[::-1])

    def frames(self) -> list[list[Any]]:
        """Return path, line and function of each frame."""
        return [
            [frame.f_code.co_filename, line or 0, clean(frame.f_code.co_qualname)[: caps.MOST_NAME]]
            for frame, line in self._frames
        ]

    def locals(self, number: int) -> list[list[str]]:
        """Return the names of a frame with short texts of their values, arguments first."""
        frame = self._frame(number)
        items = self._locals[id(frame)].items()
        pairs = [(name, value) for name, value in items if not name.startswith("__") and not isinstance(value, Context)]
        return [[_name(name), text_of(name, value)] for name, value in pairs[: caps.MOST_SEEN]]

    def arguments(self, number: int) -> int:
        """Return how many of the locals are arguments."""
        frame = self._frame(number)
        code, receiver = frame.f_code, self._locals[id(frame)].get("self")
        starred = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return code.co_argcount + code.co_kwonlyargcount + starred - isinstance(receiver, Context)

    def names(self, number: int) -> list[str]:
        """Return the names that can be typed here, for completion."""
        frame = self._frame(number)
        names = {*self._locals[id(frame)], *frame.f_globals}
        return sorted(_name(name) for name in names if name.isidentifier())[: caps.MOST_NAMES]

    def value(self, number: int, expression: str, *, pretty: bool = False) -> str:
        """Return the text of an expression's value in a frame, or of its error."""
        result = EVALUATING.attempt(lambda: self._evaluated(number, expression))
        if isinstance(result, BaseException):
            return _error(result)
        text = EVALUATING.attempt(lambda: pprint.pformat(result[0], width=100) if pretty else repr(result[0]))
        return _cut(text) if isinstance(text, str) else f"<{type(result[0]).__name__}, whose repr failed>"

    def shown(self, expressions: list[str], number: int = -1) -> list[list[str]]:
        """Return expressions with short texts of their values."""
        return [
            [expression, self.value(number, expression)[: caps.MOST_SEEN_TEXT]]
            for expression in expressions[: caps.MOST_SEEN]
        ]

    def set(self, number: int, name: str, expression: str) -> str:
        """Give a local another value. Return an empty string, or why it failed."""
        frame = self._frame(number)
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        if frame is not self._frames[-1][0] and not _HAS_PROXY:
            return "only the locals of the frame that stands still can be set with this version of Python"
        if not name.isidentifier() or (name not in frame.f_code.co_varnames + frame.f_code.co_cellvars):
            where = clean(frame.f_code.co_name)
            return (
                f"{clean(name)} is no local name of {where}: no line there would read it. `locals` lists those that are"
            )
        result = EVALUATING.attempt(lambda: self._evaluated(number, expression))
        if isinstance(result, BaseException):
            return _error(result)
        self._locals[id(frame)][name] = result[0]
        return ""

    def act(self, number: int, statement: str) -> str:
        """Change or delete an item or an attribute. Return an empty string, or why it failed."""
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        frame = self._frame(number)
        names = {**frame.f_globals, **self._locals[id(frame)]}
        code = attempt(lambda: compile(statement, "<debug>", "exec", dont_inherit=True))
        result = (
            EVALUATING.attempt(lambda: exec(code, names)) if isinstance(code, CodeType) else code
        )  # in the confined worker
        return _error(result) if isinstance(result, BaseException) else ""

    def _evaluated(self, number: int, expression: str) -> tuple[Any]:  # Any: any value of function code
        frame = self._frame(number)
        names = {**frame.f_globals, **self._locals[id(frame)]}  # as one: comprehensions see locals too
        return (eval(compile(expression.strip(), "<debug>", "eval", dont_inherit=True), names),)  # noqa: S307 - in the confined worker

    def _frame(self, number: int) -> FrameType:
        return self._frames[number if -len(self._frames) <= number < len(self._frames) else -1][0]


def text_of(name: str, value: object) -> str:
    """Return a short text of a local. A value with a name that sounds secret is not shown unasked."""
    return short(name, value, _shortener, caps.MOST_SEEN_TEXT)


def _name(text: str) -> str:
    return clean(text)[: caps.MOST_SEEN_NAME]


def _error(error: BaseException) -> str:
    typed = isinstance(error, SyntaxError) and error.filename == "<debug>"
    return _cut(f"*** {type(error).__name__}: {getattr(error, 'msg', '') if typed else message_of(error)}")


def _cut(text: str) -> str:
    cleaned = clean(text[: caps.MOST_ANSWER + 1])
    return cleaned if len(cleaned) <= caps.MOST_ANSWER else f"{cleaned[: caps.MOST_ANSWER - 1]}…"

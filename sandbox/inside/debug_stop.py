"""What is told of a frame that stands still, and what can be asked of it: all of it here, under this confinement.

Values become short texts here; a representation that fails, loops or is huge is this call's own trouble.
"""

import inspect
import pprint
import reprlib
import sys
from collections.abc import Container
from types import CodeType, FrameType
from typing import Any

from .. import caps
from .context import Context
from .edge import Interruptible, attempt
from .failure import clean, message_of, short

EVALUATING = Interruptible()  # by the human's Ctrl-C
_HAS_PROXY = sys.version_info >= (3, 13)  # a frame's locals are written through

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = 200
_shortener.maxlevel = 4
_shortener.maxlist = _shortener.maxdict = _shortener.maxtuple = _shortener.maxset = 12


class Stop:
    """A stack at one moment, its own frames only, the outermost first; `last` is the one that stands still."""

    def __init__(self, frames: list[tuple[FrameType, int]], *, is_live: bool = True) -> None:
        self._frames = frames[-caps.MOST_STACK :]
        self._is_live = is_live
        self._locals = {id(frame): frame.f_locals for frame, _ in self._frames}  # once: asking again undoes `set`

    @classmethod
    def at(cls, frame: FrameType, own_paths: Container[str]) -> "Stop":
        """The stack below a frame."""
        found: list[tuple[FrameType, int]] = []
        one: FrameType | None = frame
        while one is not None:
            if one.f_code.co_filename in own_paths:
                found.append((one, one.f_lineno))
            one = one.f_back
        return cls(found[::-1])

    def frames(self) -> list[list[Any]]:
        """Path, line and function of each."""
        return [
            [one.f_code.co_filename, line or 0, clean(one.f_code.co_qualname)[: caps.MOST_NAME]]
            for one, line in self._frames
        ]

    def locals(self, number: int) -> list[list[str]]:
        """The names of a frame with short texts of their values, arguments first."""
        frame = self._frame(number)
        found = self._locals[id(frame)].items()
        held = [(name, one) for name, one in found if not name.startswith("__") and not isinstance(one, Context)]
        return [[_name(name), text_of(name, value)] for name, value in held[: caps.MOST_SEEN]]

    def arguments(self, number: int) -> int:
        """How many of the locals are arguments."""
        frame = self._frame(number)
        code, given = frame.f_code, self._locals[id(frame)].get("self")
        starred = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return code.co_argcount + code.co_kwonlyargcount + starred - isinstance(given, Context)

    def names(self, number: int) -> list[str]:
        """What can be typed here, for completion."""
        frame = self._frame(number)
        names = {*self._locals[id(frame)], *frame.f_globals}
        return sorted(_name(name) for name in names if name.isidentifier())[: caps.MOST_NAMES]

    def value(self, number: int, expression: str, *, pretty: bool = False) -> str:
        """The text of what an expression gives in a frame; of its error, if it has one."""
        made = EVALUATING.attempt(lambda: self._evaluated(number, expression))
        if isinstance(made, BaseException):
            return _error(made)
        text = EVALUATING.attempt(lambda: pprint.pformat(made[0], width=100) if pretty else repr(made[0]))
        return _cut(text) if isinstance(text, str) else f"<{type(made[0]).__name__}, whose repr failed>"

    def shown(self, expressions: list[str], number: int = -1) -> list[list[str]]:
        """Expressions with their values, short."""
        return [[one, self.value(number, one)[: caps.MOST_SEEN_TEXT]] for one in expressions[: caps.MOST_SEEN]]

    def set(self, number: int, name: str, expression: str) -> str:
        """Give a local another value; empty, or why not."""
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
        made = EVALUATING.attempt(lambda: self._evaluated(number, expression))
        if isinstance(made, BaseException):
            return _error(made)
        self._locals[id(frame)][name] = made[0]
        return ""

    def act(self, number: int, statement: str) -> str:
        """Give an item or an attribute another value, or take it away; empty, or why not."""
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        frame = self._frame(number)
        names = {**frame.f_globals, **self._locals[id(frame)]}
        code = attempt(lambda: compile(statement, "<debug>", "exec", dont_inherit=True))
        made = (
            EVALUATING.attempt(lambda: exec(code, names)) if isinstance(code, CodeType) else code
        )  # in the confined worker
        return _error(made) if isinstance(made, BaseException) else ""

    def _evaluated(self, number: int, expression: str) -> tuple[Any]:  # Any: any value of function code
        frame = self._frame(number)
        names = {**frame.f_globals, **self._locals[id(frame)]}  # as one: comprehensions see locals too
        return (eval(compile(expression.strip(), "<debug>", "eval", dont_inherit=True), names),)  # noqa: S307 - in the confined worker

    def _frame(self, number: int) -> FrameType:
        return self._frames[number if -len(self._frames) <= number < len(self._frames) else -1][0]


def text_of(name: str, value: object) -> str:
    """A short text of a local; what sounds secret is not shown unasked."""
    return short(name, value, _shortener, caps.MOST_SEEN_TEXT)


def _name(text: str) -> str:
    return clean(text)[: caps.MOST_SEEN_NAME]


def _error(error: BaseException) -> str:
    typed = isinstance(error, SyntaxError) and error.filename == "<debug>"
    return _cut(f"*** {type(error).__name__}: {getattr(error, 'msg', '') if typed else message_of(error)}")


def _cut(text: str) -> str:
    told = clean(text[: caps.MOST_ANSWER + 1])
    return told if len(told) <= caps.MOST_ANSWER else f"{told[: caps.MOST_ANSWER - 1]}…"

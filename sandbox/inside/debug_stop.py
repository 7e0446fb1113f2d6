"""Breakpoints that are inserted into a function's code, and queries on the frame where it stops.

The function is recompiled from its text with a call before each armed statement, so other lines cost nothing. If that
is impossible (the function is wrapped beyond recognition, or is on one line), the line is watched by tracing instead.
Queries on a frame run inside the confinement, where values become short texts; a representation that fails, loops or
is huge affects only this call.
"""

import ast
import inspect
import pprint
import reprlib
import sys
import types
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final

from ..wire import caps
from .context import Context
from .edge import Interruptible, attempt
from .failure import clean, message_of, short

EVALUATING = Interruptible()  # evaluations that the user can interrupt with Ctrl-C
_HAS_PROXY = sys.version_info >= (3, 13)  # changes of `f_locals` take effect in the frame

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = 200
_shortener.maxlevel = 4
_shortener.maxlist = _shortener.maxdict = _shortener.maxtuple = _shortener.maxset = 12

_ARGUMENT: Final = 40  # characters of one argument in the stack


class StackStop:
    """A stack at one moment: only frames of function code, outermost first. The last one is the stopped frame."""

    def __init__(self, frames: list[tuple[FrameType, int]], *, is_live: bool = True) -> None:
        self._frames = frames[-caps.MOST_STACK :]
        self._is_live = is_live
        self._locals = {id(frame): frame.f_locals for frame, _ in self._frames}  # once: reading again undoes `set`

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
        """Return path, line, function and a short text of the arguments for each frame."""
        return [
            [
                frame.f_code.co_filename,
                line or 0,
                clean(frame.f_code.co_qualname)[: caps.MOST_NAME],
                self._arguments_text(number),
            ]
            for number, (frame, line) in enumerate(self._frames)
        ]

    def _arguments_text(self, number: int) -> str:
        """Return the arguments of a frame on one line; they distinguish the frames of a recursion."""
        pairs = self.locals(number)[: self.arguments(number)]
        return ", ".join(f"{name}={text[:_ARGUMENT]}" for name, text in pairs)[: caps.MOST_SEEN_NAME]

    def locals(self, number: int) -> list[list[str]]:
        """Return the names of a frame with short texts of their values, arguments first."""
        frame = self._frame(number)
        items = self._locals[id(frame)].items()
        pairs = [(name, value) for name, value in items if not name.startswith("__") and not isinstance(value, Context)]
        return [[_name(name), text_of(name, value)] for name, value in pairs[: caps.MOST_SEEN]]

    def arguments(self, number: int) -> int:
        """Return the number of locals that are arguments."""
        frame = self._frame(number)
        code, receiver = frame.f_code, self._locals[id(frame)].get("self")
        starred = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return code.co_argcount + code.co_kwonlyargcount + starred - isinstance(receiver, Context)

    def names(self, number: int) -> list[str]:
        """Return the visible names, for completion."""
        frame = self._frame(number)
        names = {*self._locals[id(frame)], *frame.f_globals}
        return sorted(_name(name) for name in names if name.isidentifier())[: caps.MOST_NAMES]

    def value(self, number: int, expression: str, *, pretty: bool = False) -> str:
        """Return the text of an expression's value in a frame, or of its error."""
        result = EVALUATING.attempt(lambda: self._evaluate(number, expression))
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
        """Assign a value to a local. Return "", or the reason for a failure."""
        frame = self._frame(number)
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        if frame is not self._frames[-1][0] and not _HAS_PROXY:
            return "only the locals of the innermost frame can be set with this version of Python"
        if not name.isidentifier() or (name not in frame.f_code.co_varnames + frame.f_code.co_cellvars):
            where = clean(frame.f_code.co_name)
            return (
                f"{clean(name)} is no local name of {where}: no line there would read it. `locals` lists those that are"
            )
        result = EVALUATING.attempt(lambda: self._evaluate(number, expression))
        if isinstance(result, BaseException):
            return _error(result)
        self._locals[id(frame)][name] = result[0]
        return ""

    def act(self, number: int, statement: str) -> str:
        """Run a statement that changes or deletes an item or attribute. Return "", or the reason for a failure."""
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        frame = self._frame(number)
        names = {**frame.f_globals, **self._locals[id(frame)]}
        code = attempt(lambda: compile(statement, "<debug>", "exec", dont_inherit=True))
        result = (
            EVALUATING.attempt(lambda: exec(code, names)) if isinstance(code, CodeType) else code
        )  # in the confined worker
        return _error(result) if isinstance(result, BaseException) else ""

    def _evaluate(self, number: int, expression: str) -> tuple[Any]:  # Any: any value of function code
        frame = self._frame(number)
        own = self._locals[id(frame)]
        names = {**frame.f_globals, **own}  # as globals, so that comprehensions see locals, too
        for name, listing in {"locals": lambda: {**own}, "vars": _or(vars, own), "dir": _or(dir, own)}.items():
            names.setdefault(name, listing)  # for the function's names, not those of this evaluation
        return (eval(compile(expression.strip(), "<debug>", "eval", dont_inherit=True), names),)  # noqa: S307 - in the confined worker

    def _frame(self, number: int) -> FrameType:
        return self._frames[number if -len(self._frames) <= number < len(self._frames) else -1][0]


def text_of(name: str, value: object) -> str:
    """Return a short text of a local. The value of a name that sounds secret is masked."""
    return short(name, value, _shortener, caps.MOST_SEEN_TEXT)


def _name(text: str) -> str:
    return clean(text)[: caps.MOST_SEEN_NAME]


def _error(error: BaseException) -> str:
    typed = isinstance(error, SyntaxError) and error.filename == "<debug>"
    return _cut(f"*** {type(error).__name__}: {getattr(error, 'msg', '') if typed else message_of(error)}")


def _cut(text: str) -> str:
    cleaned = clean(text[: caps.MOST_ANSWER + 1])
    return cleaned if len(cleaned) <= caps.MOST_ANSWER else f"{cleaned[: caps.MOST_ANSWER - 1]}…"


HIT: Final = "__knapper_hit__"
_FUTURE: Final = 0x1FF0000  # the flags of `from __future__ import …`
_DEPTH: Final = 50


@dataclass(slots=True)
class ArmedPoint:
    """One breakpoint from the host. `text` is its function's text, which begins at line `first`."""

    id: int
    module: str
    function: str
    text: str
    first: int
    line: int
    condition: str = ""
    expressions: list[str] = field(default_factory=list)
    after: int = 0  # hits to skip first
    every: int = 1
    once: bool = False
    hits: int = 0
    off: bool = False

    def counts(self) -> bool:
        """Count a hit. Return whether the breakpoint stops at it."""
        self.hits += 1
        is_due = not self.off and self.hits > self.after and not (self.hits - self.after - 1) % self.every
        self.off |= is_due and self.once
        return is_due


def plain_function(value: object) -> types.FunctionType | None:
    """Return the function inside of decorators, or None if there is none."""
    for _ in range(_DEPTH):
        inner = getattr(value, "__wrapped__", None)
        if inner is None:
            break
        value = inner
    return value if isinstance(value, types.FunctionType) else None


def woven(function: types.FunctionType, points: Sequence[ArmedPoint]) -> types.CodeType | None:
    """Return the function's code with inserted breakpoints, or None if that is impossible."""
    code, text, first = function.__code__, points[0].text, points[0].first
    try:
        tree = ast.parse(text)
        (top,) = tree.body
        ast.increment_lineno(tree, first - 1)
        if code.co_freevars or not isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        places = {point.line: [candidate for candidate in points if candidate.line == point.line] for point in points}
        lines = set(places) - {code.co_firstlineno, top.lineno}
        done: set[int] = set()
        if len(lines) == len(places):
            _weave(top, places, code.co_firstlineno, done)
        module_code = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    codes = [
        constant
        for constant in module_code.co_consts
        if isinstance(constant, types.CodeType) and constant.co_name == function.__name__
    ]
    fits = len(codes) == 1 and not codes[0].co_freevars and done == set(places)
    return codes[0] if fits else None


def _weave(node: ast.AST, places: dict[int, list[ArmedPoint]], fake: int, done: set[int]) -> None:
    """Insert the calls below a node. The lines found are added to `done`."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            setattr(
                node,
                name,
                [replacement for statement in value for replacement in _with_calls(statement, places, fake, done)],
            )
    for child in ast.iter_child_nodes(node):
        _weave(child, places, fake, done)


def _with_calls(statement: ast.stmt, places: dict[int, list[ArmedPoint]], fake: int, done: set[int]) -> list[ast.stmt]:
    points = places.get(statement.lineno, []) if statement.lineno not in done else []
    done |= {statement.lineno} if points else set()
    if isinstance(statement, ast.While):  # stop at each iteration, as debuggers do
        calls: list[ast.expr] = [_at(_call(point), fake) for point in points]
        statement.test = (
            ast.copy_location(ast.BoolOp(ast.Or(), [*calls, statement.test]), statement.test)
            if calls
            else statement.test
        )
        return [statement]
    return [*(_at(_conditional_call(point), fake) for point in points), statement]


def _call(point: ArmedPoint, *, failed: bool = False) -> ast.Call:
    return ast.Call(ast.Name(HIT, ast.Load()), [ast.Constant(point.id), ast.Constant(failed)], [])


def _conditional_call(point: ArmedPoint) -> ast.stmt:
    """Return the call, inside an `if` when the breakpoint has a condition."""
    if not point.condition:
        return ast.Expr(_call(point))
    test = ast.parse(point.condition, mode="eval").body
    conditional = ast.If(test, [ast.Expr(_call(point))], [])
    name = ast.Name("Exception", ast.Load())
    handler = ast.ExceptHandler(name, None, [ast.Expr(_call(point, failed=True))])
    return ast.Try([conditional], [handler], [], [])


def _at(node: Any, line: int) -> Any:  # Any: the same kind of node
    """Move a node and everything below it to a line outside the body, by which the tracer recognizes it."""
    for descendant in ast.walk(node):
        if isinstance(descendant, ast.stmt | ast.expr | ast.excepthandler):
            descendant.lineno = descendant.end_lineno = line
            descendant.col_offset = descendant.end_col_offset = 0
    return node


def by_function(points: Iterable[ArmedPoint]) -> dict[tuple[str, str], list[ArmedPoint]]:
    """Group breakpoints by module and function."""
    grouped: dict[tuple[str, str], list[ArmedPoint]] = {}
    for point in points:
        grouped.setdefault((point.module, point.function), []).append(point)
    return grouped


def _or(function: Callable[..., Any], own: Mapping[str, Any]) -> Callable[..., Any]:  # Any: values of function code
    """Return `vars` or `dir` that uses these names when called without an argument."""
    return lambda *values: function(*values) if values else ({**own} if function is vars else sorted(own))

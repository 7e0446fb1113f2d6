"""Breakpoints woven into a function's own code: a line without one costs nothing, a false condition little.

The function is compiled anew from its text with a call before each armed statement; where that cannot be done (it
is wrapped beyond recognition, or stands on one line) the line is watched by tracing instead.
"""

import ast
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

HIT: Final = "__toolwright_hit__"
_FUTURE: Final = 0x1FF0000  # the flags of `from __future__ import …`
_DEPTH: Final = 50


@dataclass(slots=True)
class Point:
    """One breakpoint as the host armed it; `text` is its function's, which begins at line `first`."""

    id: int
    module: str
    function: str
    text: str
    first: int
    line: int
    condition: str = ""
    expressions: list[str] = field(default_factory=list)
    after: int = 0  # hits that are passed over first
    every: int = 1
    once: bool = False
    hits: int = 0
    off: bool = False

    def counts(self) -> bool:
        """Whether this hit is one that is wanted."""
        self.hits += 1
        wanted = not self.off and self.hits > self.after and not (self.hits - self.after - 1) % self.every
        self.off |= wanted and self.once
        return wanted


def plain_function(value: object) -> types.FunctionType | None:
    """The function behind its decorators."""
    for _ in range(_DEPTH):
        inner = getattr(value, "__wrapped__", None)
        if inner is None:
            break
        value = inner
    return value if isinstance(value, types.FunctionType) else None


def woven(function: types.FunctionType, points: Sequence[Point]) -> types.CodeType | None:
    """The function's code with its points in it; None where they cannot be put there."""
    code, text, first = function.__code__, points[0].text, points[0].first
    try:
        tree = ast.parse(text)
        (top,) = tree.body
        ast.increment_lineno(tree, first - 1)
        if code.co_freevars or not isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        places = {one.line: [each for each in points if each.line == one.line] for one in points}
        lines = set(places) - {code.co_firstlineno, top.lineno}
        done: set[int] = set()
        if len(lines) == len(places):
            _weave(top, places, code.co_firstlineno, done)
        made = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = [one for one in made.co_consts if isinstance(one, types.CodeType) and one.co_name == function.__name__]
    fits = len(found) == 1 and not found[0].co_freevars and done == set(places)
    return found[0] if fits else None


def _weave(node: ast.AST, places: dict[int, list[Point]], fake: int, done: set[int]) -> None:
    """Put the calls in, below a node; `done` are the lines that were found."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            setattr(node, name, [each for one in value for each in _with_calls(one, places, fake, done)])
    for child in ast.iter_child_nodes(node):
        _weave(child, places, fake, done)


def _with_calls(one: ast.stmt, places: dict[int, list[Point]], fake: int, done: set[int]) -> list[ast.stmt]:
    points = places.get(one.lineno, []) if one.lineno not in done else []
    done |= {one.lineno} if points else set()
    if isinstance(one, ast.While):  # at each of its turns, as a debugger stops there
        calls: list[ast.expr] = [_at(_call(point), fake) for point in points]
        one.test = ast.copy_location(ast.BoolOp(ast.Or(), [*calls, one.test]), one.test) if calls else one.test
        return [one]
    return [*(_at(_asked(point), fake) for point in points), one]


def _call(point: Point, *, failed: bool = False) -> ast.Call:
    return ast.Call(ast.Name(HIT, ast.Load()), [ast.Constant(point.id), ast.Constant(failed)], [])


def _asked(point: Point) -> ast.stmt:
    """The call; only where the condition holds, if there is one."""
    if not point.condition:
        return ast.Expr(_call(point))
    test = ast.parse(point.condition, mode="eval").body
    asked = ast.If(test, [ast.Expr(_call(point))], [])
    name = ast.Name("Exception", ast.Load())
    handler = ast.ExceptHandler(name, None, [ast.Expr(_call(point, failed=True))])
    return ast.Try([asked], [handler], [], [])


def _at(node: Any, line: int) -> Any:  # Any: the kind of node that it was given
    """The node and all below it at a line that is no line of the body: the tracer knows it by that."""
    for one in ast.walk(node):
        if isinstance(one, ast.stmt | ast.expr | ast.excepthandler):
            one.lineno = one.end_lineno = line
            one.col_offset = one.end_col_offset = 0
    return node


def by_function(points: Iterable[Point]) -> dict[tuple[str, str], list[Point]]:
    """The points by module and function."""
    found: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        found.setdefault((point.module, point.function), []).append(point)
    return found

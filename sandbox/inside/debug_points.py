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
class ArmedPoint:
    """One breakpoint as the host armed it. `text` is its function's text, which begins at line `first`."""

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
        """Count this hit. Return whether it is due."""
        self.hits += 1
        is_due = not self.off and self.hits > self.after and not (self.hits - self.after - 1) % self.every
        self.off |= is_due and self.once
        return is_due


def plain_function(value: object) -> types.FunctionType | None:
    """Return the function behind its decorators."""
    for _ in range(_DEPTH):
        inner = getattr(value, "__wrapped__", None)
        if inner is None:
            break
        value = inner
    return value if isinstance(value, types.FunctionType) else None


def woven(function: types.FunctionType, points: Sequence[ArmedPoint]) -> types.CodeType | None:
    """Return the function's code with its breakpoints in it, or None if they cannot be inserted."""
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
    """Insert the calls below a node. `done` are the lines that were found."""
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
    if isinstance(statement, ast.While):  # at each of its turns, as a debugger stops there
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
    """Return the call, only run if the condition holds, if there is one."""
    if not point.condition:
        return ast.Expr(_call(point))
    test = ast.parse(point.condition, mode="eval").body
    conditional = ast.If(test, [ast.Expr(_call(point))], [])
    name = ast.Name("Exception", ast.Load())
    handler = ast.ExceptHandler(name, None, [ast.Expr(_call(point, failed=True))])
    return ast.Try([conditional], [handler], [], [])


def _at(node: Any, line: int) -> Any:  # Any: the kind of node that it was given
    """Return the node with all below it moved to a line outside of the body, by which the tracer recognizes it."""
    for descendant in ast.walk(node):
        if isinstance(descendant, ast.stmt | ast.expr | ast.excepthandler):
            descendant.lineno = descendant.end_lineno = line
            descendant.col_offset = descendant.end_col_offset = 0
    return node


def by_function(points: Iterable[ArmedPoint]) -> dict[tuple[str, str], list[ArmedPoint]]:
    """Return the breakpoints by module and function."""
    grouped: dict[tuple[str, str], list[ArmedPoint]] = {}
    for point in points:
        grouped.setdefault((point.module, point.function), []).append(point)
    return grouped

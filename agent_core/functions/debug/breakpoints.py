"""The breakpoints of a workspace; they follow their line when the function is edited.

A function can stop at the first lines of its statements, which follow from its text. A breakpoint is anchored to its
function and to the text of its line; if several lines have this text, the nearest to the old place is used. A
breakpoint whose line is gone stays, reports this, and is armed again if the line returns.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_core.base import matching, syntax
from agent_core.base.errors import UsageError
from sandbox import Point
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:
    from agent_core.registry.registry import Snapshot


@lru_cache(maxsize=256)
def stopping(text: str) -> dict[int, int]:
    """Return the lines (from 1) at which a function can stop, each with the last line of its statement."""
    try:
        top = syntax.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return {}
    last_lines: dict[int, int] = {}
    for statement in _statements(top):
        value = statement.value if isinstance(statement, ast.Expr) else None
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        if not is_text and not isinstance(statement, ast.Global | ast.Nonlocal):
            inner = [child.lineno for child in _statements(statement)]  # then only its head counts
            end = max(statement.lineno, min(inner) - 1) if inner else statement.end_lineno or statement.lineno
            last_lines.setdefault(statement.lineno, end)
    return dict(sorted(last_lines.items()))


def stopping_lines(name: str, snapshot: "Snapshot") -> list[tuple[int, str]]:
    """Return the lines of the file at which a function can stop, with their texts; empty for an unknown function."""
    function = snapshot.functions.get(name)
    if function is None:
        return []
    text = snapshot.text_of(function)
    rows = bare_lines(text)
    return [(line + function.line - 1, rows[line - 1]) for line in stopping(text)]


def nearest(text: str, line: int) -> int | None:
    """Return the stopping line for a line of the text: that of its statement, else the next one; 0 gives the first."""
    lines = stopping(text)
    inside = [first for first, last in lines.items() if first <= line <= last]
    return max(inside) if inside else next((first for first in lines if first >= line), None)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


MOST: Final = 50
MOST_EXPRESSIONS, MOST_CHARS = 10, 500
By: TypeAlias = Literal["human", "agent"]


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A breakpoint; `offset` is the last known line within the function, from 0.

    The first `after` hits are skipped, then each `every`-th counts; with `once`, it is removed after a hit.
    """

    id: int
    function: str
    anchor: str
    offset: int
    condition: str = ""
    expressions: tuple[str, ...] = ()
    after: int = 0
    every: int = 1
    once: bool = False
    by: By = "human"


@dataclass(frozen=True, slots=True)
class Placed:
    """A breakpoint at its current place; line 0 means that its line or its function is gone.

    `requested_line` is set if the breakpoint has just been set at another line than requested.
    """

    breakpoint: Breakpoint
    path: str = ""
    line: int = 0
    requested_line: int = 0

    @property
    def moved(self) -> str:
        """The reason why it is at another line than requested, or an empty text."""
        message = f"Nothing begins to run at line {self.requested_line}: it stops at {self.line}."
        return message if self.requested_line else ""

    @property
    def text(self) -> str:
        """Its place and conditions, on one line."""
        point = self.breakpoint
        where = f"{self.path}:{self.line} `{point.anchor}`" if self.line else f"its line `{point.anchor}` is gone"
        parts = [
            f"if {point.condition}" if point.condition else "",
            f"after {point.after}" if point.after else "",
            f"every {point.every}" if point.every > 1 else "",
            f"with {', '.join(point.expressions)}" if point.expressions else "",
            "once" if point.once else "",
        ]
        return " ".join([f"{point.id}: {point.function}, {where}", *filter(None, parts)])


class Breakpoints:
    """The breakpoints of one workspace, kept as long as the program runs."""

    def __init__(self) -> None:
        self._held: dict[int, Breakpoint] = {}
        self._last = 0

    def __bool__(self) -> bool:
        return bool(self._held)

    def arm(self, breakpoint_: Breakpoint, line: int, snapshot: "Snapshot") -> Placed:
        """Arm a breakpoint at a line of its module (0: the function's first); its ID and anchor are assigned here.

        It replaces one of the same kind at that line. A one-time breakpoint is kept along with a permanent one; if that
        stops at each hit anyway, the permanent one is returned.

        Raises:
            UsageError: there is no such function or line, or an expression is invalid.
        """
        function = snapshot.functions.get(breakpoint_.function)
        if function is None:
            fix = matching.did_you_mean(breakpoint_.function, snapshot.functions, "Type /functions for the list.")
            raise UsageError(f"There is no function `{breakpoint_.function}`.", fix=fix)
        _check_all(breakpoint_)
        text = snapshot.text_of(function)
        stop_line = nearest(text, line - function.line + 1 if line else 0)
        if stop_line is None or (line and not function.line <= line <= function.end_line):
            lines = [str(line + function.line - 1) for line in stopping(text)]
            raise UsageError(
                f"`{function.name}` does not stop at line {line}.",
                fix=f"It stops at {(', '.join(lines[:40]) or 'no line that can be found')}.",
            )
        place = breakpoint_.function, stop_line - 1
        line_points = [point for point in self._held.values() if (point.function, point.offset) == place]
        always = [
            point for point in line_points if not (point.once or point.condition or point.after) and point.every == 1
        ]
        if breakpoint_.once and always:
            return Placed(always[0], function.path, function.line + stop_line - 1)
        same = [point for point in line_points if point.once == breakpoint_.once]
        if not same and len(self._held) >= MOST:
            raise UsageError(f"{MOST} breakpoints are armed already.", fix="Clear some.")
        self._last += not same
        id = same[0].id if same else self._last
        armed_point = replace(breakpoint_, id=id, anchor=bare_lines(text)[stop_line - 1].strip(), offset=stop_line - 1)
        self._held[id] = armed_point
        at = function.line + stop_line - 1
        return Placed(armed_point, function.path, at, line if line != at else 0)

    def change(self, id: int, snapshot: "Snapshot", **fields: Any) -> Placed:  # Any: fields of a Breakpoint
        """Change the condition or counts of a breakpoint.

        Raises:
            UsageError: there is no breakpoint with this ID, or an expression is invalid.
        """
        if id not in self._held:
            raise UsageError(f"There is no breakpoint {id}.")
        point = replace(self._held[id], **fields)
        _check_all(point)
        self._held[id] = point
        return self._place(point, snapshot)[0]

    def clear(self, function: str = "", line: int = 0, snapshot: "Snapshot | None" = None, id: int = 0) -> list[Placed]:
        """Remove the breakpoints of a function, at a line of it, or with this ID; all if nothing is named."""
        placed = self.placed(snapshot) if snapshot else [Placed(point) for point in self._held.values()]
        matches = [
            placement
            for placement in placed
            if id in (0, placement.breakpoint.id)
            and function in ("", placement.breakpoint.function)
            and line in (0, placement.line)
        ]
        for placement in matches:
            del self._held[placement.breakpoint.id]
        return matches

    def hit(self, id: int) -> None:
        """Record a hit; a one-time breakpoint is removed."""
        if (point := self._held.get(id)) is not None and point.once:
            del self._held[id]

    def placed(self, snapshot: "Snapshot") -> list[Placed]:
        """Return all breakpoints at their current places."""
        return [self._place(point, snapshot)[0] for point in list(self._held.values())]

    def points(self, snapshot: "Snapshot") -> Iterator[Point]:
        """Yield the breakpoints in the form for a worker, including those in functions of nested calls."""
        for point in list(self._held.values()):
            placed, text = self._place(point, snapshot)
            if placed.line:
                function = snapshot.functions[point.function]
                yield Point(
                    point.id,
                    function.module,
                    function.name,
                    text,
                    function.line,
                    placed.line,
                    point.condition,
                    point.expressions,
                    point.after,
                    point.every,
                    point.once,
                )

    def _place(self, breakpoint_: Breakpoint, snapshot: "Snapshot") -> tuple[Placed, str]:
        function = snapshot.functions.get(breakpoint_.function)
        if function is None:
            return Placed(breakpoint_), ""
        text = snapshot.text_of(function)
        rows = bare_lines(text)
        same = [line for line in stopping(text) if rows[line - 1].strip() == breakpoint_.anchor]
        if not same:
            return Placed(breakpoint_, function.path), text
        line = min(same, key=lambda number: abs(number - 1 - breakpoint_.offset))
        if line - 1 != breakpoint_.offset:
            self._held[breakpoint_.id] = breakpoint_ = replace(breakpoint_, offset=line - 1)
        return Placed(breakpoint_, function.path, function.line + line - 1), text


def _check_all(breakpoint_: Breakpoint) -> None:
    acting = ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr
    for text in (breakpoint_.condition, *breakpoint_.expressions):
        if len(text) > MOST_CHARS:
            raise UsageError(
                f"`{text[:80]}` is no expression for a breakpoint: it has more than {MOST_CHARS} characters."
            )
        try:
            tree = syntax.parse(text, mode="eval") if text else ast.Expression(ast.Constant(0))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise UsageError(f"`{text[:80]}` is no expression: {error}.") from error
        if any(isinstance(node, acting) for node in ast.walk(tree)):
            raise UsageError(f"`{text[:80]}` is no expression for a breakpoint: it awaits, yields or binds.")
    if len(breakpoint_.expressions) > MOST_EXPRESSIONS or breakpoint_.after < 0 or breakpoint_.every < 1:
        raise UsageError(f"A breakpoint takes up to {MOST_EXPRESSIONS} expressions, and counts from 1.")

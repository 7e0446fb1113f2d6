"""What is armed in a workspace: breakpoints that follow their line when the function is edited above it, or in it.

A breakpoint is anchored to its function and to the text of its line; where the text stands several times, the one that
is nearest to the old place counts. One whose line is gone stays, says so, and is armed again should the line come back.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from sandbox import Point
from sandbox.lines import bare_lines

from .. import matching
from ..errors import UsageError
from ..registry.function import Function
from ..registry.snapshot import Snapshot
from .lines import nearest, stopping, text_of

MOST: Final = 50
MOST_EXPRESSIONS, MOST_CHARS = 10, 500
By: TypeAlias = Literal["human", "agent"]


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One breakpoint; `offset` is its line within the function, from 0, where it was last seen.

    The first `after` hits are passed over, then each `every`-th counts; `once` takes it away when it was hit.
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
    """A breakpoint as it stands now; line 0: its line, or its function, is gone.

    `asked` is the line that it was wanted at, where that is another one and it has just been set.
    """

    breakpoint: Breakpoint
    path: str = ""
    line: int = 0
    asked: int = 0

    @property
    def moved(self) -> str:
        """Why it is at another line than the one that was wanted; empty if it is not."""
        return f"Nothing begins to run at line {self.asked}: it stops at {self.line}." if self.asked else ""

    @property
    def text(self) -> str:
        """Where it is and when it stops, on one line."""
        held = self.breakpoint
        where = f"{self.path}:{self.line} `{held.anchor}`" if self.line else f"its line `{held.anchor}` is gone"
        parts = [
            f"if {held.condition}" if held.condition else "",
            f"after {held.after}" if held.after else "",
            f"every {held.every}" if held.every > 1 else "",
            f"with {', '.join(held.expressions)}" if held.expressions else "",
            "once" if held.once else "",
        ]
        return " ".join([f"{held.id}: {held.function}, {where}", *filter(None, parts)])


class Breakpoints:
    """The breakpoints of one workspace, for as long as the program runs."""

    def __init__(self) -> None:
        self._held: dict[int, Breakpoint] = {}
        self._last = 0

    def __bool__(self) -> bool:
        return bool(self._held)

    def arm(self, wanted: Breakpoint, line: int, snapshot: Snapshot) -> Placed:
        """Arm one at a line of its module (0: the function's first); its id and anchor are given here.

        It takes the place of one of its kind there; one that counts once stands beside one that stays, and where that
        stops at each hit anyway, that one is it.

        Raises:
            UsageError: there is no such function or line, or an expression cannot be read.
        """
        function = _function(wanted.function, snapshot)
        _check_all(wanted)
        text = text_of(function, snapshot)
        found = nearest(text, line - function.line + 1 if line else 0)
        if found is None or (line and not function.line <= line <= function.end_line):
            raise UsageError(
                f"`{function.name}` does not stop at line {line}.", mend=f"It stops at {_range(text, function)}."
            )
        there = [one for one in self._held.values() if one.function == wanted.function and one.offset == found - 1]
        if wanted.once and (stands := next(filter(_always, there), None)):
            return Placed(stands, function.path, function.line + found - 1)
        same = [one for one in there if one.once == wanted.once]
        if not same and len(self._held) >= MOST:
            raise UsageError(f"{MOST} breakpoints are armed already.", mend="Clear some.")
        self._last += not same
        id = same[0].id if same else self._last
        held = replace(wanted, id=id, anchor=bare_lines(text)[found - 1].strip(), offset=found - 1)
        self._held[id] = held
        at = function.line + found - 1
        return Placed(held, function.path, at, line if line != at else 0)

    def change(self, id: int, snapshot: Snapshot, **fields: Any) -> Placed:  # Any: fields of a Breakpoint
        """Give one another condition or other counts.

        Raises:
            UsageError: there is none of this id, or an expression cannot be read.
        """
        if id not in self._held:
            raise UsageError(f"There is no breakpoint {id}.")
        wanted = replace(self._held[id], **fields)
        _check_all(wanted)
        self._held[id] = wanted
        return self._place(wanted, snapshot)[0]

    def clear(self, function: str = "", line: int = 0, snapshot: Snapshot | None = None, id: int = 0) -> list[Placed]:
        """Take away those of a function, at a line of it, or the one of this id; all if nothing is named."""
        placed = self.placed(snapshot) if snapshot else [Placed(one) for one in self._held.values()]
        gone = [
            one
            for one in placed
            if id in (0, one.breakpoint.id) and function in ("", one.breakpoint.function) and line in (0, one.line)
        ]
        for one in gone:
            del self._held[one.breakpoint.id]
        return gone

    def hit(self, id: int) -> None:
        """One was hit: one that counts once is done."""
        if (held := self._held.get(id)) is not None and held.once:
            del self._held[id]

    def placed(self, snapshot: Snapshot) -> list[Placed]:
        """All of them where they stand now."""
        return [self._place(one, snapshot)[0] for one in list(self._held.values())]

    def points(self, snapshot: Snapshot) -> Iterator[Point]:
        """As a worker is sent them; a nested call's functions are among them."""
        for held in list(self._held.values()):
            placed, text = self._place(held, snapshot)
            if placed.line:
                function = snapshot.functions[held.function]
                yield Point(
                    held.id,
                    function.module,
                    function.name,
                    text,
                    function.line,
                    placed.line,
                    held.condition,
                    held.expressions,
                    held.after,
                    held.every,
                    held.once,
                )

    def _place(self, held: Breakpoint, snapshot: Snapshot) -> tuple[Placed, str]:
        function = snapshot.functions.get(held.function)
        if function is None:
            return Placed(held), ""
        text = text_of(function, snapshot)
        rows = bare_lines(text)
        same = [line for line in stopping(text) if rows[line - 1].strip() == held.anchor]
        if not same:
            return Placed(held, function.path), text
        line = min(same, key=lambda one: abs(one - 1 - held.offset))
        if line - 1 != held.offset:
            self._held[held.id] = held = replace(held, offset=line - 1)
        return Placed(held, function.path, function.line + line - 1), text


def _always(one: Breakpoint) -> bool:
    """Whether it stops at each hit, and stays."""
    return not (one.once or one.condition or one.after) and one.every == 1


def _function(name: str, snapshot: Snapshot) -> Function:
    function = snapshot.functions.get(name)
    if function is None:
        near = matching.nearest(name, snapshot.functions)
        raise UsageError(f"There is no function `{name}`.", mend=f"Did you mean `{near[0]}`?" if near else "")
    return function


def _check_all(wanted: Breakpoint) -> None:
    for text in (wanted.condition, *wanted.expressions):
        _check(text)
    if len(wanted.expressions) > MOST_EXPRESSIONS or wanted.after < 0 or wanted.every < 1:
        raise UsageError(f"A breakpoint takes up to {MOST_EXPRESSIONS} expressions, and counts from 1.")


def _check(text: str) -> None:
    if len(text) > MOST_CHARS:
        raise UsageError(f"`{text[:80]}` is no expression for a breakpoint: it has more than {MOST_CHARS} characters.")
    try:
        tree = ast.parse(text, mode="eval") if text else ast.Expression(ast.Constant(0))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"`{text[:80]}` is no expression: {error}.") from error
    acting = ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr
    if any(isinstance(one, acting) for one in ast.walk(tree)):
        raise UsageError(f"`{text[:80]}` is no expression for a breakpoint: it awaits, yields or binds.")


def _range(text: str, function: Function) -> str:
    lines = [str(line + function.line - 1) for line in stopping(text)]
    return ", ".join(lines[:40]) or "no line that can be found"

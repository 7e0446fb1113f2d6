"""Breakpoints, and a stop: its form for people and models, its commands and what is typed there, and its protocol.

A function can stop at the first lines of its statements, which follow from its text. Breakpoints follow their line when
the function is edited: one is anchored to its function and to the text of its line; if several lines have this text,
the nearest to the old place is used. A breakpoint whose line is gone stays, reports this, and is armed again if the
line returns.

What a worker reports about a stop, a record or a trace is parsed strictly, or refused. In the text for a model, each
value appears once, and then only its changes.

A typed line is an expression, an assignment, or a breakpoint: `[FUNCTION:]LINE [if CONDITION] [after N] [every N]
[once]`. Commands of `pdb` that do not exist here are answered with the replacement.
"""

import ast
import re
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

from agent_core.base import matching, syntax
from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import block, visible
from sandbox import Point, RequestRefused
from sandbox.inside import reading
from sandbox.wire import caps
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
            end = (
                max(statement.lineno, min(inner) - 1)
                if inner
                else statement.end_lineno or statement.lineno
            )
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


_MOST_BREAKPOINTS: Final = 50
_MOST_EXPRESSIONS, _MOST_EXPRESSION_CHARS = 10, 500
_MOST_VALUE_CHARS: Final = 200  # of one value in a record
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
    by: By = "agent"  # unless the door knows better: what an agent wrote only reads
    window: str = ""  # the window that set it, if that is another one


@dataclass(frozen=True, slots=True)
class Placed:
    """A breakpoint at its current place; line 0 means that its line or its function is gone.

    `requested_line` is set if the breakpoint has just been set at another line than requested, and `unread` says which
    expressions it was set without.
    """

    breakpoint: Breakpoint
    path: str = ""
    line: int = 0
    requested_line: int = 0
    unread: tuple[str, ...] = ()

    @property
    def moved(self) -> str:
        """The reason why it is at another line than requested, or an empty text."""
        message = f"Nothing begins to run at line {self.requested_line}: it stops at {self.line}."
        return message if self.requested_line else ""

    @property
    def text(self) -> str:
        """Its place and conditions, on one line."""
        point = self.breakpoint
        where = (
            f"{self.path}:{self.line} `{point.anchor}`"
            if self.line
            else f"its line `{point.anchor}` is gone"
        )
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
        self.held: dict[int, Breakpoint] = {}
        self._last = 0

    def arm(self, breakpoint_: Breakpoint, line: int, snapshot: "Snapshot") -> Placed:
        """Arm a breakpoint at a line of its module (0: the function's first); its ID and anchor are assigned here.

        It replaces one of the same kind at that line. A one-time breakpoint is kept along with a permanent one; if that
        stops at each hit anyway, the permanent one is returned.

        Raises:
            UsageError: there is no such function or line, or an expression is invalid.
        """
        function = snapshot.functions.get(breakpoint_.function)
        if function is None:
            fix = matching.did_you_mean(
                breakpoint_.function, snapshot.functions, "Type /functions for the list."
            )
            raise UsageError(f"There is no function `{breakpoint_.function}`.", fix=fix)
        breakpoint_, unread = _checked(breakpoint_)
        text = snapshot.text_of(function)
        stop_line = nearest(text, line - function.line + 1 if line else 0)
        if stop_line is None or (line and not function.line <= line <= function.end_line):
            lines = [str(line + function.line - 1) for line in stopping(text)]
            raise UsageError(
                f"`{function.name}` does not stop at line {line}.",
                fix=f"It stops at {(', '.join(lines[:40]) or 'no line that can be found')}.",
            )
        place = breakpoint_.function, stop_line - 1
        line_points = [
            point for point in self.held.values() if (point.function, point.offset) == place
        ]
        always = [
            point
            for point in line_points
            if not (point.once or point.condition or point.after) and point.every == 1
        ]
        if breakpoint_.once and always:
            return Placed(always[0], function.path, function.line + stop_line - 1, unread=unread)
        same = [point for point in line_points if point.once == breakpoint_.once]
        if same and breakpoint_.window:  # the one that was set here stays
            return Placed(same[0], function.path, function.line + stop_line - 1, unread=unread)
        if not same and len(self.held) >= _MOST_BREAKPOINTS:
            raise UsageError(
                f"{_MOST_BREAKPOINTS} breakpoints are armed already.", fix="Clear some."
            )
        self._last += not same
        id = same[0].id if same else self._last
        armed_point = replace(
            breakpoint_, id=id, anchor=bare_lines(text)[stop_line - 1].strip(), offset=stop_line - 1
        )
        self.held[id] = armed_point
        at = function.line + stop_line - 1
        return Placed(armed_point, function.path, at, line if line != at else 0, unread)

    def change(
        self, id: int, snapshot: "Snapshot", **fields: Any
    ) -> Placed:  # Any: fields of a Breakpoint
        """Change the condition or counts of a breakpoint.

        Raises:
            UsageError: there is no breakpoint with this ID, or an expression is invalid.
        """
        if id not in self.held:
            raise UsageError(f"There is no breakpoint {id}.")
        point, _ = _checked(replace(self.held[id], **fields))
        self.held[id] = point
        return self._place(point, snapshot)[0]

    def clear(
        self, function: str = "", line: int = 0, snapshot: "Snapshot | None" = None, id: int = 0
    ) -> list[Placed]:
        """Remove the breakpoints of a function, at a line of it, or with this ID; all if nothing is named."""
        placed = (
            self.placed(snapshot) if snapshot else [Placed(point) for point in self.held.values()]
        )
        matches = [
            placement
            for placement in placed
            if id in (0, placement.breakpoint.id)
            and function in ("", placement.breakpoint.function)
            and line in (0, placement.line)
        ]
        for placement in matches:
            del self.held[placement.breakpoint.id]
        return matches

    def follow(self, old: str, new: str) -> None:
        """Let the breakpoints of a function be those of another one."""
        for point in list(self.held.values()):
            if point.function == old:
                self.held[point.id] = replace(point, function=new)

    def hit(self, id: int) -> None:
        """Record a hit; a one-time breakpoint is removed."""
        if (point := self.held.get(id)) is not None and point.once:
            del self.held[id]

    def placed(self, snapshot: "Snapshot") -> list[Placed]:
        """Return all breakpoints at their current places."""
        return [self._place(point, snapshot)[0] for point in list(self.held.values())]

    def points(self, snapshot: "Snapshot") -> Iterator[Point]:
        """Yield the breakpoints in the form for a worker, including those in functions of nested calls."""
        for point in list(self.held.values()):
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
                    point.by,
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
            self.held[breakpoint_.id] = breakpoint_ = replace(breakpoint_, offset=line - 1)
        return Placed(breakpoint_, function.path, function.line + line - 1), text


def _checked(breakpoint_: Breakpoint) -> tuple[Breakpoint, tuple[str, ...]]:
    """Return a breakpoint with the expressions that can be evaluated, and why others cannot.

    A person's expressions, a condition and the counts have to be right.
    """
    if (
        len(breakpoint_.expressions) > _MOST_EXPRESSIONS
        or breakpoint_.after < 0
        or breakpoint_.every < 1
    ):
        raise UsageError(
            f"A breakpoint takes up to {_MOST_EXPRESSIONS} expressions, and counts from 1."
        )
    is_agent = breakpoint_.by == "agent"
    if breakpoint_.condition:
        _check(breakpoint_.condition, only_reads=is_agent)
    fine: list[str] = []
    unread: list[str] = []
    for text in breakpoint_.expressions:
        try:
            _check(text, only_reads=is_agent)
        except UsageError as error:
            if not is_agent:
                raise
            unread.append(error.message)
        else:
            fine.append(text)
    return replace(breakpoint_, expressions=tuple(fine)), tuple(unread)


def _check(text: str, *, only_reads: bool) -> None:
    acting = ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr
    if len(text) > _MOST_EXPRESSION_CHARS:
        raise UsageError(
            f"`{text[:80]}` is no expression for a breakpoint: it has more than {_MOST_EXPRESSION_CHARS} characters."
        )
    try:
        tree = syntax.parse(text, mode="eval") if text else ast.Expression(ast.Constant(0))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"`{text[:80]}` is no expression: {error}.") from error
    if any(isinstance(node, acting) for node in ast.walk(tree)):
        raise UsageError(
            f"`{text[:80]}` is no expression for a breakpoint: it awaits, yields or binds."
        )
    if only_reads:
        try:
            reading.check(tree)
        except reading.Unreadable as error:
            raise UsageError(
                f"`{text[:80]}` is no expression for a breakpoint: {error}."
            ) from error


_ASSIGNS = re.compile(r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)")


@dataclass(frozen=True, slots=True)
class At:
    """One frame of the stack; `function` is Python's name for it, `arguments` a short text of its arguments."""

    path: str
    line: int
    function: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class DebugStop:
    """The place where a call is stopped. Every text is masked and free of terminal control characters.

    `frames` begin with the outermost, `current` is the index of the selected one. `source` is the text of its module
    from the host's own copy. `message` is the answer to the last command; it is empty when the call has just stopped.
    """

    call: str  # the called function
    why: (
        str  # breakpoint N, breakpoint(), step, return, waits, yields, exception, raised, break now
    )
    frames: tuple[At, ...]
    current: int
    locals: tuple[tuple[str, str], ...]
    arguments: int  # this many of the locals, from the first, are arguments
    names: tuple[str, ...] = ()  # for completion
    shown: tuple[tuple[str, str], ...] = ()  # displayed expressions
    value: str | None = None  # the returned value, at a return
    error: str | None = None  # at an exception
    source: str = ""
    armed: frozenset[int] = frozenset()  # lines of the source with breakpoints
    message: str = ""
    call_arguments: str = ""  # the arguments of the call as JSON, set if several calls run
    is_first: bool = False  # of its call

    @property
    def at(self) -> At:
        """The selected frame."""
        return self.frames[self.current]

    def listing(self, around: int = 5) -> tuple[tuple[int, str], ...]:
        """Return the numbered lines of the source around the current one."""
        return self.lines(self.at.line - around, self.at.line + around)

    def lines(self, first: int, last: int) -> tuple[tuple[int, str], ...]:
        """Return the numbered lines of the source in this range, as far as they exist."""
        lines = bare_lines(self.source)
        return tuple(
            (number, lines[number - 1])
            for number in range(max(1, first), min(len(lines), last) + 1)
        )


@dataclass(frozen=True, slots=True)
class Command:
    """One command at a stop; `argument` is the text after its name."""

    do: str
    argument: str = ""

    @classmethod
    def parse(cls, line: str) -> "Command":
        """Parse a typed line as a command; anything that is not a command is an expression.

        Raises:
            UsageError: the command needs an argument.
        """
        name, _, remainder = line.strip().partition(" ")
        entry = BY_NAME.get(name)
        if entry is None or _ASSIGNS.match(remainder.lstrip()):
            return cls("p", line.strip()) if line.strip() else cls("repeat")
        if entry.needs and not remainder.strip():
            raise UsageError(
                f"`{entry.name}` needs {entry.needs}.", fix=f"For example: {entry.example}"
            )
        return cls(entry.name, remainder.strip())


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """A command as shown by help."""

    name: str
    short: str
    description: str
    needs: str = ""
    example: str = ""
    resumes: bool = False


COMMANDS: Final = (
    CommandHelp(
        "next", "n", "run this line, without stopping in the functions that it calls", resumes=True
    ),
    CommandHelp(
        "step", "s", "run to the next line, also in the functions that this one calls", resumes=True
    ),
    CommandHelp("return", "r", "run until this function returns", resumes=True),
    CommandHelp("continue", "c", "continue", resumes=True),
    CommandHelp("until", "unt", "run to a later line: until [LINE]", resumes=True),
    CommandHelp("up", "u", "go to the caller's frame"),
    CommandHelp("down", "d", "go to the frame that this one called"),
    CommandHelp("where", "w", "show the stack"),
    CommandHelp(
        "list",
        "l",
        "show the source around this line, then what follows: list [. | LINE | FIRST,LAST]",
    ),
    CommandHelp("longlist", "ll", "show the source of this whole function"),
    CommandHelp("p", "p", "show the value of an expression", "an expression", "p total + 1"),
    CommandHelp("pp", "pp", "show it pretty-printed", "an expression", "pp rows"),
    CommandHelp(
        "whatis", "whatis", "show the type of an expression", "an expression", "whatis total"
    ),
    CommandHelp("args", "a", "show the arguments of this function"),
    CommandHelp("locals", "locals", "show all locals"),
    CommandHelp(
        "set", "set", "change a local: set NAME EXPRESSION", "a name and a value", "set total 0"
    ),
    CommandHelp(
        "break",
        "b",
        "list the breakpoints, or add one: break [FUNCTION:]LINE [if CONDITION] [after N] [every N]",
    ),
    CommandHelp(
        "tbreak",
        "tb",
        "add one that stops once: tbreak [FUNCTION:]LINE [if CONDITION]",
        "a line",
        "tbreak 12",
    ),
    CommandHelp(
        "condition",
        "condition",
        "set when a breakpoint stops: condition NUMBER [CONDITION]",
        "a number",
        "condition 1",
    ),
    CommandHelp(
        "ignore", "ignore", "skip a breakpoint: ignore NUMBER TIMES", "two numbers", "ignore 1 20"
    ),
    CommandHelp("clear", "cl", "remove a breakpoint by its number", "a number", "clear 1"),
    CommandHelp(
        "display", "display", "show an expression at each stop", "an expression", "display total"
    ),
    CommandHelp("undisplay", "undisplay", "stop showing it", "an expression", "undisplay total"),
    CommandHelp("retval", "retval", "show the value that is about to be returned"),
    CommandHelp("quit", "q", "end the call"),
    CommandHelp("help", "h", "show this list, or one command: help [COMMAND]"),
)
RESUMING: Final = frozenset(command.name for command in COMMANDS if command.resumes)
_ALSO: Final = {"cont": "continue", "?": "help", "exit": "quit"}
_NAMED: Final = {name: command for command in COMMANDS for name in (command.name, command.short)}
BY_NAME: Final = _NAMED | {name: _NAMED[meant] for name, meant in _ALSO.items()}


class Debugger(Protocol):
    """The user at a debugger, provided by an interface."""

    async def stopped(self, stop: DebugStop) -> Command:
        """Return the next command. It is called again, with a `message`, until a command resumes the call."""


Claim: TypeAlias = Mapping[str, Any]  # Any: JSON of a worker
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BreakpointRecord:
    """The values that were recorded when a breakpoint was passed."""

    id: int
    hits: int
    at: At
    locals: tuple[tuple[str, str], ...]
    shown: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A line that ran: how often, and the locals that it changed the first and the last time."""

    path: str
    line: int
    function: str
    count: int
    first: Mapping[str, str]
    last: Mapping[str, str]


class Reader:
    """A parser for a worker's report, which is already masked and limited in size; it makes texts visible.

    Each method raises RequestRefused if the report has another shape.
    """

    def text(self, value: object, most: int = caps.MOST_ANSWER) -> str:
        """Return a text."""
        if not isinstance(value, str):
            raise RequestRefused("the debugger hears texts here")
        return visible(value[: most * 2])[:most]

    def word(self, value: object, most: int) -> str:
        """Return a single-line text, such as a name or a path."""
        return self.text(value, most).replace("\n", "\\n")

    def number(self, value: object) -> int:
        """Return a non-negative number."""
        if not isinstance(value, int) or not 0 <= value < 1 << 40:
            raise RequestRefused("the debugger hears a number here")
        return int(value)

    def many(
        self, value: object, read: Callable[[Any], T], most: int = caps.MOST_SEEN
    ) -> tuple[T, ...]:
        """Return a list, up to its limit."""
        if not isinstance(value, list):
            raise RequestRefused("the debugger hears a list here")
        return tuple(read(item) for item in value[:most])

    def pairs(self, value: object, most: int = caps.MOST_SEEN) -> tuple[tuple[str, str], ...]:
        """Return pairs of a name and the text of its value."""
        return self.many(value, self._pair, most)

    def _pair(self, value: object) -> tuple[str, str]:
        match value:
            case [name, text]:
                return self.word(name, caps.MOST_SEEN_NAME), self.text(text, caps.MOST_SEEN_TEXT)
            case _:
                raise RequestRefused("the debugger hears a name and a value here")

    def at(self, value: object) -> At:
        """Return a place."""
        match value:
            case [path, line, function, *arguments] if len(arguments) <= 1:
                given = self.word(arguments[0], caps.MOST_SEEN_NAME) if arguments else ""
                return At(
                    self.word(path, caps.MOST_PATH),
                    self.number(line),
                    self.word(function, caps.MOST_NAME),
                    given,
                )
            case _:
                raise RequestRefused("the debugger hears a place here")

    def record(self, claim: Claim) -> BreakpointRecord:
        """Return a record."""
        at = self.at([claim.get("path"), claim.get("line"), claim.get("function")])
        id, hits = self.number(claim.get("id")), self.number(claim.get("hits"))
        return BreakpointRecord(
            id, hits, at, self.pairs(claim.get("locals")), self.pairs(claim.get("shown"))
        )

    def line(self, claim: object) -> TraceLine:
        """Return a line of a trace."""
        match claim:
            case [path, line, function, count, first, last]:
                at = self.at([path, line, function])
                first, last = (
                    dict(self.pairs(changes, caps.MOST_CHANGES)) for changes in (first, last)
                )
                return TraceLine(at.path, at.line, at.function, self.number(count), first, last)
            case _:
                raise RequestRefused("the debugger hears a line of a trace here")


MOST_CHARS: Final = 4_000
_MOST_TYPED: Final = 20
Pairs = Sequence[tuple[str, str]]


def records(entries: Sequence[BreakpointRecord], passed: int, snapshot: "Snapshot") -> str:
    """Return what breakpoints recorded in a call."""
    lines: list[str] = []
    before: dict[tuple[str, int], dict[str, str]] = {}
    for record in entries:
        place = record.at.path, record.at.line
        if place not in before:
            at = record.at
            lines.append(f"{at.path}:{at.line} in {at.function}: {_source(at, snapshot).strip()}")
        last_values = before.setdefault(place, {})
        seen = [
            (name, text)
            for name, text in (*record.shown, *record.locals)
            if last_values.get(name) != text
        ]
        last_values |= dict(seen)
        lines.append(f"  hit {record.hits}: {_pairs(seen) or 'nothing is different'}")
    lines += [f"{passed} more hits are not shown."] if passed else []
    return f"Breakpoints were passed and recorded:\n{block(chr(10).join(lines), MOST_CHARS)}"


def changes(typed: Sequence[str], seconds: float) -> str:
    """Return what a human changed in a call that was stopped for `seconds`."""
    more = [f"- and {len(typed) - _MOST_TYPED} more"] if len(typed) > _MOST_TYPED else []
    return "\n".join(
        [
            f"A human stopped this call at the debugger for {seconds:.0f} s, and changed what it worked on, for this"
            " call only: the function is as it was, and the next call runs without it.",
            *(f"- {text}" for text in typed[:_MOST_TYPED]),
            *more,
        ]
    )


def trace(
    lines: Sequence[TraceLine], snapshot: "Snapshot", *, is_cut: bool = False, is_whole: bool = True
) -> str:
    """Return the lines that ran, in the order of their first run, with the locals that they changed.

    `is_whole` is false if the call was ended from outside, so that its last lines are unknown.
    """
    if not lines:
        return "No line of it ran." if is_whole else "It was ended before it told which lines ran."
    rows: list[str] = []
    where = ("", "")
    for line in lines:
        if (line.path, line.function) != where:
            where = line.path, line.function
            rows.append(f"{line.path} in {line.function}:")
        times = f" ×{line.count}" if line.count > 1 else ""
        rows.append(f"{line.line:4}{times:6} {_source(line, snapshot)}")
        if line.first and (line.first == line.last or line.count == 1):
            rows.append(f"             {_pairs(line.first.items())}")
        elif line.first:
            rows.append(f"             first {_pairs(line.first.items())}")
            rows.append(f"             last  {_pairs(line.last.items())}")
    rows += ["… and more lines."] if is_cut else []
    rows += [] if is_whole else ["The call was ended about here; what it did last may be missing."]
    return block("\n".join(rows), MOST_CHARS * 2)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} = {_beginning(text)}" for name, text in pairs).replace("\n", "\\n")


def _beginning(text: str) -> str:
    """Return a value, or its beginning, cut between two of its parts if there are any."""
    if len(text) <= _MOST_VALUE_CHARS:
        return text
    head = text[:_MOST_VALUE_CHARS]
    head = head[: head.rfind(", ") + 2] or head
    return f"{head}… ({len(text) - len(head):,} more characters)"


def _source(at: At | TraceLine, snapshot: "Snapshot") -> str:
    text = next((module.text for module in snapshot.modules.values() if module.path == at.path), "")
    lines = bare_lines(text)
    if not 0 < at.line <= len(lines):
        return ""
    name = re.escape(at.function.rpartition(".")[2])
    begins = (
        re.match(rf"(\s*)(?:async\s+)?def\s+{name}\b", text) for text in reversed(lines[: at.line])
    )
    return (
        lines[at.line - 1]
        .removeprefix(next((match[1] for match in begins if match), ""))
        .rstrip()[:160]
    )


Order: TypeAlias = dict[str, Any]  # Any: JSON for the worker
_ABSENT: Final = {  # commands of `pdb`, each with the replacement
    **dict.fromkeys(
        ("j", "jump"), "No line can be skipped here; until LINE runs on to a later one."
    ),
    **dict.fromkeys(
        ("run", "restart", "debug"), "q ends this call; /debug NAME JSON starts one that stops."
    ),
    **dict.fromkeys(
        ("enable", "disable"), "condition NUMBER False passes one over, clear NUMBER removes it."
    ),
    **dict.fromkeys(("alias", "unalias", "exceptions"), "`help` lists what it has."),
    "commands": "display EXPRESSION shows one at each stop.",
    "interact": "Any expression can be typed as it is.",
    "source": "longlist shows the function that is paused; /introspect NAME any other.",
    "rv": "It is retval.",
}


def order_of(text: str, names: Container[str] = ()) -> Order:
    """Return the order for an expression or an assignment.

    Raises:
        UsageError: it is neither, or it is a missing command of `pdb` that is not among the `names` in scope.
    """
    word = text.split(" ", 1)[0].strip()
    if word in _ABSENT and (
        _parse(text, "eval") is None or (text.strip() == word and word not in names)
    ):
        raise UsageError(f"The debugger has no `{word}`.", fix=_ABSENT[word])
    module = _parse(text, "exec") if _parse(text, "eval") is None else None
    match module:
        case None:
            return {"do": "evaluate", "expression": expression_of(text)}
        case ast.Module(
            body=[
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ]
        ):
            return _set(name, value)
        case ast.Module(body=[ast.AugAssign(target=ast.Name(id=name), op=op, value=value)]):
            return _set(name, ast.BinOp(ast.Name(name, ast.Load()), op, value))
        case ast.Module(body=[ast.Assign(targets=targets) | ast.Delete(targets=targets)]) if all(
            isinstance(target, ast.Subscript | ast.Attribute) for target in targets
        ):
            return {"do": "act", "statement": text.strip()}
        case ast.Module(body=[ast.AugAssign(target=ast.Subscript() | ast.Attribute())]):
            return {"do": "act", "statement": text.strip()}
        case ast.Module(body=[ast.Import() | ast.ImportFrom(), *_]):
            raise UsageError(
                "The debugger runs no `import`.",
                fix="Within an expression: __import__('math').sqrt(total)",
            )
        case _:
            raise UsageError(
                "The debugger takes expressions, and assignments to one name, item or attribute.",
                fix="For example: total = 0, or numbers[0] = 5, or [one * 2 for one in numbers]",
            )


def expression_of(text: str) -> str:
    """Return the text if it is an expression that can be evaluated while the function is stopped.

    Raises:
        UsageError: it is not.
    """
    try:
        tree = _read(text, "eval")
    except SyntaxError as error:
        raise UsageError(f"*** SyntaxError: {error.msg}: `{visible(text[:200])}`") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"*** {type(error).__name__}: {error}") from error
    if any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in ast.walk(tree)):
        raise UsageError(
            "Nothing can be awaited or yielded here: the function's own loop is paused, too."
        )
    return text


def _set(name: str, value: ast.expr) -> Order:
    return {"do": "set", "name": name, "expression": expression_of(ast.unparse(value))}


def _parse(text: str, mode: str) -> ast.AST | None:
    try:
        return _read(text, mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read(text: str, mode: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # typed code needs no warnings
        return syntax.parse(text.strip(), "<debug>", mode)


USAGE: Final = "[if CONDITION] [after N] [every N] [once]"
_COUNT = re.compile(r"(.*?)\b(?:(after|every) +(\d{1,9})|(once))\s*", re.DOTALL)
_IF = re.compile(r"(?<!\s)\s+if\b\s*")


def typed_breakpoint(text: str, *, once: bool = False) -> tuple[Breakpoint, int]:
    """Return a person's breakpoint and its line; line 0 is the function's first, an empty function the stopped one.

    Raises:
        UsageError: a word is not understood.
    """
    head, *conditions = _IF.split(text.strip(), maxsplit=1)
    # A comma before the condition is as in `pdb`.
    head, has_if, condition = (
        (head.rstrip(", "), "if", conditions[0]) if conditions else head.partition(",")
    )
    place, _, words = head.strip().partition(" ")
    remainder, before = _counts(words.strip())
    condition, behind = _counts(condition.strip(), is_condition=True)
    if remainder or (has_if and not condition):
        message = (
            f"`{remainder[:40]}` is nothing that a breakpoint knows."
            if remainder
            else "`if` needs a condition."
        )
        raise UsageError(message, fix=f"Type it as FUNCTION:LINE {USAGE}.")
    counts = before | behind
    name, colon, line = place.rpartition(":")
    if not colon and not line.isdecimal():
        name, line = line, "0"
    if not line.isdecimal():
        raise UsageError(f"{line!r} is no line.", fix=f"Type it as FUNCTION:LINE {USAGE}.")
    after, every, is_once = counts.get("after", 0), counts.get("every", 1), once or "once" in counts
    return Breakpoint(0, name, "", 0, condition, (), after, every, is_once, "human"), int(line)


def _counts(text: str, *, is_condition: bool = False) -> tuple[str, dict[str, int]]:
    """Return the text before the counts at its end, and the counts; they never split a condition."""
    counts: dict[str, int] = {}
    best = text, counts
    while (match := _COUNT.fullmatch(text)) is not None:
        text, counts = match[1].strip(), {match[2] or "once": int(match[3] or 1), **counts}
        if not is_condition or _parse(text, "eval") is not None:
            best = text, counts
    return best

"""A stop of the debugger as lines: where, why, and the source around it; and the parser for typed commands.

What a worker says stands escaped and cut behind a bar, and never looks like a line of the program.
"""

import re
from collections.abc import Sequence
from typing import Final

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line, shorten
from agent_core.functions.debug import COMMANDS, Command, DebugStop
from sandbox.wire.lines import bare_lines

from ..faults import fault_lines
from ..spans import Line, Role, line, quoted
from .function_view import SourceRow
from .verdicts import compact_call

_IN_SOURCE: Final = "after a breakpoint in the source"  # whatever it is called there: the line shown runs next
MOST_ROWS, MOST_CHARS = 200, 4_000
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.+)", re.DOTALL)
_NUMBERED = re.compile(r"\s*(\d+)\b")
_LISTS: Final = ("list", "longlist")
_OWN: Final = (*_LISTS, "break", "tbreak", "clear", "condition", "ignore", "help")  # answered by the host
ENDING: Final = frozenset({*(command.name for command in COMMANDS if command.resumes), "quit"})
_MOVES: Final = ("up", "down")
_BOUND: Final = (
    "Type a debugger command, or any expression, which is evaluated in the function's worker. Enter: repeat the last"
    " command. !EXPRESSION or p EXPRESSION: if the expression begins like a command. NAME = EXPRESSION sets a local,"
    " NAME[KEY] = EXPRESSION an item. Ctrl-C: clear the line; twice: end the turn. Ctrl-D: q."
    " /COMMAND: as at the usual prompt, now or when the running command has ended."
)


def command_words() -> dict[str, str]:
    """Return what can be typed, with descriptions."""
    return {name: command.description for command in COMMANDS for name in dict.fromkeys((command.name, command.short))}


def typed_command(text: str) -> Command:
    """Return the command that a line asks for.

    Raises:
        UsageError: something is missing.
    """
    if text.startswith("!"):
        text = f"p {text[1:].strip()}"
    if (assigned := _ASSIGNS.fullmatch(text)) is not None:
        return Command("set", f"{assigned[1]} {assigned[2]}")
    return Command.parse(text)


def explained(error: UsageError) -> list[Line]:
    """Return why a line was not accepted."""
    return fault_lines(error.message, error.fix)


def head_line(stop: DebugStop) -> Line:
    """Return which function is stopped, where, and why."""
    at = stop.at
    call = one_line(compact_call(stop.call, stop.call_arguments) if stop.call_arguments else stop.call, 80)
    is_own = at.function == stop.call
    called = "" if is_own else f", in a call of {call}"
    where = f"{one_line(at.path, 200)}:{at.line}"
    return line(
        ("warn", "■ "),
        ("name", call if is_own else one_line(at.function, 80)),
        ("dim", f"  {where}{called}: "),
        one_line(_IN_SOURCE if stop.why == "breakpoint()" else stop.why),
    )


def rows(stop: DebugStop, around: int = 5) -> list[SourceRow]:
    """Return the source around the line that runs next."""
    listing = stop.listing(around)
    return [_row(stop, number, text) for number, text in (listing if not listing or listing[-1][1] else listing[:-1])]


def listed_rows(stop: DebugStop, command: Command) -> list[SourceRow]:
    """Return the source that a command requested or a move reached; nothing for any other command."""
    if command.do in _MOVES and not stop.message.startswith("This is"):
        return rows(stop)
    if command.do not in _LISTS:
        return []
    numbers = [int(match[1]) for text in stop.message.split("\n") if (match := _NUMBERED.match(text.lstrip("→B ")))]
    source = bare_lines(stop.source)
    return [_row(stop, number, source[number - 1]) for number in numbers if 0 < number <= len(source)]


def _row(stop: DebugStop, number: int, text: str) -> SourceRow:
    return SourceRow(number, text, number == stop.at.line, number in stop.armed)


def tail_lines(stop: DebugStop) -> list[Line]:
    """Return the result, the exception and the displayed expressions, behind a bar, since a worker wrote them."""
    kind, _, shown = (stop.error or "").partition(": ")
    raised = shown if shown.startswith(f"{kind}(") else stop.error or ""
    lines = [line(("bad", "✗ "), one_line(raised, 2_000))] if raised else []
    lines += [line(("dim", "← "), one_line(stop.value, 2_000))] if stop.value is not None else []
    lines += [line(("dim", f"  {one_line(name, 80)} = "), one_line(text, 400)) for name, text in stop.shown]
    return quoted(lines)


def said_lines(stop: DebugStop, command: Command) -> list[Line]:
    """Return the answer to a command. All but the host's own words is behind a bar, since a worker may have written
    it.
    """
    if listed_rows(stop, command) and command.do in _LISTS:
        return []
    texts = shorten(stop.message, MOST_CHARS).split("\n")
    role: Role = "bad" if stop.message.startswith("*** ") else ""
    more = len(texts) - MOST_ROWS
    lines = [line((role, text)) for text in texts[:MOST_ROWS]]
    lines += [line(("dim", f"… {more} more lines"))] if more > 0 else []
    if command.do not in _OWN:
        return quoted(lines)
    return [*lines, *([line(("dim", _BOUND))] if command.do == "help" and not command.argument else [])]


def stop_parts(stop: DebugStop, command: Command) -> tuple[Sequence[Line], Sequence[SourceRow], Sequence[Line]]:
    """Return the parts of a stop to show: lines, source, lines."""
    if stop.message:
        return said_lines(stop, command), listed_rows(stop, command), ()
    return (head_line(stop),), rows(stop), tail_lines(stop)

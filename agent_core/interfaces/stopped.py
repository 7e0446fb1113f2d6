"""A stop of the debugger as lines: where, why, the source around it; and the command that a typed line is.

What a worker says stands escaped and cut behind a bar, and never looks like a line of the program.
"""

import re
from collections.abc import Sequence
from typing import Final

from agent_core.debugging import COMMANDS, Command, Stop
from agent_core.errors import UsageError
from agent_core.untrusted import one_line, shorten
from sandbox.lines import bare_lines

from .faults import fault_lines
from .spans import Line, Role, line, quoted
from .verdicts import compact_call
from .views import Row

MOST_ROWS, MOST_CHARS = 200, 4_000
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.+)", re.DOTALL)
_NUMBERED = re.compile(r"\s*(\d+)\b")
_LISTS: Final = ("list", "longlist")
_OWN: Final = (*_LISTS, "break", "tbreak", "clear", "condition", "ignore", "help")  # answered by the host
ENDING: Final = frozenset({*(one.name for one in COMMANDS if one.resumes), "quit"})
_MOVES: Final = ("up", "down")
_BOUND: Final = (
    "Commands of the debugger first, then any expression; it is evaluated in the function's worker. Enter: the last"
    " command again. !EXPRESSION or p EXPRESSION where a name is a command's. NAME = EXPRESSION sets a local,"
    " NAME[KEY] = EXPRESSION an item. Ctrl-C: clear the line, twice: end the turn. Ctrl-D: q."
    " /COMMAND: as at the usual prompt, at once or when what runs has ended."
)


def command_words() -> dict[str, str]:
    """What can be typed, with what it does."""
    return {name: one.what for one in COMMANDS for name in dict.fromkeys((one.name, one.short))}


def typed_command(text: str) -> Command:
    """What a line asks for.

    Raises:
        UsageError: it lacks something.
    """
    if text.startswith("!"):
        text = f"p {text[1:].strip()}"
    if (assigned := _ASSIGNS.fullmatch(text)) is not None:
        return Command("set", f"{assigned[1]} {assigned[2]}")
    return Command.parse(text)


def explained(error: UsageError) -> list[Line]:
    """Why a line was not taken."""
    return fault_lines(error.message, error.mend)


def head_line(stop: Stop) -> Line:
    """Which function stands still where, and why."""
    at = stop.at
    call = one_line(compact_call(stop.call, stop.given) if stop.given else stop.call, 80)
    is_own = at.function == stop.call
    called = "" if is_own else f", in a call of {call}"
    where = f"{one_line(at.path, 200)}:{at.line}"
    return line(
        ("warn", "■ "),
        ("name", call if is_own else one_line(at.function, 80)),
        ("dim", f"  {where}{called}: "),
        one_line(stop.why),
    )


def rows(stop: Stop, around: int = 5) -> list[Row]:
    """The source around the line that runs next."""
    found = stop.listing(around)
    return [_row(stop, number, text) for number, text in (found if not found or found[-1][1] else found[:-1])]


def listed_rows(stop: Stop, last: Command) -> list[Row]:
    """The source that a command asked for, or that a move came to; nothing, if it was another command."""
    if last.do in _MOVES and not stop.said.startswith("This is"):
        return rows(stop)
    if last.do not in _LISTS:
        return []
    numbers = [int(found[1]) for each in stop.said.split("\n") if (found := _NUMBERED.match(each.lstrip("→B ")))]
    source = bare_lines(stop.source)
    return [_row(stop, number, source[number - 1]) for number in numbers if 0 < number <= len(source)]


def _row(stop: Stop, number: int, text: str) -> Row:
    return Row(number, text, number == stop.at.line, number in stop.armed)


def tail_lines(stop: Stop) -> list[Line]:
    """What is returned, what was raised, and what is displayed at each stop: a worker's words, so behind a bar."""
    kind, _, shown = (stop.error or "").partition(": ")
    raised = shown if shown.startswith(f"{kind}(") else stop.error or ""
    lines = [line(("bad", "✗ "), one_line(raised, 2_000))] if raised else []
    lines += [line(("dim", "← "), one_line(stop.value, 2_000))] if stop.value is not None else []
    lines += [line(("dim", f"  {one_line(name, 80)} = "), one_line(text, 400)) for name, text in stop.shown]
    return quoted(lines)


def said_lines(stop: Stop, last: Command) -> list[Line]:
    """What answers a command; all but the host's own words behind a bar, since a worker may have said it."""
    if listed_rows(stop, last) and last.do in _LISTS:
        return []
    texts = shorten(stop.said, MOST_CHARS).split("\n")
    role: Role = "bad" if stop.said.startswith("*** ") else ""
    more = len(texts) - MOST_ROWS
    lines = [line((role, text)) for text in texts[:MOST_ROWS]]
    lines += [line(("dim", f"… {more} more lines"))] if more > 0 else []
    if last.do not in _OWN:
        return quoted(lines)
    return [*lines, *([line(("dim", _BOUND))] if last.do == "help" and not last.argument else [])]


def stop_parts(stop: Stop, last: Command) -> tuple[Sequence[Line], Sequence[Row], Sequence[Line]]:
    """What is shown of a stop: lines, source, lines."""
    if stop.said:
        return said_lines(stop, last), listed_rows(stop, last), ()
    return (head_line(stop),), rows(stop), tail_lines(stop)

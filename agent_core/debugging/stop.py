"""A stop as an interface shows it, the commands that can be given there, and the Protocol by which it takes part."""

import re
from dataclasses import dataclass
from typing import Final, Protocol

from sandbox.lines import bare_lines

from ..errors import UsageError

_ASSIGNS = re.compile(r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)")


@dataclass(frozen=True, slots=True)
class At:
    """One frame of the stack; `function` as Python names it."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a call stands still. Every text is masked and without characters that act on a terminal.

    `frames` begin with the outermost, `current` is the number of the one that is looked at. `source` is the text of its
    module from the host's own copy. `said` answers the last command; it is empty when the call has just stopped.
    """

    call: str  # the function that was called
    why: str  # breakpoint N, breakpoint(), step, return, waits, yields, exception, raised, break now
    frames: tuple[At, ...]
    current: int
    locals: tuple[tuple[str, str], ...]
    arguments: int  # so many of the locals, the first ones, are arguments
    names: tuple[str, ...] = ()  # what completes
    shown: tuple[tuple[str, str], ...] = ()  # expressions that are displayed
    value: str | None = None  # what is returned, at a return
    error: str | None = None  # at an exception
    source: str = ""
    armed: frozenset[int] = frozenset()  # lines of the source with breakpoints
    said: str = ""
    given: str = ""  # the arguments of the call as JSON, where several calls run and one has to be told from another

    @property
    def at(self) -> At:
        """The frame that is looked at."""
        return self.frames[self.current]

    def listing(self, around: int = 5) -> tuple[tuple[int, str], ...]:
        """Lines of the source with their numbers, around the one that runs next."""
        return self.lines(self.at.line - around, self.at.line + around)

    def lines(self, first: int, last: int) -> tuple[tuple[int, str], ...]:
        """Those lines of the source that there are, with their numbers."""
        lines = bare_lines(self.source)
        return tuple((number, lines[number - 1]) for number in range(max(1, first), min(len(lines), last) + 1))


@dataclass(frozen=True, slots=True)
class Command:
    """One thing to do at a stop; `argument` is what stands behind its name."""

    do: str
    argument: str = ""

    @classmethod
    def parse(cls, line: str) -> "Command":
        """The command of a line that was typed; what is no command is an expression.

        Raises:
            UsageError: the command needs an argument.
        """
        name, _, rest = line.strip().partition(" ")
        known = BY_NAME.get(name)
        if known is None or _ASSIGNS.match(rest.lstrip()):
            return cls("p", line.strip()) if line.strip() else cls("repeat")
        if known.needs and not rest.strip():
            raise UsageError(f"`{known.name}` needs {known.needs}.", mend=f"For example: {known.example}")
        return cls(known.name, rest.strip())


@dataclass(frozen=True, slots=True)
class Known:
    """A command as help shows it."""

    name: str
    short: str
    what: str
    needs: str = ""
    example: str = ""
    resumes: bool = False


COMMANDS: Final = (
    Known("next", "n", "run this line, not stopping in what it calls", resumes=True),
    Known("step", "s", "run to the next line, in what this one calls too", resumes=True),
    Known("return", "r", "run until this function returns", resumes=True),
    Known("continue", "c", "run on", resumes=True),
    Known("until", "unt", "run to a line further down: until [LINE]", resumes=True),
    Known("up", "u", "look at the caller"),
    Known("down", "d", "look at what this frame has called"),
    Known("where", "w", "the stack"),
    Known("list", "l", "the source around this line, then what follows: list [. | LINE | FIRST,LAST]"),
    Known("longlist", "ll", "the source of this whole function"),
    Known("p", "p", "the value of an expression", "an expression", "p total + 1"),
    Known("pp", "pp", "the same, laid out", "an expression", "pp rows"),
    Known("whatis", "whatis", "the type of an expression", "an expression", "whatis total"),
    Known("args", "a", "the arguments of this function"),
    Known("locals", "locals", "all locals"),
    Known("set", "set", "give a local another value: set NAME EXPRESSION", "a name and a value", "set total 0"),
    Known("break", "b", "breakpoints, or one more: break [FUNCTION:]LINE [if CONDITION] [after N] [every N]"),
    Known("tbreak", "tb", "one that stops once: tbreak [FUNCTION:]LINE [if CONDITION]", "a line", "tbreak 12"),
    Known("condition", "condition", "when a breakpoint stops: condition NUMBER [CONDITION]", "a number", "condition 1"),
    Known("ignore", "ignore", "pass a breakpoint over: ignore NUMBER TIMES", "two numbers", "ignore 1 20"),
    Known("clear", "cl", "take a breakpoint away by its number", "a number", "clear 1"),
    Known("display", "display", "show an expression at each stop", "an expression", "display total"),
    Known("undisplay", "undisplay", "show it no more", "an expression", "undisplay total"),
    Known("retval", "retval", "the value that is about to be returned"),
    Known("quit", "q", "end the call"),
    Known("help", "h", "this list, or one command: help [COMMAND]"),
)
RESUMING: Final = frozenset(one.name for one in COMMANDS if one.resumes)
_ALSO: Final = {"cont": "continue", "?": "help", "exit": "quit"}
_NAMED: Final = {name: one for one in COMMANDS for name in (one.name, one.short)}
BY_NAME: Final = _NAMED | {name: _NAMED[meant] for name, meant in _ALSO.items()}


class Debugger(Protocol):
    """A human at a debugger, as an interface offers one."""

    async def stopped(self, stop: Stop) -> Command:
        """What to do. It is asked again, with `said`, until a command lets the call go on."""

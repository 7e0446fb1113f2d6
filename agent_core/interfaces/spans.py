"""Lines of text with roles, in two forms: plain, and colored for a terminal.

What a command or the prompt shows is built from these, so that one renderer serves pipes and
terminals, and so that no text reaches a terminal without passing `visible`.
"""

import os
from collections.abc import Iterable
from typing import IO, Literal, TypeAlias

from agent_core.base.untrusted import visible

Role = Literal["", "ok", "bad", "warn", "dim", "name", "strong", "alarm"]
Span: TypeAlias = tuple[Role, str]
Line: TypeAlias = tuple[Span, ...]

_SGR: dict[Role, str] = {
    "ok": "32",
    "bad": "31",
    "warn": "33",
    "dim": "2",
    "name": "36",
    "strong": "1",
    "alarm": "1;37;41",
}


BAR: Span = ("dim", "│ ")


def line(*spans: Span | str) -> Line:
    """Return one line. Plain text has no role."""
    return tuple(("", span) if isinstance(span, str) else span for span in spans)


def warned(warning: str) -> list[Line]:
    """Return a warning of one or more lines, if there is one."""
    first, *others = warning.split("\n")
    return [line(("warn", f"! {first}")), *(line("  ", text) for text in others)] if warning else []


def indented(lines: Iterable[Line], by: int = 2) -> list[Line]:
    """Return the same lines, indented."""
    return [(("", " " * by), *spans) for spans in lines]


def quoted(lines: Iterable[Line]) -> list[Line]:
    """Return text of a value or worker with a bar before each line, so that none looks like a line of the program."""
    return [(BAR, *spans) for spans in lines]


def plain(lines: Iterable[Line]) -> str:
    """Return the lines as text, each ended by a newline."""
    return "".join("".join(visible(text) for _, text in spans) + "\n" for spans in lines)


def coloured(lines: Iterable[Line]) -> str:
    """Return the lines with the terminal's own sixteen colors."""
    return "".join("".join(_paint(role, text) for role, text in spans) + "\n" for spans in lines)


def takes_colour(stream: IO[str]) -> bool:
    """Check whether control sequences may be written: the stream is a terminal, not a dumb one, and NO_COLOR is not
    set.
    """
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def painted(lines: Iterable[Line], stream: IO[str]) -> str:
    """Return the lines in the form that the stream takes."""
    return coloured(lines) if takes_colour(stream) else plain(lines)


def _paint(role: Role, text: str) -> str:
    shown = visible(text)
    return f"\x1b[{_SGR[role]}m{shown}\x1b[0m" if role else shown

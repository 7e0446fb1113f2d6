"""Markdown and Python source as text for a terminal, rendered by rich. Slow to import: loaded behind the prompt.

What comes in is untrusted and passes `visible` first, and what goes out does once more: Markdown has entities for
every character. Links are shown as text, never as escape sequences; HTML, pictures and definitions as they are typed.
"""

import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from functools import lru_cache
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, JustifyMethod
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.style import Style
from rich.theme import Theme

from agent_core.base.untrusted import visible
from sandbox.wire.lines import bare_lines

from ..columns import cut, width
from ..render.function_view import MARK, SourceRow
from ..spans import line, plain
from ..wrap import folded
from .blocks import MOST_CHARS, MOST_SPANS, spans
from .code import CodeStream, Part, painted, rows

_THEME = Theme({"markdown.code": "bold cyan"})  # usually on black, which on a light screen is a bar
DARK, LIGHT = "ansi_dark", "ansi_light"
_MARKED, _NEXT, _DIM, _PLAIN = Style.parse("red"), Style.parse("bold yellow"), Style.parse("dim"), Style()
_LONGEST_PAINTED = 100_000  # characters of a source: to come to its last line takes two seconds
_SGR = re.compile("(\x1b\\[[0-9;]*m)")
# Without its rules for what would not be seen: a reply is not a page.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])


class _Title(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}  # all on the left: a reply is read from there


class _Reply(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _Title}


_DOCUMENT = _Reply("", code_theme=DARK, hyperlinks=False)


def markdown(text: str, columns: int, theme: str = DARK) -> Iterator[str]:
    """Render one block of Markdown to the width. One that would take long is drawn as written, row by row."""
    if len(text) > MOST_CHARS or sum(map(spans, text.split("\n"))) > MOST_SPANS:
        for row in folded((line(raw_line) for raw_line in text.strip("\n").split("\n")), columns, 0):
            yield plain([row])
        return
    document = copy(_DOCUMENT)  # a new one would bring a parser of its own
    document.code_theme = theme
    document.parsed = _PARSER.parse(visible(text))
    yield _drawn(document, columns)


def takes_colour() -> bool:
    """Check whether the user wants colors."""
    return not os.environ.get("NO_COLOR")


def code(language: str, theme: str = DARK) -> CodeStream:
    """Return a code block that is drawn as it comes."""
    return CodeStream(language, theme, coloured=takes_colour())


def source(code: str, first: int, columns: int, theme: str = DARK, marked: Collection[int] = ()) -> Iterator[str]:
    """Draw Python source with line numbers and colors, row by row; `marked` are line numbers."""
    text = "\n".join(bare_lines(code)).rstrip("\n")
    digits = len(str(first + text.count("\n")))
    margin = " " * (len(MARK) + digits + 1)
    for number, parts in enumerate(_python(text, theme), first):
        mark = painted(_MARKED, MARK) if number in marked else " " * len(MARK)
        yield from rows(parts, columns, margin, f"{mark}{painted(_DIM, f'{number:{digits}} ')}")


def listing(code: str, shown: Sequence[SourceRow], columns: int, theme: str = DARK) -> Iterator[str]:
    """Draw some lines of a source with their marks, in the colors they have within the whole source."""
    lines, others = _painting(code, theme)
    for row in shown:
        while len(lines) < row.number and (parts := next(others, None)) is not None:
            lines.append(parts)
            yield ""
        yield _cut(row, lines[row.number - 1] if row.number <= len(lines) else [(_PLAIN, row.text)], columns)


@lru_cache(maxsize=4)
def _painting(code: str, theme: str) -> tuple[list[list[Part]], Iterator[list[Part]]]:
    """Return the lines already painted, and an iterator over the rest."""
    return [], _python("\n".join(bare_lines(code)) if len(code) <= _LONGEST_PAINTED else "", theme)


def _python(text: str, theme: str) -> Iterator[list[Part]]:
    return CodeStream("python", theme, coloured=takes_colour()).lines(text)


def _cut(row: SourceRow, parts: Sequence[Part], columns: int) -> str:
    room = columns - len(row.gutter)
    drawn = [painted(_NEXT if row.is_next else _DIM, row.gutter)] if takes_colour() else [row.gutter]
    for style, text in parts:
        shown = cut(visible(text), room)
        drawn.append(painted(style, shown))
        room -= width(shown)
        if shown != text:
            break
    return f"{''.join(drawn)}\n"


def _drawn(thing: Markdown, columns: int) -> str:
    console = Console(
        file=io.StringIO(),
        theme=_THEME,
        width=columns,
        force_terminal=takes_colour(),
        color_system="standard" if takes_colour() else None,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(thing)
    lines = [_shown(line.rstrip(" ")) for line in captured.get().split("\n")]
    while lines and not _SGR.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def _shown(line: str) -> str:
    return "".join(part if _SGR.fullmatch(part) else visible(part) for part in _SGR.split(line))

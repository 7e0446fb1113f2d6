"""Markdown and Python source as text for a terminal, by rich. Heavy: loaded behind the prompt.

What comes in is untrusted and passes `visible` first, and what goes out does once more: Markdown has entities for
every character. Links are shown as text, never as escape sequences; HTML, pictures and definitions as they are typed.
"""

import io
import os
import re
from collections.abc import Collection, Sequence
from copy import copy
from functools import lru_cache

from markdown_it import MarkdownIt
from rich.console import Console, Group, RenderableType
from rich.containers import Lines
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from agent_core.untrusted import visible

from ..views import Row
from .code import Code

_THEME = Theme({"markdown.code": "bold cyan"})  # usually on black, which on a light screen is a bar
DARK, LIGHT = "ansi_dark", "ansi_light"
_SGR = re.compile("(\x1b\\[[0-9;]*m)")
# Without its rules for what would not be seen: a reply is not a page.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])

_PAINTED = 8_000
"""Characters that are drawn in the colors of their kind: more of them would hold up the prompt."""

_DOCUMENT = Markdown("", code_theme=DARK, hyperlinks=False)


def markdown(text: str, columns: int, theme: str = DARK) -> str:
    """One block of Markdown, drawn to the width."""
    # A table that nobody could read takes seconds, and so does a block of many pages.
    if len(text) > _PAINTED or any(row.count("|") > columns for row in text.split("\n")):
        return _drawn(Text(visible(text)), columns)
    document = copy(_DOCUMENT)  # a new one would bring a parser of its own
    document.code_theme = theme
    document.parsed = _PARSER.parse(visible(text))
    return _drawn(document, columns)


def takes_colour() -> bool:
    """Whether the human wants colours."""
    return not os.environ.get("NO_COLOR")


def code(language: str, theme: str = DARK) -> Code:
    """A stretch of code that is drawn as it comes."""
    return Code(language, theme, coloured=takes_colour())


def source(code: str, first: int, columns: int, theme: str = DARK, marked: Collection[int] = ()) -> str:
    """Python source with line numbers and colours; `marked` are numbers of lines."""
    return _drawn(
        Syntax(
            visible(code).rstrip("\n"),
            "python" if len(code) <= _PAINTED else "text",
            theme=theme,
            line_numbers=True,
            start_line=first,
            highlight_lines={*marked},
            word_wrap=True,
            background_color="default",
        ),
        columns,
    )


def listing(code: str, rows: Sequence[Row], columns: int, theme: str = DARK) -> str:
    """Some lines of a source with their marks; the colours are those that they have within all of it."""
    painted = _lines(visible(code), theme)
    shown = [_cut(row, painted[row.number - 1] if row.number <= len(painted) else Text(row.text)) for row in rows]
    return _drawn(Group(*shown), columns)


@lru_cache(maxsize=4)
def _lines(code: str, theme: str) -> Lines:
    if len(code) > _PAINTED:
        return Text(code).split("\n", allow_blank=True)
    painter = Syntax("", "python", theme=theme, background_color="default")
    return painter.highlight(code).split("\n", allow_blank=True)


def _cut(row: Row, text: Text) -> Text:
    gutter = Text(row.gutter, style="bold yellow" if row.is_next else "dim")
    shown = Text(no_wrap=True, overflow="ellipsis")
    return shown.append_text(gutter).append_text(text)


def _drawn(thing: RenderableType, columns: int) -> str:
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

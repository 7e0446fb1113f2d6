"""Markdown and Python source as text for a terminal, by rich. Heavy: loaded behind the prompt.

What comes in is untrusted and passes `visible` first, and what goes out does once more: Markdown has entities for
every character. Links are shown as text, never as escape sequences; HTML, pictures and definitions as they are typed.
"""

import io
import os
import re

from markdown_it import MarkdownIt
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.syntax import Syntax

from agent_core.untrusted import visible

THEME = "ansi_dark"
_SGR = re.compile("(\x1b\\[[0-9;]*m)")
# Without its rules for what would not be seen: a reply is not a page.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])


def markdown(text: str, columns: int) -> str:
    """One block of Markdown, drawn to the width."""
    document = Markdown("", code_theme=THEME, hyperlinks=False)
    document.parsed = _PARSER.parse(visible(text))
    return _drawn(document, columns)


def source(code: str, first: int, columns: int) -> str:
    """Python source with line numbers and colours."""
    return _drawn(
        Syntax(
            visible(code).rstrip("\n"),
            "python",
            theme=THEME,
            line_numbers=True,
            start_line=first,
            word_wrap=True,
            background_color="default",
        ),
        columns,
    )


def _drawn(thing: RenderableType, columns: int) -> str:
    console = Console(
        file=io.StringIO(),
        width=columns,
        force_terminal=not os.environ.get("NO_COLOR"),
        color_system=None if os.environ.get("NO_COLOR") else "standard",
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

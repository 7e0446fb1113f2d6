"""Markdown and Python source as text for a terminal, by rich. Heavy: loaded behind the prompt.

What comes in is untrusted and passes `visible` first; links are shown as text, never as escape sequences.
"""

import io
import os
import re

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.syntax import Syntax

from agent_core.untrusted import visible

THEME = "ansi_dark"
_SGR = re.compile("\x1b\\[[0-9;]*m")


def markdown(text: str, columns: int) -> str:
    """One block of Markdown, drawn to the width."""
    return _drawn(Markdown(visible(text), code_theme=THEME, hyperlinks=False), columns)


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
    lines = [line.rstrip(" ") for line in captured.get().split("\n")]
    while lines and not _SGR.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    return "".join(f"{line}\n" for line in lines)

"""Rows of text as aligned columns."""

import unicodedata
from collections.abc import Sequence

from agent_core.untrusted import one_line

from .spans import Line, Role, Span


def columns(rows: Sequence[Sequence[str]], roles: Sequence[Role], gap: int = 2) -> list[Line]:
    """Each row as a line whose cells stand under one another; the last column is not filled up."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, cells)) for cells in zip(*shown, strict=True)]
    return [_row(row, widths, roles, gap) for row in shown]


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return sum(_cells(character) for character in text)


def cut(text: str, cells: int) -> str:
    """The beginning of the text that fits, with an ellipsis where something is missing."""
    if width(text) <= cells:
        return text
    kept, used = "", 1
    for character in text:
        used += _cells(character)
        if used > cells:
            break
        kept += character
    return kept + "…"


def _row(cells: Sequence[str], widths: Sequence[int], roles: Sequence[Role], gap: int) -> Line:
    last = len(cells) - 1
    filled = [cell if at == last else cell + " " * (widths[at] - width(cell) + gap) for at, cell in enumerate(cells)]
    spans: list[Span] = list(zip(roles, filled, strict=True))
    return tuple(spans)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or character == "\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

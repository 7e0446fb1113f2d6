"""Rows of text as aligned columns."""

import textwrap
import unicodedata
from collections.abc import Sequence

from agent_core.untrusted import one_line

from .spans import Line, Role, Span


def columns(rows: Sequence[Sequence[str]], roles: Sequence[Role], gap: int = 2) -> list[Line]:
    """Each row as a line whose cells stand under one another; the last column is not filled up."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, cells)) for cells in zip(*shown, strict=True)]
    return [_row(row, widths, roles, gap) for row in shown]


def explained(rows: Sequence[tuple[str, str]], screen: int, most: int = 30) -> list[Line]:
    """Terms with their meanings beside them, folded to the screen; below a term that is too long for its column."""
    room = min(most, screen // 3)
    start = max((width(term) for term, _ in rows if width(term) <= room), default=room) + 2
    lines: list[Line] = []
    for term, says in rows:
        first, *more = textwrap.wrap(says, max(screen - start - 1, 1)) or [""]
        if width(term) + 2 <= start:
            lines.append((("name", term + " " * (start - width(term))), ("", first)))
        else:
            folded = textwrap.wrap(term, max(screen - 1, 8), subsequent_indent="    ")
            lines += [*((("name", each),) for each in folded), (("", " " * start + first),)]
        lines += [(("", " " * start + each),) for each in more]
    return lines


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return len(text) if text.isascii() else sum(_cells(character) for character in text)


def meter(done: float, total: float, cells: int) -> str:
    """How far something is, in cells of which some are full."""
    share = done / total if total > 0 else 0.0
    filled = round(min(max(share, 0.0), 1.0) * cells) if share == share else 0
    return "█" * filled + "░" * (cells - filled)


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


def cut_middle(text: str, cells: int) -> str:
    """The two ends of the text, with an ellipsis between them where it does not fit."""
    if width(text) <= cells:
        return text
    head = cut(text, max(cells // 2, 1))
    tail, room = "", cells - width(head)
    for character in reversed(text):
        room -= _cells(character)
        if room < 0:
            break
        tail = character + tail
    return head + tail


def _row(cells: Sequence[str], widths: Sequence[int], roles: Sequence[Role], gap: int) -> Line:
    last = len(cells) - 1
    filled = [cell if at == last else cell + " " * (widths[at] - width(cell) + gap) for at, cell in enumerate(cells)]
    spans: list[Span] = list(zip(roles, filled, strict=True))
    return tuple(spans)


def _cells(character: str) -> int:
    if character.isascii() or character == "\ufe0f":  # which makes a picture of the sign before it, two cells wide
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

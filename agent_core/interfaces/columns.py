"""Rows of text as aligned columns, and the one measure of how wide a text is.

Terminals and libraries disagree on characters. The largest number counts, so that no row comes out wider than its
measure.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_core.base.untrusted import escaped, one_line

if TYPE_CHECKING:
    from .spans import Line, Role, Span

_WIDENS = "\ufe0f"  # makes a picture of the sign before it, two cells wide
# Half a flag is one cell or two, and nobody knows how wide what has no shape of its own is drawn.
_REGIONAL = "\U0001f1e6\U0001f1ff"
_SHAPELESS = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
_FOREIGN = re.compile(r"[^\x00-\x7f]")


def columns(rows: Sequence[Sequence[str]], roles: Sequence["Role"], gap: int = 2) -> list["Line"]:
    """Return each row as a line with aligned cells. The last column is not padded."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, cells)) for cells in zip(*shown, strict=True)]
    return [_row(row, widths, roles, gap) for row in shown]


def explained(rows: Sequence[tuple[str, str]], screen: int, most: int = 30) -> list["Line"]:
    """Return terms with their meanings next to them, folded to the screen, or below a term that is too long."""
    room = min(most, screen // 3)
    start = max((width(term) for term, _ in rows if width(term) <= room), default=room) + 2
    lines: list[Line] = []
    for term, says in rows:
        first, *more = textwrap.wrap(says, max(screen - start - 1, 1)) or [""]
        if width(term) + 2 <= start:
            lines.append((("name", term + " " * (start - width(term))), ("", first)))
        else:
            folded = textwrap.wrap(term, max(screen - 1, 8), subsequent_indent="    ")
            lines += [*((("name", piece),) for piece in folded), (("", " " * start + first),)]
        lines += [(("", " " * start + piece),) for piece in more]
    return lines


def width(text: str) -> int:
    """Return the most cells that a terminal takes for the text."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def pieces(text: str, room: int, used: int = 0) -> Iterator[str]:
    """Cut the text into pieces that fit in a row. The first `used` cells are taken, so the first piece may be empty.

    A piece has one character at least, however narrow the row is.
    """
    start, is_fresh = 0, used == 0
    for at, character in enumerate(text):
        cells = _cells(character)
        if used + cells > room and (at > start or not is_fresh):
            yield text[start:at]
            start, used, is_fresh = at, 0, True
        used += cells
    yield text[start:]


def certain(text: str) -> str:
    """Escape every character that terminals draw in different widths, so that a row looks the same on all of them."""
    return _FOREIGN.sub(lambda match: escaped(match[0]) if _is_disputed(match[0]) else match[0], text)


def meter(done: float, total: float, cells: int) -> str:
    """Draw progress as a row of cells, some of them filled."""
    share = done / total if total > 0 else 0.0
    filled = round(min(max(share, 0.0), 1.0) * cells) if share == share else 0
    return "█" * filled + "░" * (cells - filled)


def cut(text: str, cells: int) -> str:
    """Return as much of the text as fits, with an ellipsis if something is missing."""
    shown = _beginning(text, cells)
    if len(shown) == len(text):
        return text
    return _beginning(text, cells - 1) + "…" if cells > 0 else ""


def cut_middle(text: str, cells: int) -> str:
    """Return both ends of the text, with an ellipsis between them if it does not fit."""
    if len(_beginning(text, cells)) == len(text):
        return text
    head = cut(text, max(cells // 2, 1))
    return head + _beginning(text[::-1], cells - width(head))[::-1]


def _row(cells: Sequence[str], widths: Sequence[int], roles: Sequence["Role"], gap: int) -> "Line":
    last = len(cells) - 1
    filled = [cell if at == last else cell + " " * (widths[at] - width(cell) + gap) for at, cell in enumerate(cells)]
    spans: list[Span] = list(zip(roles, filled, strict=True))
    return tuple(spans)


def _beginning(text: str, cells: int) -> str:
    first = next(pieces(text, cells))
    return first if width(first) <= cells else ""


@lru_cache(maxsize=1 << 16)
def _cells(character: str) -> int:
    if character.isascii() or character == _WIDENS:
        return 1
    return max(_own_cells(character), cell_len(character))


def _own_cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" or _REGIONAL[0] <= character <= _REGIONAL[-1] else 1


def _is_disputed(character: str) -> bool:
    category = unicodedata.category(character)
    if category in _SHAPELESS or character == _WIDENS or _REGIONAL[0] <= character <= _REGIONAL[-1]:
        return True
    return category[0] != "M" and _own_cells(character) != cell_len(character)


def money(cost: float) -> str:
    """Return `$0.0123` or `$1.20`."""
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def duration(seconds: float) -> str:
    """Return `12 ms`, `3.4 s` or `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"

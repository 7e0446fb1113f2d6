"""Lines of text with roles: aligned in columns, wrapped to a screen, searched as a list, plain or colored.

All output of commands and the prompt is built from these, so that one renderer serves pipes and terminals, and so that
no text reaches a terminal without passing through `visible`.
"""

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import IO, Literal, TypeAlias, TypeVar, get_args

from rich.cells import cell_len

from agent_core.base.records import dataclass
from agent_core.base.untrusted import escaped, one_line, visible

Role = Literal["", "ok", "bad", "warn", "dim", "name", "strong", "command"]
"""What a part of a line is. A `command` stands in one row if it fits, so that it can be read and copied."""
ROLES: dict[str, Role] = dict(zip(get_args(Role), get_args(Role), strict=True))
"""The roles by name, to check those that come from elsewhere."""
Span: TypeAlias = tuple[Role, str]
Line: TypeAlias = tuple[Span, ...]

_SGR: dict[Role, str] = {
    "ok": "32",
    "bad": "31",
    "warn": "33",
    "dim": "2",
    "name": "36",
    "strong": "1",
    "command": "2",
}


BAR: Span = ("dim", "│ ")
WORDS_BAR: Span = ("dim", "┆ ")  # before the words of a function
_BARS = (BAR, WORDS_BAR)


def line(*spans: Span | str) -> Line:
    """Return one line. Plain text has no role."""
    return tuple(("", span) if isinstance(span, str) else span for span in spans)


def warned(warning: str) -> list[Line]:
    """Return a warning of one or more lines, if there is one."""
    first, *others = warning.split("\n")
    return [line(("warn", f"! {first}")), *(line("  ", text) for text in others)] if warning else []


def indented(lines: Iterable[Line]) -> list[Line]:
    """Return the same lines, indented."""
    return [(("", "  "), *spans) for spans in lines]


def quoted(lines: Iterable[Line]) -> list[Line]:
    """Prefix each line of a value's or a worker's text with a bar, so that none looks like the program's own output."""
    return [(BAR, *spans) for spans in lines]


def plain(lines: Iterable[Line]) -> str:
    """Return the lines as text, each ended by a newline."""
    return "".join("".join(_in_row(text) for _, text in spans) + "\n" for spans in lines)


def coloured(lines: Iterable[Line]) -> str:
    """Return the lines with the terminal's own sixteen colors."""
    return "".join(
        "".join(
            f"\x1b[{_SGR[role]}m{_in_row(text)}\x1b[0m" if role else _in_row(text)
            for role, text in spans
        )
        + "\n"
        for spans in lines
    )


def _in_row(text: str) -> str:
    """Return the visible text of a part of a line: a name with a line break must not make a line of its own."""
    return visible(text).replace("\n", " ")


def takes_colour(stream: IO[str]) -> bool:
    """Check whether control sequences may be written: the stream is a terminal, not a dumb one, and NO_COLOR is not
    set.
    """
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def painted(lines: Iterable[Line], stream: IO[str]) -> str:
    """Return the lines as text for the stream, with colors if it supports them."""
    return coloured(lines) if takes_colour(stream) else plain(lines)


# Rows of text as aligned columns, and the measure of text width. Terminals and libraries disagree on the width of some
# characters: the largest width counts, so that no row is drawn wider than measured.

_WIDENS = "\ufe0f"  # turns the character before it into an emoji, two cells wide
# Half a flag takes one cell or two, and terminals differ on the width of characters without a glyph.
_REGIONAL = "\U0001f1e6\U0001f1ff"
_SHAPELESS = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
_FOREIGN = re.compile(r"[^\x00-\x7f]")


def columns(
    rows: Sequence[Sequence[str]], roles: Sequence[Role], gap: int = 2, *, heads: Sequence[str] = ()
) -> list[Line]:
    """Return each row as a line with aligned cells, below the `heads`. The last column is not padded."""
    shown = [
        [one_line(cell) for cell in row] for row in ([heads, *rows] if heads and rows else rows)
    ]
    widths = [max(map(width, cells)) for cells in zip(*shown, strict=True)]
    for cells in shown:
        cells[:-1] = [
            cell + " " * (widths[at] - width(cell) + gap) for at, cell in enumerate(cells[:-1])
        ]
    lines: list[Line] = [tuple(zip(roles, cells, strict=True)) for cells in shown]
    return [tuple(("dim", text) for _, text in lines[0]), *lines[1:]] if heads and rows else lines


def explained(rows: Sequence[tuple[str, str]], screen: int) -> list[Line]:
    """Return terms with their meanings next to them, wrapped to the screen, or below terms that are too long."""
    room = min(30, screen // 3)
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
    """Return the maximum number of cells that a terminal uses for the text."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def pieces(text: str, room: int, used: int = 0) -> Iterator[str]:
    """Cut the text into pieces that fit in a row. The first `used` cells are taken, so the first piece may be empty.

    Every other piece has at least one character, however narrow the row is.
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
    return _FOREIGN.sub(
        lambda match: escaped(match[0]) if _is_disputed(match[0]) else match[0], text
    )


def meter(done: float, total: float, cells: int) -> str:
    """Draw progress as a row of cells, some of them filled."""
    share = done / total if total > 0 else 0.0
    filled = round(min(max(share, 0.0), 1.0) * cells) if share == share else 0
    return "█" * filled + "░" * (cells - filled)


def cut(text: str, cells: int) -> str:
    """Return as much of the text as fits, with an ellipsis if it was cut."""
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
    return (
        2
        if unicodedata.east_asian_width(character) in "WF"
        or _REGIONAL[0] <= character <= _REGIONAL[-1]
        else 1
    )


def _is_disputed(character: str) -> bool:
    category = unicodedata.category(character)
    if category in _SHAPELESS or character == _WIDENS or _REGIONAL[0] <= character <= _REGIONAL[-1]:
        return True
    return category[0] != "M" and _own_cells(character) != cell_len(character)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in the singular or plural."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def money(cost: float) -> str:
    """Return `$0.0123` or `$1.20`."""
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def duration(seconds: float) -> str:
    """Return `12 ms`, `3.4 s` or `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


# Lines wrapped at spaces to a screen's width, keeping their indentation or bar. The last cell of a row stays free, so
# that a terminal that draws a character wider than measured does not wrap the row past its bar.

HANG = 2
_MOST_BARS = 4
_LEAST_ROOM = 2
_WORDS = re.compile(" +|[^ ]+ *")


def write(lines: Iterable[Line], stream: IO[str]) -> None:
    """Print the lines: wrapped for a terminal, unchanged for a pipe."""
    shown = folded(lines, screen_columns()) if stream.isatty() else lines
    stream.write(painted(shown, stream))
    stream.flush()


def screen_columns() -> int:
    """Return the number of cells that a row of the terminal may use."""
    return max(_screen().columns - 1, 1)


def screen_rows() -> int:
    """Return the number of rows of the terminal."""
    return _screen().lines


def _screen() -> os.terminal_size:
    """Return the size of the terminal, which may be that of the questions alone: the output can be a file."""
    with suppress(OSError, ValueError, AttributeError):
        return shutil.get_terminal_size(os.get_terminal_size(sys.__stderr__.fileno()))  # type: ignore[union-attr]
    return shutil.get_terminal_size()


def folded(lines: Iterable[Line], columns: int, hang: int = HANG) -> Iterator[Line]:
    """Wrap the lines lazily, so that showing the first rows of a long text wraps only these rows.

    Text without spaces is broken where necessary.
    """
    for line in lines:
        yield from _fold(line, columns, hang)


def split(line: Line, columns: int) -> Iterator[Line]:
    """Cut a line into rows exactly where each is full, so that all its blanks are shown."""
    row: list[Span] = []
    used = 0
    for role, text in line:
        for number, piece in enumerate(pieces(text, columns, used)):
            if number:
                yield _trim(row)
                row, used = [], 0
            row.append((role, piece))
            used += width(piece)
    yield _trim(row)


def _fold(line: Line, columns: int, hang: int) -> Iterator[Line]:
    bars = 0  # how many leading spans are bars or blanks before them
    for at, span in enumerate(line[:_MOST_BARS]):
        if span in _BARS:
            bars = at + 1
        elif span[1].strip(" ") or len(span[1]) > _MOST_BARS:
            break
    room = columns - sum(width(text) for _, text in line[:bars])
    if bars and room >= _LEAST_ROOM:
        yield from ((*line[:bars], *tail) for tail in _fold(line[bars:], room, hang))
        return
    shown: Line = tuple((role, _in_row(text).replace("\t", "    ")) for role, text in line)
    if (
        sum(len(text) for _, text in shown) <= 4 * columns
        and sum(width(text) for _, text in shown) <= columns
    ):
        yield shown
        return
    whole = "".join(text for _, text in shown)
    margin = min(len(whole) - len(whole.lstrip(" ")) + hang, columns // 2)
    row: list[Span] = []
    used = 0
    for role, word in _words(shown, columns - margin):
        if row and used + width(word.rstrip(" ")) > columns and word.strip(" "):
            yield _trim(row)
            row, used = [("", " " * margin)], margin
            word = word.lstrip(" ")
        row.append((role, word))
        used += width(word)
    yield _trim(row)


def _trim(row: list[Span]) -> Line:
    spans = list(row)
    while spans and not spans[-1][1].strip(" "):
        spans.pop()
    return (*spans[:-1], (spans[-1][0], spans[-1][1].rstrip(" "))) if spans else ()


def _words(line: Line, longest: int) -> Iterator[Span]:
    """Yield the words of a line with the spaces after them, and commands whole. What is longer than a row is split."""
    for role, text in line:
        if role == "command" and width(text) <= longest:
            yield role, text
            continue
        for word in _WORDS.finditer(text):
            bare = word[0].rstrip(" ")
            for piece in pieces(bare, longest):
                yield role, piece
            if len(bare) < len(word[0]):
                yield role, word[0][len(bare) :]


# A searchable list: one line per entry, the details of an entry, and the entries that match the typed text.


ShownSource: TypeAlias = tuple[str, int, Sequence[int]]
"""Python source, the number of its first line, and the numbers of its marked lines."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An entry: its line in the list, its searchable text, and its details."""

    name: str
    line: Line
    text: str
    lines: Callable[[], list[Line]]
    source: Callable[[], ShownSource] | None = None
    """Python source, shown under the lines."""


@dataclass(frozen=True, slots=True)
class Table:
    """Choices under a heading, followed by more lines. With `keeps_order`, better matches do not move to the top."""

    title: str
    head: Line
    choices: tuple[Choice, ...]
    keeps_order: bool = False
    below: tuple[Line, ...] = ()

    def lines(self) -> list[Line]:
        """Return the whole table as lines, for printing."""
        heads = [tuple[Span, ...](("dim", text) for _, text in self.head)] if self.choices else []
        return [*heads, *(choice.line for choice in self.choices), *self.below]


T = TypeVar("T")

_LEAST_INSIDE = 3  # letters needed for a match within a word: fewer match too much
_STARTS, _WORD_STARTS, _CONTAINS, _LETTERS = 0, 1, 2, 3


def rank(typed: str, text: str) -> tuple[int, int] | None:
    """Return a rank for how well the text matches (lower is better), or None if it does not match."""
    letters, target = typed.lower(), text.lower()
    at = target.find(letters)
    if at == 0:
        return _STARTS, 0
    if at > 0 and not target[at - 1].isalnum():
        return _WORD_STARTS, at
    if at > 0 and len(letters) >= _LEAST_INSIDE:
        return _CONTAINS, at
    first = at = -1
    for letter in letters:  # they come in order, and the first begins a word
        at = target.find(letter, at + 1)
        if at < 0:
            return None
        first = at if first < 0 else first
    begins_word = first == 0 or not target[first - 1].isalnum()
    return (_LETTERS, at - first) if begins_word else None


def fitting(typed: str, things: Iterable[T], text: Callable[[T], str]) -> list[T]:
    """Return the items with matching text, best first. Equal matches keep their order."""
    ranked = [(rank(typed, text(thing)), thing) for thing in things]
    matches = [(score, thing) for score, thing in ranked if score is not None]
    return [thing for _, thing in sorted(matches, key=lambda match: match[0])]

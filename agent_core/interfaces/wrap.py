"""Lines folded at spaces to a screen's width, under their indentation, or behind their bar.

The one place that folds: at the prompt, above it, in a question and in plain output. The last cell of a row stays
free, so that a terminal that draws a character wider than it was taken for does not break the row behind its bar.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from typing import IO

from agent_core.base.untrusted import visible

from .columns import pieces, width
from .spans import BAR, Line, Role, Span, painted

HANG = 2
_MOST_BARS = 4
_LEAST_ROOM = 2
_WORDS = re.compile(" +|[^ ]+ *")


def write(lines: Iterable[Line], stream: IO[str]) -> None:
    """Print the lines in the form that the stream takes: folded for a terminal, unchanged for a pipe."""
    shown = folded(lines, screen_columns()) if stream.isatty() else lines
    stream.write(painted(shown, stream))
    stream.flush()


def screen_columns() -> int:
    """Return how many cells a row of the terminal may take."""
    return max(shutil.get_terminal_size().columns - 1, 1)


def wrapped(lines: Iterable[Line], columns: int) -> list[Line]:
    """Return the same lines, none wider than the screen. Text without a space is broken where necessary."""
    return list(folded(lines, columns))


def folded(lines: Iterable[Line], columns: int, hang: int = HANG) -> Iterator[Line]:
    """Fold the lines one after another, so that the first rows of a long text cost only these rows."""
    for line in lines:
        yield from _folded(line, columns, hang)


def _folded(line: Line, columns: int, hang: int) -> Iterator[Line]:
    bars = _bars(line)
    room = columns - sum(width(text) for _, text in line[:bars])
    if bars and room >= _LEAST_ROOM:
        yield from ((*line[:bars], *tail) for tail in _folded(line[bars:], room, hang))
        return
    shown: Line = tuple((role, visible(text).replace("\n", " ").replace("\t", "    ")) for role, text in line)
    if sum(len(text) for _, text in shown) <= 4 * columns and sum(width(text) for _, text in shown) <= columns:
        yield shown
        return
    margin = min(_indentation(shown) + hang, columns // 2)
    row: list[Span] = []
    used = 0
    for role, word in _words(shown, columns - margin):
        if row and used + width(word.rstrip(" ")) > columns and word.strip(" "):
            yield _trimmed(row)
            row, used = [("", " " * margin)], margin
            word = word.lstrip(" ")
        row.append((role, word))
        used += width(word)
    yield _trimmed(row)


def _bars(line: Line) -> int:
    """Return how many spans at the beginning are bars, with the blanks before them."""
    count = 0
    for at, span in enumerate(line[:_MOST_BARS]):
        if span == BAR:
            count = at + 1
        elif span[1].strip(" ") or len(span[1]) > _MOST_BARS:
            break
    return count


def _trimmed(row: list[Span]) -> Line:
    spans = list(row)
    while spans and not spans[-1][1].strip(" "):
        spans.pop()
    return (*spans[:-1], (spans[-1][0], spans[-1][1].rstrip(" "))) if spans else ()


def _words(line: Line, longest: int) -> Iterator[Span]:
    """Yield the words of a line with the spaces after them. A word longer than a row comes in pieces."""
    for role, text in line:
        for word in _WORDS.finditer(text):
            yield from _pieces(role, word[0], longest)


def _pieces(role: Role, word: str, longest: int) -> Iterator[Span]:
    bare = word.rstrip(" ")
    yield from ((role, piece) for piece in pieces(bare, longest))
    if len(bare) < len(word):
        yield role, word[len(bare) :]


def _indentation(line: Line) -> int:
    text = "".join(text for _, text in line)
    return len(text) - len(text.lstrip(" "))

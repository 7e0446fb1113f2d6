"""Lines folded to a screen's width at their spaces, under the indentation, or behind the bar, that they began with."""

import shutil
from collections.abc import Iterable, Iterator
from typing import IO

from agent_core.untrusted import visible

from .columns import width
from .spans import BAR, Line, Role, Span, quoted

HANG = 2


def fitted(lines: Iterable[Line], stream: IO[str]) -> list[Line]:
    """The lines folded to the terminal that the stream is; for a pipe as they are."""
    return wrapped(lines, shutil.get_terminal_size().columns) if stream.isatty() else list(lines)


def wrapped(lines: Iterable[Line], columns: int) -> list[Line]:
    """The same lines, none wider than the screen; what has no space is broken where it must be."""
    return list(folded(lines, columns))


def folded(lines: Iterable[Line], columns: int) -> Iterator[Line]:
    """The same, one after another: the rows of a page cost no more than the page."""
    for each in lines:
        yield from _folded(each, columns)


def _folded(line: Line, columns: int) -> Iterator[Line]:
    if line and line[0] == BAR:
        yield from quoted(_folded(line[1:], max(columns - width(BAR[1]), HANG)))
        return
    shown: Line = tuple((role, visible(text).replace("\n", " ").replace("\t", "    ")) for role, text in line)
    if sum(len(text) for _, text in shown) <= 4 * columns and sum(width(text) for _, text in shown) <= columns:
        yield shown
        return
    margin = min(_indentation(shown) + HANG, columns // 2)
    row: list[Span] = []
    used = 0
    for role, word in _words(shown, columns - margin):
        if used + width(word.rstrip(" ")) > columns:
            yield _trimmed(row)
            row, used = [("", " " * margin)], margin
            word = word.lstrip(" ")
        row.append((role, word))
        used += width(word)
    yield _trimmed(row)


def _trimmed(row: list[Span]) -> Line:
    kept = list(row)
    while kept and not kept[-1][1].strip(" "):
        kept.pop()
    return (*kept[:-1], (kept[-1][0], kept[-1][1].rstrip(" "))) if kept else ()


def _words(line: Line, longest: int) -> Iterator[Span]:
    """The words of a line with the spaces after them; a word longer than a row comes in pieces."""
    for role, text in line:
        for word in _split(text):
            yield from _pieces(role, word, longest)


def _split(text: str) -> Iterator[str]:
    start = 0
    for at in range(1, len(text)):
        if text[at - 1] == " " and text[at] != " ":
            yield text[start:at]
            start = at
    yield text[start:]


def _pieces(role: Role, word: str, longest: int) -> Iterator[Span]:
    if word.isascii():
        bare = len(word.rstrip(" "))
        for start in range(0, max(bare, 1), longest):
            is_last = start + longest >= bare
            yield role, word[start:] if is_last else word[start : start + longest]
        return
    piece, used = "", 0
    for character in word:
        cells = width(character)
        if used + cells > longest and character != " ":
            yield role, piece
            piece, used = "", 0
        piece += character
        used += cells
    yield role, piece


def _indentation(line: Line) -> int:
    text = "".join(text for _, text in line)
    return len(text) - len(text.lstrip(" "))

"""Parts of a text, as readers find them, and their cutting into chunks; small parts are joined.

A part is cut at paragraphs, lines, sentences and words, in this order of preference. The same parts always result in
the same chunks, so that storing a source can continue after an interruption.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from agent_core.base.errors import KnapperError
from agent_core.base.records import dataclass
from agent_core.base.untrusted import CONTROLS, UNSEEN


class Unreadable(KnapperError):
    """Error raised when a source is missing, is not text, is too large, or cannot be read as what it claims to be."""

    code = "unreadable-source"


Unit: TypeAlias = Literal["", "line", "page", "row", "record"]

LONGEST: Final = 1_200
"""Maximum characters of a chunk."""
GOAL: Final = 1_000
"""Preferred characters of a chunk, if the text allows a choice."""
SMALL: Final = 240
"""A part with fewer characters is joined to the next one."""


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A piece of a text that belongs together: a section, a function, a page, a row.

    `title` is its location, such as the path of its headings. `number` counts in `unit`s: its first line, or its page,
    row or record number. `lead` is prefixed to each of its chunks that does not start with it.
    """

    text: str
    title: str = ""
    unit: Unit = ""
    number: int = 0
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The raw form of a passage: a text, and its position in the source as an answer cites it."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A source as chunks: the kind it was read as, and notes about it."""

    kind: str
    chunks: tuple[Chunk, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceParts:
    """A source as parts; those below `fill` characters are joined to the next one."""

    parts: tuple[SourcePart, ...]
    fill: int = SMALL
    notes: tuple[str, ...] = ()


_OVERLAP: Final = 160
_EARLIEST: Final = 0.7
_BREAKS: Final = ("\n\n", "\n", ". ", "! ", "? ", "。", "; ", " ")
_IN_A_PARAGRAPH: Final = frozenset({". ", "! ", "? "})
_LEAST: Final = 200
_COUNTED: Final = (
    "row",
    "record",
)  # units whose lead is a header, prefixed to each; other texts begin with their lead
_TITLE: Final = 160
_UNFIT: Final = re.compile(f"[{CONTROLS}]")
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    title: str
    unit: str
    first: int
    last: int
    lead: str


def cut(source: SourceParts) -> Iterator[Chunk]:
    """Yield the chunks of a source in order; together they contain every visible word of it."""
    for pieces in _join_pieces(source):
        text = "\n".join(filter(None, [pieces[0].lead, *(piece.text for piece in pieces)]))
        titles = "; ".join(dict.fromkeys(piece.title for piece in pieces if piece.title))
        titles = titles if len(titles) <= _TITLE else f"{titles[: _TITLE - 1]}…"
        first, last, unit = pieces[0].first, max(piece.last for piece in pieces), pieces[0].unit
        numbers = f"{unit} {first}" if first == last else f"{unit}s {first}–{last}"
        place = ", ".join(filter(None, [titles, numbers if unit else ""]))
        chunk = Chunk(*(_UNSEEN.sub("", _UNFIT.sub(" ", each)) for each in (text, place)))
        if chunk.text.strip():
            yield chunk


def _join_pieces(source: SourceParts) -> Iterator[list[_Piece]]:
    """Yield the pieces of each chunk: a small piece is joined with the next one while both fit."""
    pieces, size = list[_Piece](), 0
    for piece in (piece for part in source.parts for piece in _pieces(part)):
        joined = size + len(piece.text) + 1
        is_like = (
            bool(pieces) and pieces[0].unit == piece.unit and piece.lead in ("", pieces[0].lead)
        )
        if is_like and size < source.fill and joined < LONGEST:
            pieces.append(piece)
            size = joined
            continue
        if pieces:
            yield pieces
        pieces, size = [piece], len(piece.lead) + len(piece.text)
    if pieces:
        yield pieces


def spans(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text, each at most `longest`; a span after a cut within a paragraph repeats a sentence."""
    start = 0
    while len(text) - start > longest:
        end, separator = _break(text, start, longest)
        yield start, end
        begin = 0
        if (
            separator in _IN_A_PARAGRAPH
        ):  # back to the last sentence, if it is short and not the whole piece
            low = max(end - _OVERLAP, start + _LEAST)
            begin = max(text.rfind(mark, low, end - len(mark)) for mark in _IN_A_PARAGRAPH)
        start = begin + 2 if begin > 0 else end
    yield start, len(text)


def _break(text: str, start: int, longest: int) -> tuple[int, str]:
    """Return the end of the piece that begins here, and the separator that ends it."""
    length = len(text) - start
    even = length / -(-length // min(GOAL, longest))
    earliest, latest = start + int(even * _EARLIEST), start + longest
    for separator in _BREAKS:
        at = text.rfind(separator, earliest, latest)
        if at > start:
            return at + len(separator), separator
    return latest, ""


def _pieces(part: SourcePart) -> Iterator[_Piece]:
    text = part.text
    lead = part.lead[: LONGEST // 3]
    line, counted = part.number, 0
    for start, end in spans(text, LONGEST - len(lead) - 1 if lead else LONGEST):
        piece = text[start:end]
        if not piece.strip():
            continue
        if part.unit == "line":
            begin = start + len(piece) - len(piece.lstrip("\n"))
            ahead = (
                text.count("\n", counted, begin)
                if begin >= counted
                else -text.count("\n", begin, counted)
            )
            line, counted = line + ahead, begin
            last = line + piece.strip("\n").count("\n")
            yield _Piece(
                piece.strip("\n").rstrip(), part.title, part.unit, line, last, lead if start else ""
            )
        else:
            yield _Piece(
                piece.strip(),
                part.title,
                part.unit,
                part.number,
                part.number,
                lead if start or part.unit in _COUNTED else "",
            )

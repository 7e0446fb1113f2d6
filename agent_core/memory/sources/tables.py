"""CSV: rows joined up to a good size, with the header above each chunk."""

import csv
import io
import re
from collections.abc import Iterator
from typing import Final

from .parts import GOAL, SourcePart, SourceParts
from .prose import plain

_SAMPLE: Final = 1 << 13
_DELIMITERS: Final = (",", ";", "\t", "|")
_NUMBER: Final = re.compile(r"[-+]?[\d.,]{1,40}%?")
_LONGEST_CELL: Final = 1 << 20


def table(text: str, delimiter: str = "") -> SourceParts:
    """Return the rows, numbered from 1 below the header."""
    csv.field_size_limit(_LONGEST_CELL)
    try:
        rows = [row for row in _rows(text, delimiter or _delimiter(text)) if any(row)]
    except csv.Error as error:
        return SourceParts(
            plain(text).parts, GOAL * 3 // 4, (f"It is not a table that can be read ({error}); read as text.",)
        )
    header = " | ".join(rows[0]) if rows and _is_header(rows[0]) else ""
    body = rows[1:] if header and len(rows) > 1 else rows
    lead = header if body is not rows else ""
    if len(lead) > GOAL // 3:  # too long to stand above each: a row of its own
        lead, body = "", rows
    return SourceParts(
        tuple(SourcePart(" | ".join(row), "", "row", number, lead) for number, row in enumerate(body, 1)), GOAL
    )


def tabbed(text: str) -> SourceParts:
    """Return the rows of a table separated by tabs."""
    return table(text, "\t")


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        yield [" ".join(cell.split()) for cell in row]


def _delimiter(text: str) -> str:
    """Return the delimiter that splits the first lines into most columns, the same number in each."""
    lines = [line for line in text[:_SAMPLE].split("\n")[:20] if line.strip()]
    lines = lines[:-1] if len(lines) > 2 else lines
    return max(_DELIMITERS, key=lambda mark: min((line.count(mark) for line in lines), default=0))


def _is_header(row: list[str]) -> bool:
    return len(row) > 1 and not any(_NUMBER.fullmatch(cell) for cell in row) and len({*row}) == len(row)

"""Records joined up to a good size: JSON and JSON Lines as lines of `name: value`, and rows of CSV.

The header of a table precedes each chunk of its rows.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from sandbox.wire.strict_json import DEEPEST_ROW, Malformed, Strictness, read_json

from .cutting import GOAL, SourcePart, SourceParts, Unit
from .prose import plain

_DEEPEST: Final = 64
_RECORD: Final[Unit] = "record"
_AS_WRITTEN: Final = Strictness(unique=False, constants=False, finite=False, whole=False, numbers=False)


def records(text: str) -> SourceParts:
    """Return the records of a list, or the entries of an object."""
    try:
        return SourceParts(tuple(_parts(read_json(text, _AS_WRITTEN, deepest=DEEPEST_ROW))), GOAL)
    except Malformed:
        return _as_text(text)


def lines(text: str) -> SourceParts:
    """Return one record per line."""
    try:
        rows = [read_json(line, _AS_WRITTEN, deepest=DEEPEST_ROW) for line in text.split("\n") if line.strip()]
        return SourceParts(tuple(_parts(rows)), GOAL)
    except Malformed:
        return _as_text(text)


def _as_text(text: str) -> SourceParts:
    return SourceParts(plain(text).parts, GOAL * 3 // 4, ("It is not valid JSON; it was read as text.",))


def _parts(value: Any) -> Iterator[SourcePart]:  # Any: JSON
    if isinstance(value, list):
        yield from _list_records("", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list) and any(isinstance(entry, dict | list) for entry in item):
                yield from _list_records(key, item)
            else:
                yield SourcePart("\n".join(_flat(item, key, 0)), key)
    else:
        yield SourcePart(_word(value))


def _list_records(title: str, values: list[Any]) -> Iterator[SourcePart]:  # Any: JSON
    for number, record in enumerate(values, 1):
        yield SourcePart("; ".join(_flat(record, "", 0)), title, _RECORD, number, title)


def _flat(value: Any, path: str, depth: int) -> Iterator[str]:  # Any: JSON
    """Yield the leaves of a value as `path: value`."""
    if depth >= _DEEPEST:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and all(not isinstance(element, dict | list) for element in value):
        yield _line(path, ", ".join(map(_word, value)))
    elif isinstance(value, list):
        for number, element in enumerate(value, 1):
            yield from _flat(element, f"{path}[{number}]", depth + 1)
    else:
        yield _line(path, _word(value))


def _line(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _word(value: Any) -> str:  # Any: JSON
    return value if isinstance(value, str) else "" if value in ({}, []) else json.dumps(value)


_SAMPLE: Final = 1 << 13
_DELIMITERS: Final = (",", ";", "\t", "|")
_NUMBER: Final = re.compile(r"[-+]?[\d.,]{1,40}%?")
_LONGEST_CELL: Final = 1 << 20


def table(text: str, delimiter: str = "") -> SourceParts:
    """Return the rows, numbered from 1 below the header."""
    csv.field_size_limit(_LONGEST_CELL)
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter or _delimiter(text))
        rows = [row for line in lines if any(row := [" ".join(cell.split()) for cell in line])]
    except csv.Error as error:
        return SourceParts(
            plain(text).parts, GOAL * 3 // 4, (f"It is not a table that can be read ({error}); read as text.",)
        )
    header = " | ".join(rows[0]) if rows and _is_header(rows[0]) else ""
    body = rows[1:] if header and len(rows) > 1 else rows
    lead = header if body is not rows else ""
    if len(lead) > GOAL // 3:  # too long to precede each chunk: it becomes a row
        lead, body = "", rows
    return SourceParts(
        tuple(SourcePart(" | ".join(row), "", "row", number, lead) for number, row in enumerate(body, 1)), GOAL
    )


def read_tabbed(text: str) -> SourceParts:
    """Return the rows of a table separated by tabs."""
    return table(text, "\t")


def _delimiter(text: str) -> str:
    """Return the delimiter that splits each of the first lines into the most columns."""
    lines = [line for line in text[:_SAMPLE].split("\n")[:20] if line.strip()]
    lines = lines[:-1] if len(lines) > 2 else lines
    return max(_DELIMITERS, key=lambda mark: min((line.count(mark) for line in lines), default=0))


def _is_header(row: list[str]) -> bool:
    return len(row) > 1 and not any(_NUMBER.fullmatch(cell) for cell in row) and len({*row}) == len(row)

"""Values that are tables, as aligned lines: lists of dictionaries whose values are short."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent_core.base.untrusted import one_line

from .styled_lines import Line, cut, line, width

_MAX_COLUMNS: Final = 12
_MAX_ROWS: Final = 1_000
_MAX_CELLS: Final = 40  # of a column on the screen
_GAP: Final = "  "


def is_table(value: object) -> bool:
    """Return whether a value is a list of dictionaries with a few columns, none of which holds more than one value."""
    if not isinstance(value, list) or not 0 < len(value) <= _MAX_ROWS:
        return False
    if not all(isinstance(row, dict) and row for row in value):
        return False
    if len(_columns(value)) > _MAX_COLUMNS:
        return False
    return all(map(_is_flat, value))


def table_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[Line]:  # Any: JSON
    """Yield a heading and the rows of a table, with numbers to the right."""
    columns = _columns(rows)
    texts = [[_cell(row.get(name, "")) for name in columns] for row in rows]
    heads = list[str]()
    widths = list[int]()
    numeric = list[bool]()
    for place, name in enumerate(columns):
        head = one_line(name, _MAX_CELLS)
        heads.append(head)
        widths.append(max(width(head), *(width(cells[place]) for cells in texts)))
        numeric.append(all(_is_number(row.get(columns[place], 0)) for row in rows))
    yield line(("dim", _row(heads, widths, numeric)))
    for cells in texts:
        yield line(_row(cells, widths, numeric))


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict[str, None]()
    for row in rows:
        names |= dict.fromkeys(row)
    return [*names]


def _is_flat(row: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, list | dict) for value in row.values())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(one_line(text, _MAX_CELLS * 2), _MAX_CELLS)


def _row(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = list[str]()
    for text, room, is_right in zip(cells, widths, numeric, strict=True):
        blanks = " " * (room - width(text))
        aligned.append(f"{blanks}{text}" if is_right else f"{text}{blanks}")
    return _GAP.join(aligned).rstrip()

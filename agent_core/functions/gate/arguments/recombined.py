"""Calls made of the values of a function's own examples: of the kind that its author meant, and never made up.

Pure. One argument is taken from another example, or made of the pieces of one: its lines, words, items and keys in
another order or number, a number next to it or its double.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import islice, zip_longest
from typing import Any

from agent_core.registry.typenames import Schema

from .generation import Arguments
from .schema_fit import fits
from .variants import Value

_BASES, _MOST, _LONGEST = 3, 10, 2_000
_DAY = timedelta(days=1)


def recombined(
    examples: Sequence[Arguments], schema: Schema, numbers: Sequence[float] = ()
) -> list[tuple[Arguments, str]]:
    """Return the examples with one argument changed, and which; then with all of them changed, and no name.

    `numbers` are those of the code, where its answers may change; what no example gives takes another value than its
    default.
    """
    calls: list[tuple[Arguments, str]] = []
    for base in examples[:_BASES]:
        others = {name: [*islice(_others(name, value, examples, numbers), _MOST)] for name, value in base.items()}
        rest = {name: rule for name, rule in schema["properties"].items() if name not in base and "default" in rule}
        others |= {name: [*_undefaulted(rule)] for name, rule in rest.items()}
        columns = [[(base | {name: value}, name) for value in values] for name, values in others.items()]
        calls += [call for row in zip_longest(*columns) for call in row if call is not None]
        if len(others) > 1:
            for row in islice(zip_longest(*others.values()), _MOST):
                changed = {name: new for name, new in zip(others, row, strict=True) if new is not None}
                calls.append((base | changed, ""))
    unlike = {repr(call): (call, name) for call, name in calls}
    return [(call, name) for call, name in unlike.values() if call not in examples and fits(call, schema, schema)]


def _undefaulted(rule: Schema) -> Iterator[Value]:
    """Yield other values of an argument than the one that it has by default."""
    yield from (value for value in rule.get("enum", ()) if value != rule["default"])
    if isinstance(rule["default"], bool):
        yield not rule["default"]


def _others(name: str, value: Value, examples: Sequence[Arguments], numbers: Sequence[float]) -> Iterator[Value]:
    """Yield the values of other examples, and those that are made of the pieces of this one, in turn."""
    seen = [example[name] for example in examples if name in example and type(example[name]) is type(value)]
    seen += [type(value)(number) for number in numbers] if type(value) in (int, float) else []
    for pair in zip_longest((other for other in seen if other != value), _pieced(value, seen)):
        yield from (new for new in pair if new is not None and new != value)


def _pieced(value: Value, seen: Sequence[Value]) -> Iterator[Value]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 1, value * 2, value - 1, *(value + other for other in seen[:2]))
        case str() if len(value) <= _LONGEST:
            yield from _texts(value, seen)
        case list() | tuple():
            yield from map(type(value), _rows([*value], seen))
        case dict() if value:
            yield from _mappings(value, seen)
        case date():
            yield from (value + _DAY, value - _DAY, value + 30 * _DAY)


def _texts(value: str, seen: Sequence[str]) -> Iterator[str]:
    """Yield texts of the same lines or words, and of those of the examples."""
    between = "\n" if "\n" in value.strip() else " " if " " in value.strip() else ""
    if not between:
        yield from (value[:-1], value + value, value[::-1])
        return
    pieces = value.split(between)
    others = [piece for other in seen for piece in other.split(between) if piece not in pieces]
    yield from (between.join(row) for row in _rows(pieces, [others[:2]]))


def _rows(row: list[Any], seen: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield rows of the same items: one less, turned around, one twice, those of another row at the end."""
    more = next(([*other] for other in seen if [*other] != row and other), [])
    yield from (row[1:], row[::-1], [*row, *row[:1]], [*row, *more], row[:-1], [*more, *row[:1]])


def _mappings(value: dict[Any, Any], seen: Sequence[dict[Any, Any]]) -> Iterator[dict[Any, Any]]:
    """Yield mappings with a key less, with the values of another one, and with one value changed."""
    keys = [*value]
    yield from ({key: part for key, part in value.items() if key != left} for left in keys[:2])
    for other in seen:
        yield value | other
    for key in keys[:3]:
        parts = [other[key] for other in seen if key in other]
        yield from ({**value, key: new} for new in islice(_pieced(value[key], parts), 2))

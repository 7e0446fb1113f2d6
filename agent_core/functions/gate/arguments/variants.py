"""Values slightly different from a known good one: of the same type, the gentlest change first.

Pure data: every change is bounded in size. What is of a kind not listed here is left as it is.
"""

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import chain, islice, zip_longest
from typing import Any

Value = Any  # what crosses to a worker
_LONGEST = 64  # items or characters of what is made larger
_DIGITS = 10**12
_INSIDE = 6  # items of one container that are changed
_MOST = 12  # changes within one container
_DAY = datetime.timedelta(days=1)


def variants(value: Value) -> Iterator[Value]:
    """Yield the value changed in one way after another."""
    yield from _changed(value, _CHANGES.get(type(value), lambda _value: []))
    yield from islice(_inside(value), _MOST)


def _changed(value: Value, change: Callable[[Value], list[Value]]) -> list[Value]:
    try:
        return change(value)
    except (ArithmeticError, ValueError):  # beyond what a date or a decimal can be
        return []


def _inside(value: Value) -> Iterator[Value]:
    """Yield a container with one of its items changed, each in turn."""
    match value:
        case list() | tuple():
            changed = [[(at, new) for new in islice(variants(item), _MOST)] for at, item in enumerate(value[:_INSIDE])]
            for at, new in filter(None, chain.from_iterable(zip_longest(*changed))):
                yield type(value)([*value[:at], new, *value[at + 1 :]])
        case dict():
            named = [[(key, new) for new in islice(variants(value[key]), _MOST)] for key in [*value][:_INSIDE]]
            for key, new in filter(None, chain.from_iterable(zip_longest(*named))):
                yield value | {key: new}


def _of_whole(value: int) -> list[Value]:
    larger = [value * 2 + 1, value * 100] if abs(value) < _DIGITS else []
    return [value + 1, 0, -value, *larger[:1], 1, value - 1, 2, value // 2, -1, *larger[1:]]


def _of_number(value: float) -> list[Value]:
    return [value + 1, 0.0, -value, value / 2, value + 0.5, value * 100, 1e-9]


def _of_text(value: str) -> list[Value]:
    others = [value[::-1], value[1:], value[:-1], value.upper(), f" {value}", f"{value}é", f"{value}0", f"{value},"]
    return [
        value + "x",
        value[:1],
        value.swapcase(),
        "",
        *others,
        *([value * 2] if len(value) < _LONGEST else []),
        "\n",
    ]


def _of_sequence(value: Value) -> list[Value]:
    head = value[:1]
    longer = [value + head, value + value, head * 3] if len(value) < _LONGEST else []
    return [value[::-1], head, *longer[:1], value[:0], value[1:], value[:-1], *longer[1:]]


def _of_set(value: Value) -> list[Value]:
    inside = sorted(value, key=repr)
    return [type(value)(part) for part in (inside[:1], inside[1:], ())]


def _of_mapping(value: dict[Value, Value]) -> list[Value]:
    pairs = list(value.items())
    return [dict(pairs[:1]), dict(pairs[::-1]), dict(pairs[1:]), {}]


def _of_day(value: Value) -> list[Value]:
    dates = [(2024, 2, 29), (2023, 12, 31), (1970, 1, 1), (value.year, 1, 1), (9999, 12, 31), (1, 1, 1)]
    neighbors = [value + _DAY, value - _DAY] if 1 < value.year < 9999 else []
    return neighbors + [value.replace(year=year, month=month, day=day) for year, month, day in dates]


_CHANGES: dict[type, Callable[[Value], list[Value]]] = {
    bool: lambda value: [not value],
    int: _of_whole,
    float: _of_number,
    str: _of_text,
    bytes: _of_sequence,
    list: _of_sequence,
    tuple: _of_sequence,
    set: _of_set,
    frozenset: _of_set,
    dict: _of_mapping,
    Decimal: lambda value: [value + 1, Decimal(0), -value, value / 2, value * 100],
    datetime.date: _of_day,
    datetime.datetime: _of_day,
    datetime.timedelta: lambda value: [-value, value - value, value * 2, value + _DAY],
}

"""Arguments of the kind that the examples show: another city for a city, another date for a date, a year for a year.

Pure. Whoever wrote a function for its examples alone has no answer to them; the lists are in `similarity.toml`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from agent_core.registry.typenames import Schema

from ..arguments.generation import Arguments
from ..arguments.schema_fit import fits
from .lexicon import lists_in

_MOST, _BASES = 8, 3
_YEARS = range(1600, 2200)
_OTHER_YEARS = (2000, 1900, 2023, 2024, 1996, 2100, 1999, 2020)
_SMALL = (7, 2, 9, 4, 12, 1, 15, 6, 3, 20)
_FACTORS = (0.5, 1.5, 2, 0.75, 1.25, 3)
_NEAR = 5


@lru_cache(maxsize=1)
def _lists() -> tuple[list[tuple[str, ...]], list[tuple[re.Pattern[str], tuple[str, ...]]]]:
    data = lists_in("similarity.toml")
    kinds = [tuple(text.split(" | ")) for text in data["kinds"].values()]
    return kinds, [(re.compile(pattern), tuple(texts.split(" ~ "))) for pattern, texts in data["forms"].values()]


def is_named(value: Any) -> bool:  # Any: whatever an argument is
    """Check whether a value is one of a kind that is known by its members, such as a unit or a city."""
    return isinstance(value, str) and any(_place(value, members) >= 0 for members in _lists()[0])


def is_written_alike(value: str, other: str) -> bool:
    """Check whether two texts are of one form, or of none that is known."""
    patterns = [pattern for pattern, _texts in _lists()[1]]
    first, second = (
        next((at for at, one in enumerate(patterns) if one.fullmatch(text)), -1) for text in (value, other)
    )
    return first == second


def similar_values(value: Any) -> list[Any]:  # Any: whatever an argument is
    """Return other values of the kind of a value; none if its kind is not known."""
    values: list[Any] = []
    match value:
        case bool():
            values = [not value]
        case str():
            values = _texts(value)
        case int():
            values = _numbers(value)
        case float():
            values = [float(number) for number in _numbers(int(value))]
        case list() | tuple() if value:
            values = [type(value)(row) for row in _rows(list(value))]
        case dict() if value:
            values = [*islice(_mappings(value), _NEAR)]
    return [candidate for candidate in values if candidate != value]


def _mappings(value: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """Yield mappings with other values."""
    others = {key: similar_values(part) for key, part in value.items()}
    for at in range(max(map(len, others.values()))):
        yield {key: parts[at % len(parts)] if parts else value[key] for key, parts in others.items()}


def _texts(value: str) -> list[str]:
    kinds, forms = _lists()
    named = [[_cased(member, value) for member in members] for members in kinds if _place(value, members) >= 0]
    if named:
        return [text for row in zip(*(_cut(members) for members in named), strict=False) for text in row][:_MOST]
    return next((list(texts) for pattern, texts in forms if pattern.fullmatch(value)), [])


def _cut(members: list[str]) -> list[str]:
    return members[: 2 * _MOST]


def _place(value: str, members: Sequence[str]) -> int:
    folded = value.casefold()
    return next((at for at, member in enumerate(members) if member.casefold() == folded), -1)


def _cased(member: str, like: str) -> str:
    if member != member.lower():
        return member
    return member.upper() if like.isupper() else member.title() if like[:1].isupper() else member


def _numbers(value: int) -> list[int]:
    """Return numbers near a number and of its size."""
    if value in _YEARS:
        return [*_OTHER_YEARS]
    neighbors = [value + 1, value - 1, value + 2] if value > 1 else [value + 1, value + 2]
    scaled = [round(value * factor) for factor in _FACTORS]
    small = _SMALL if abs(value) <= _SMALL[-1] else ()
    return [*dict.fromkeys([*neighbors, *scaled, *small])]


def _rows(value: list[Any]) -> Iterator[list[Any]]:
    """Yield rows of other lengths, orders and members."""
    others = [similar_values(part) for part in value]
    fresh = [*islice((part for row in zip(*filter(None, others), strict=False) for part in row), _NEAR)]
    yield value[::-1]
    yield value[1:] + value[:1]
    if all(isinstance(part, str) and len(part) == len(value) for part in value):
        yield ["".join(column) for column in zip(*value, strict=True)]
    yield [*value, *fresh[:1]]
    yield [*fresh, *value[:1]]
    yield [row[0] if row else part for part, row in zip(value, others, strict=True)]
    yield [row[-1] if row else part for part, row in zip(value, others, strict=True)]


def similar_calls(examples: Sequence[Arguments], schema: Schema) -> list[tuple[Arguments, str]]:
    """Return the examples with one argument of the same kind instead, and its parameter; then with all others."""
    calls: list[tuple[Arguments, str]] = []
    for base in examples[:_BASES]:
        others = {name: similar_values(value) for name, value in base.items()}
        for name, values in others.items():
            calls += [(base | {name: value}, name) for value in values[:_MOST]]
        if len(base) > 1:
            longest = max(map(len, others.values()))
            calls += [
                (base | {name: values[(at + turn) % len(values)] for turn, (name, values) in named}, "")
                for at in range(min(longest, _MOST))
                if (named := [*enumerate((name, values) for name, values in others.items() if values)])
            ]
    unlike = {repr(call): (call, name) for call, name in calls}
    return [(call, name) for call, name in unlike.values() if call not in examples and fits(call, schema, schema)]

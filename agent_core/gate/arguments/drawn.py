"""Random values like those that were seen: of their kinds, sizes, ranges and characters. Pure, given the chance."""

import random
from collections.abc import Callable
from typing import Any

from .likeness import Likeness
from .vary import Value


def draw(known: Likeness, chance: random.Random) -> Value:
    """A random value like those that were seen."""
    model = known.seen[int(chance.random() * len(known.seen))]
    if chance.random() < 0.2:
        return model
    maker = _DRAWN.get(type(model))
    return maker(model, known, chance) if maker else model


def _draw_number(model: Value, known: Likeness, chance: random.Random) -> Value:
    if not known.numbers:
        return model
    low, high = min(known.numbers[0], 1), known.numbers[-1]
    if high < low:
        low = known.numbers[0]
    if isinstance(model, float):
        return round(chance.uniform(low, high), 3)
    return int(low) + int(chance.random() * (int(high) - int(low) + 1))


def _draw_text(model: str, known: Likeness, chance: random.Random) -> Value:
    return "".join(chance.choices(known.letters, k=_size(model, known, chance))) if known.letters else model


def _size(model: Any, known: Likeness, chance: random.Random) -> int:
    least, most = known.sizes[0], min(known.sizes[-1], len(model) + 8)
    return least + int(chance.random() * (most - least + 1)) if most > least else len(model)


def _draw_row(model: Any, known: Likeness, chance: random.Random) -> Value:
    if known.parts or not known.inside:
        return type(model)(draw(part, chance) for part in known.parts)
    row = [draw(known.inside, chance) for _ in range(_size(model, known, chance))]
    if "is uneven" in known.traits:
        row = _evened(row)
    if "repeats an item" in known.traits:
        row = [one for at, one in enumerate(row) if one not in row[:at]]
    return type(model)(_ordered(row) if "is not in order" in known.traits else row)


def _evened(row: list[Value]) -> list[Value]:
    """Rows cut to the length of the shortest; what is no row (a dict may hold it) is left out."""
    rows = [one for one in row if isinstance(one, list | tuple)]
    least = min(map(len, rows), default=0)
    return [one[:least] for one in rows]


def _ordered(row: list[Value]) -> list[Value]:
    try:
        return sorted(row)
    except (TypeError, ArithmeticError):
        return row


def _draw_set(model: Any, known: Likeness, chance: random.Random) -> Value:
    inside = known.inside
    return type(model)(draw(inside, chance) for _ in range(_size(model, known, chance))) if inside else model


def _draw_mapping(model: Any, known: Likeness, chance: random.Random) -> Value:
    if not known.keys or not known.inside:
        return model
    if len(known.sizes) == 1 and chance.random() < 0.5:
        return {key: draw(known.inside, chance) for key in model}
    pairs = ((draw(known.keys, chance), draw(known.inside, chance)) for _ in range(_size(model, known, chance)))
    return dict(pairs)


_DRAWN: dict[type, Callable[[Any, Likeness, random.Random], Value]] = {
    bool: lambda _model, _known, chance: chance.random() < 0.5,
    int: _draw_number,
    float: _draw_number,
    str: _draw_text,
    list: _draw_row,
    tuple: _draw_row,
    set: _draw_set,
    frozenset: _draw_set,
    dict: _draw_mapping,
}

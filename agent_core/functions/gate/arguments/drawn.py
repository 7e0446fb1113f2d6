"""Random values like those that were seen: of their types, sizes, ranges and characters. Pure, given the chance."""

import random
from collections.abc import Callable
from typing import Any

from .likeness import Likeness
from .vary import Value


def draw(likeness: Likeness, chance: random.Random) -> Value:
    """Return a random value like those that were seen."""
    model = likeness.seen[int(chance.random() * len(likeness.seen))]
    if chance.random() < 0.2:
        return model
    maker = _DRAWN.get(type(model))
    return maker(model, likeness, chance) if maker else model


def _draw_number(model: Value, likeness: Likeness, chance: random.Random) -> Value:
    if not likeness.numbers:
        return model
    low, high = min(likeness.numbers[0], 1), likeness.numbers[-1]
    if high < low:
        low = likeness.numbers[0]
    if isinstance(model, float):
        return round(chance.uniform(low, high), 3)
    return int(low) + int(chance.random() * (int(high) - int(low) + 1))


def _draw_text(model: str, likeness: Likeness, chance: random.Random) -> Value:
    return "".join(chance.choices(likeness.letters, k=_size(model, likeness, chance))) if likeness.letters else model


def _size(model: Any, likeness: Likeness, chance: random.Random) -> int:
    least, most = likeness.sizes[0], min(likeness.sizes[-1], len(model) + 8)
    return least + int(chance.random() * (most - least + 1)) if most > least else len(model)


def _draw_row(model: Any, likeness: Likeness, chance: random.Random) -> Value:
    if likeness.parts or not likeness.inside:
        return type(model)(draw(part, chance) for part in likeness.parts)
    row = [draw(likeness.inside, chance) for _ in range(_size(model, likeness, chance))]
    if "is uneven" in likeness.traits:
        row = _evened(row)
    if "repeats an item" in likeness.traits:
        row = [item for at, item in enumerate(row) if item not in row[:at]]
    return type(model)(_ordered(row) if "is not in order" in likeness.traits else row)


def _evened(row: list[Value]) -> list[Value]:
    """Return rows cut to the length of the shortest; items that are no rows (a dict may hold them) are dropped."""
    rows = [item for item in row if isinstance(item, list | tuple)]
    least = min(map(len, rows), default=0)
    return [item[:least] for item in rows]


def _ordered(row: list[Value]) -> list[Value]:
    try:
        return sorted(row)
    except (TypeError, ArithmeticError):
        return row


def _draw_set(model: Any, likeness: Likeness, chance: random.Random) -> Value:
    inside = likeness.inside
    return type(model)(draw(inside, chance) for _ in range(_size(model, likeness, chance))) if inside else model


def _draw_mapping(model: Any, likeness: Likeness, chance: random.Random) -> Value:
    if not likeness.keys or not likeness.inside:
        return model
    if len(likeness.sizes) == 1 and chance.random() < 0.5:
        return {key: draw(likeness.inside, chance) for key in model}
    pairs = (
        (draw(likeness.keys, chance), draw(likeness.inside, chance)) for _ in range(_size(model, likeness, chance))
    )
    return dict(pairs)


_DRAWN: dict[type, Callable[[Any, Likeness, random.Random], Value]] = {
    bool: lambda _model, _likeness, chance: chance.random() < 0.5,
    int: _draw_number,
    float: _draw_number,
    str: _draw_text,
    list: _draw_row,
    tuple: _draw_row,
    set: _draw_set,
    frozenset: _draw_set,
    dict: _draw_mapping,
}

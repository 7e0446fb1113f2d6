"""The properties that the values of the examples share, and how another value differs from them.

Nothing says that a function must take the empty list when no example shows one; so a value is distinguished from
those seen by the ways in which it differs, in words and by their weight. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, pairwise

from .variants import Value

_SIZED = (str, bytes, list, tuple, set, frozenset, dict)
_NUMBERS = (int, float)
_DEEPEST = 6
_HUGE = 1e300
_LETTERS = 300


class Weight(IntEnum):
    """The degree to which a difference excuses a failure."""

    SLIGHT = 0  # an accident of few examples: no excuse for a crash
    SUPPOSED = 1  # it may be that the author means such values to be left out
    FOREIGN = 2  # no such value was meant: nothing is said of it


@dataclass(frozen=True, slots=True)
class CallDifference:
    """One way in which a call differs from the examples."""

    words: str
    weight: Weight


@dataclass(frozen=True, slots=True)
class Likeness:
    """The types, sizes, ranges and characters of the values that were seen in one place."""

    seen: tuple[Value, ...]
    kinds: frozenset[type]
    sizes: tuple[int, ...]
    numbers: tuple[float, ...]
    letters: str
    characters: frozenset[str]  # the classes of the letters
    parts: tuple["Likeness", ...] = ()  # of records: one for each position
    inside: "Likeness | None" = None
    keys: "Likeness | None" = None
    traits: tuple[str, ...] = ()  # what holds of every row
    is_inner: bool = False


def likeness(values: Sequence[Value], depth: int = 0) -> Likeness:
    """Return what these values have in common."""
    sized = [value for value in values if isinstance(value, _SIZED)]
    rows = [list(value) for value in sized if not isinstance(value, str | bytes | dict)]
    maps = [value for value in values if isinstance(value, dict)]
    inner = [*chain.from_iterable(rows), *chain.from_iterable(mapping.values() for mapping in maps)]
    is_deep = depth < _DEEPEST
    keys = [*chain.from_iterable(maps)]
    letters = "".join(value for value in values if isinstance(value, str))
    return Likeness(
        tuple(values),
        frozenset(map(type, values)),
        tuple(sorted({len(value) for value in sized})),
        tuple(sorted({value for value in values if type(value) in _NUMBERS and abs(value) < _HUGE})),
        letters[:_LETTERS] + "ab" * any(letter.islower() for letter in letters),
        frozenset(map(_class, set(letters))),
        _records(values, rows, depth) if is_deep else (),
        likeness(inner, depth + 1) if inner and is_deep else None,
        likeness(keys, depth + 1) if keys and is_deep else None,
        tuple(_traits(rows)),
        depth > 0,
    )


def _records(values: Sequence[Value], rows: list[list[Value]], depth: int) -> tuple[Likeness, ...]:
    """Return a likeness for each position, if the values are rows of one length with positions of different types."""
    if not rows or len(rows) != len(values) or {len(row) for row in rows} != {len(rows[0])}:
        return ()
    kinds = [{type(row[at]) for row in rows} for at in range(len(rows[0]))]
    if len(rows) < 2 or all(kind == kinds[0] for kind in kinds):
        return ()
    return tuple(likeness(column, depth + 1) for column in zip(*rows, strict=True))


def _class(character: str) -> str:
    """Return a character's class: letters, digits, or non-ASCII; any other character is its own class."""
    if not character.isascii():
        return "é"
    return "a" if character.islower() else "A" if character.isupper() else "0" if character.isdigit() else character


def _is_even(row: list[Value]) -> bool:
    return all(isinstance(item, list | tuple) for item in row) and len({len(item) for item in row}) < 2


def _is_ordered(row: list[Value]) -> bool:
    try:
        return all(item <= next_item for item, next_item in pairwise(row))
    except (TypeError, ArithmeticError):
        return False


def _is_distinct(row: list[Value]) -> bool:
    return all(item not in row[:at] for at, item in enumerate(row[:50]))


def _is_square(row: list[Value]) -> bool:
    return all(isinstance(item, list | tuple) and len(item) == len(row) for item in row)


def _is_uniform(row: list[Value]) -> bool:
    return len(set(_leaves(row))) < 2


def _leaves(value: Value, depth: int = 0) -> Iterator[type]:
    if not isinstance(value, list | tuple | set | frozenset) or depth > _DEEPEST:
        yield type(value)
        return
    for item in value:
        yield from _leaves(item, depth + 1)


# What may hold of a row, and what is to be said where it does not.
_TRAITS: dict[str, tuple[Callable[[list[Value]], bool], Weight]] = {
    "is uneven": (_is_even, Weight.FOREIGN),
    "mixes types": (_is_uniform, Weight.FOREIGN),
    "is not square": (_is_square, Weight.SUPPOSED),
    "is not in order": (_is_ordered, Weight.SLIGHT),
    "repeats an item": (_is_distinct, Weight.SLIGHT),
}


def _traits(rows: list[list[Value]]) -> Iterator[str]:
    if any(len(row) > 1 for row in rows):
        yield from (name for name, (holds, _weight) in _TRAITS.items() if all(map(holds, rows)))


def differences(value: Value, likeness: Likeness, *, typed: bool = False) -> Iterator[CallDifference]:
    """Yield how a value differs from those seen; `typed` means that its type was declared."""
    if type(value) not in likeness.kinds:
        words = "is None" if value is None else f"is of another type ({type(value).__name__})"
        yield from () if typed else (CallDifference(words, Weight.FOREIGN),)
        return
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        yield from _of_number(value, likeness)
    if isinstance(value, _SIZED):
        yield from _of_size(value, likeness)
    if isinstance(value, str) and not frozenset(map(_class, set(value))) <= likeness.characters:
        yield CallDifference("has such characters", Weight.SUPPOSED)
    if isinstance(value, list | tuple | set | frozenset | dict):
        yield from _of_items(value, likeness, typed=typed)


def _of_number(value: float, likeness: Likeness) -> Iterator[CallDifference]:
    if not likeness.numbers or value in likeness.seen:
        return
    low, high = likeness.numbers[0], likeness.numbers[-1]
    largest = max(high, -low)
    if abs(value) > 10 * largest + 10:
        yield CallDifference("is that large", Weight.FOREIGN)
    elif value == 0 and 0 not in likeness.numbers and low >= 0:
        yield CallDifference("is zero", Weight.SUPPOSED)
    elif value < 0 <= low:
        yield CallDifference("is negative", Weight.SUPPOSED)
    elif high < 0 <= value:
        yield CallDifference("is not negative", Weight.SUPPOSED)
    elif abs(value) > largest:
        yield CallDifference("is that large", Weight.SUPPOSED)
    elif value % 1 and not any(number % 1 for number in likeness.numbers):
        yield CallDifference("is no whole number", Weight.SUPPOSED)


def _of_size(value: Value, likeness: Likeness) -> Iterator[CallDifference]:
    if not likeness.sizes:
        return
    size, shortest, longest = len(value), likeness.sizes[0], likeness.sizes[-1]
    is_fixed = shortest == longest and len(likeness.seen) > 1 and (likeness.is_inner or isinstance(value, tuple))
    if size == shortest or shortest < size <= longest:
        return
    if is_fixed and not isinstance(value, str):
        yield CallDifference("is of another length", Weight.FOREIGN)
    elif not size:
        yield CallDifference("is empty", Weight.SUPPOSED)
    elif size < shortest:
        yield CallDifference("is that short", Weight.SLIGHT)
    else:
        yield CallDifference("is that long", Weight.SUPPOSED if size <= 3 * longest + 2 else Weight.FOREIGN)


def _of_items(value: Value, likeness: Likeness, *, typed: bool) -> Iterator[CallDifference]:
    row = [*value.values()] if isinstance(value, dict) else list(value)
    if likeness.parts and not isinstance(value, dict):
        pairs = list(zip(row, likeness.parts, strict=False))
    else:
        pairs = [(item, likeness.inside) for item in row if likeness.inside]
    if isinstance(value, dict):
        pairs += [(key, likeness.keys) for key in value if likeness.keys]
    by_words = {
        difference.words: difference for item, part in pairs for difference in differences(item, part, typed=typed)
    }
    for difference in sorted(by_words.values(), key=lambda difference: -difference.weight)[:1]:
        yield (
            difference
            if difference.words.startswith("holds")
            else CallDifference(f"holds something that {difference.words}", difference.weight)
        )
    for name in () if isinstance(value, dict) else likeness.traits:
        holds, weight = _TRAITS[name]
        if not holds(row):
            yield CallDifference(name, weight)

"""What the values of the examples have in common, and how another value is unlike them.

Nothing says that a function must take the empty list when no example shows one; so a value is told from
those seen by the ways in which it differs, in words and by their weight. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, pairwise

from .vary import Value

_SIZED = (str, bytes, list, tuple, set, frozenset, dict)
_NUMBERS = (int, float)
_DEEPEST = 6
_HUGE = 1e300
_LETTERS = 300


class Weight(IntEnum):
    """How far a difference excuses a failure."""

    SLIGHT = 0  # an accident of few examples: no excuse for a crash
    SUPPOSED = 1  # it may be that the author means such values to be left out
    FOREIGN = 2  # no such value was meant: nothing is said of it


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which a call is unlike the examples."""

    words: str
    weight: Weight


@dataclass(frozen=True, slots=True)
class Likeness:
    """The kinds, sizes, ranges and characters of the values that were seen in one place."""

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
    """What these values have in common."""
    sized = [one for one in values if isinstance(one, _SIZED)]
    rows = [list(one) for one in sized if not isinstance(one, str | bytes | dict)]
    maps = [one for one in values if isinstance(one, dict)]
    inner = [*chain.from_iterable(rows), *chain.from_iterable(one.values() for one in maps)]
    is_deep = depth < _DEEPEST
    keys = [*chain.from_iterable(maps)]
    letters = "".join(one for one in values if isinstance(one, str))
    return Likeness(
        tuple(values),
        frozenset(map(type, values)),
        tuple(sorted({len(one) for one in sized})),
        tuple(sorted({one for one in values if type(one) in _NUMBERS and abs(one) < _HUGE})),
        letters[:_LETTERS] + "ab" * any(one.islower() for one in letters),
        frozenset(map(_class, set(letters))),
        _records(values, rows, depth) if is_deep else (),
        likeness(inner, depth + 1) if inner and is_deep else None,
        likeness(keys, depth + 1) if keys and is_deep else None,
        tuple(_traits(rows)),
        depth > 0,
    )


def _records(values: Sequence[Value], rows: list[list[Value]], depth: int) -> tuple[Likeness, ...]:
    """A likeness for each position, where the values are rows of one length whose positions differ in kind."""
    if not rows or len(rows) != len(values) or {len(row) for row in rows} != {len(rows[0])}:
        return ()
    kinds = [{type(row[at]) for row in rows} for at in range(len(rows[0]))]
    if len(rows) < 2 or all(one == kinds[0] for one in kinds):
        return ()
    return tuple(likeness(column, depth + 1) for column in zip(*rows, strict=True))


def _class(character: str) -> str:
    """Letters, digits and what is beyond ASCII are alike; each other character is only like itself."""
    if not character.isascii():
        return "é"
    return "a" if character.islower() else "A" if character.isupper() else "0" if character.isdigit() else character


def _is_even(row: list[Value]) -> bool:
    return all(isinstance(one, list | tuple) for one in row) and len({len(one) for one in row}) < 2


def _is_ordered(row: list[Value]) -> bool:
    try:
        return all(one <= other for one, other in pairwise(row))
    except (TypeError, ArithmeticError):
        return False


def _is_distinct(row: list[Value]) -> bool:
    return all(one not in row[:at] for at, one in enumerate(row[:50]))


def _is_square(row: list[Value]) -> bool:
    return all(isinstance(one, list | tuple) and len(one) == len(row) for one in row)


def _is_uniform(row: list[Value]) -> bool:
    return len(set(_leaves(row))) < 2


def _leaves(value: Value, depth: int = 0) -> Iterator[type]:
    if not isinstance(value, list | tuple | set | frozenset) or depth > _DEEPEST:
        yield type(value)
        return
    for one in value:
        yield from _leaves(one, depth + 1)


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


def differences(value: Value, known: Likeness, *, typed: bool = False) -> Iterator[Difference]:
    """How a value is unlike those that were seen; where it is `typed`, its type is one that was declared."""
    if type(value) not in known.kinds:
        words = "is None" if value is None else f"is of another type ({type(value).__name__})"
        yield from () if typed else (Difference(words, Weight.FOREIGN),)
        return
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        yield from _of_number(value, known)
    if isinstance(value, _SIZED):
        yield from _of_size(value, known)
    if isinstance(value, str) and not frozenset(map(_class, set(value))) <= known.characters:
        yield Difference("has such characters", Weight.SUPPOSED)
    if isinstance(value, list | tuple | set | frozenset | dict):
        yield from _of_items(value, known, typed=typed)


def _of_number(value: float, known: Likeness) -> Iterator[Difference]:
    if not known.numbers or value in known.seen:
        return
    low, high = known.numbers[0], known.numbers[-1]
    largest = max(high, -low)
    if abs(value) > 10 * largest + 10:
        yield Difference("is that large", Weight.FOREIGN)
    elif value == 0 and 0 not in known.numbers and low >= 0:
        yield Difference("is zero", Weight.SUPPOSED)
    elif value < 0 <= low:
        yield Difference("is negative", Weight.SUPPOSED)
    elif high < 0 <= value:
        yield Difference("is not negative", Weight.SUPPOSED)
    elif abs(value) > largest:
        yield Difference("is that large", Weight.SUPPOSED)
    elif value % 1 and not any(one % 1 for one in known.numbers):
        yield Difference("is no whole number", Weight.SUPPOSED)


def _of_size(value: Value, known: Likeness) -> Iterator[Difference]:
    if not known.sizes:
        return
    size, shortest, longest = len(value), known.sizes[0], known.sizes[-1]
    is_fixed = shortest == longest and len(known.seen) > 1 and (known.is_inner or isinstance(value, tuple))
    if size == shortest or shortest < size <= longest:
        return
    if is_fixed and not isinstance(value, str):
        yield Difference("is of another length", Weight.FOREIGN)
    elif not size:
        yield Difference("is empty", Weight.SUPPOSED)
    elif size < shortest:
        yield Difference("is that short", Weight.SLIGHT)
    else:
        yield Difference("is that long", Weight.SUPPOSED if size <= 3 * longest + 2 else Weight.FOREIGN)


def _of_items(value: Value, known: Likeness, *, typed: bool) -> Iterator[Difference]:
    row = [*value.values()] if isinstance(value, dict) else list(value)
    if known.parts and not isinstance(value, dict):
        pairs = list(zip(row, known.parts, strict=False))
    else:
        pairs = [(item, known.inside) for item in row if known.inside]
    if isinstance(value, dict):
        pairs += [(key, known.keys) for key in value if known.keys]
    found = {one.words: one for item, part in pairs for one in differences(item, part, typed=typed)}
    for one in sorted(found.values(), key=lambda one: -one.weight)[:1]:
        yield one if one.words.startswith("holds") else Difference(f"holds something that {one.words}", one.weight)
    for name in () if isinstance(value, dict) else known.traits:
        holds, weight = _TRAITS[name]
        if not holds(row):
            yield Difference(name, weight)

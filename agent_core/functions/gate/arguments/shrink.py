"""Shrinks arguments that fail to the shortest ones that still do, with smaller candidates in rounds.

Nothing is run here. Whether arguments still fail is asked of whoever tries them, many at once.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from .generation import Arguments
from .variants import Value

_MOST = 48  # candidates of one round
_ROUNDS = 6
Fails = Callable[[Sequence[Arguments]], Awaitable[Sequence[bool]]]


async def shrink(failing: Arguments, fails: Fails, rounds: int = _ROUNDS) -> Arguments:
    """Return the smallest arguments that were found to fail, within this many rounds."""
    for _ in range(rounds):
        tried = smaller(failing)
        verdicts = await fails(tried) if tried else ()
        smallest = next((arguments for arguments, still in zip(tried, verdicts, strict=True) if still), None)
        if smallest is None:
            return failing
        failing = smallest
    return failing


def smaller(arguments: Arguments) -> list[Arguments]:
    """Return arguments with less in them, the smallest first."""
    variants = {repr(variant): variant for variant in chain(_whole(arguments), _parts(arguments))}
    least = sorted((variant for variant in variants.values() if measure(variant) < measure(arguments)), key=measure)
    return least if len(least) <= _MOST else least[:: -(-len(least) // _MOST)]


def _whole(arguments: Arguments) -> Iterator[Arguments]:
    """Yield the arguments with every one made as small as possible at once."""
    least = {name: next(iter(lesser(value)), value) for name, value in arguments.items()}
    yield least


def _parts(arguments: Arguments) -> Iterator[Arguments]:
    for name, value in arguments.items():
        yield from (arguments | {name: less} for less in islice(lesser(value), _MOST))


def measure(value: Any) -> tuple[int, str]:  # Any: whatever crosses
    """Return how much there is to read in a value, then its text, which orders values of equal length."""
    text = repr(value)
    return len(text) + text.count("-"), text


def lesser(value: Value) -> Iterator[Value]:
    """Yield values of the same type with less in them, the least first."""
    match value:
        case bool():
            yield from (False,) if value else ()
        case int():
            yield from dict.fromkeys(number for number in (0, 1, 2, 3, value // 10, value // 2, -value, value - 1))
        case float():
            yield from (0.0, 1.0, 2.0, float(round(value)) if abs(value) < 1e9 else 1e9, -value)
        case str():
            yield from _of_sequence(value)
            yield from (value.replace(letter, "a") for letter in dict.fromkeys(value) if letter != "a")
        case list() | tuple():
            yield from _of_sequence(value)
            yield from _inside(value)
        case set() | frozenset():
            yield from map(type(value), _of_sequence(sorted(value, key=repr)))
        case dict():
            yield from map(dict, _of_sequence(list(value.items())))
            yield from (value | {key: less} for key in value for less in islice(lesser(value[key]), 8))


def _of_sequence(value: Any) -> Iterator[Any]:
    """Yield nothing, one item, either half, and all but one."""
    half = len(value) // 2
    yield value[:0]
    yield from (value[at : at + 1] for at in range(min(len(value), 8)))
    yield from (value[:half], value[half:])
    yield from (value[:at] + value[at + 1 :] for at in range(min(len(value), 16)))


def _inside(value: Any) -> Iterator[Any]:
    for at, item in enumerate(value[:16]):
        yield from (type(value)([*value[:at], less, *value[at + 1 :]]) for less in islice(lesser(item), 8))

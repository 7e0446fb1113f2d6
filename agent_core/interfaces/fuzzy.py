"""Which texts fit a few letters, and how well: they begin with them, contain them, or have them in their order."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_LEAST_INSIDE = 3  # letters: fewer are in the middle of too much
_STARTS, _WORD_STARTS, _CONTAINS, _LETTERS = 0, 1, 2, 3


def rank(typed: str, text: str) -> tuple[int, int] | None:
    """How well it fits, the less the better; None where it does not."""
    wanted, there = typed.lower(), text.lower()
    at = there.find(wanted)
    if at == 0:
        return _STARTS, 0
    if at > 0 and not there[at - 1].isalnum():
        return _WORD_STARTS, at
    if at > 0 and len(wanted) >= _LEAST_INSIDE:
        return _CONTAINS, at
    spread = _spread(wanted, there)
    return None if spread is None else (_LETTERS, spread)


def fitting(typed: str, things: Iterable[T], text: Callable[[T], str]) -> list[T]:
    """The things whose text fits, the best first; in their order where they fit equally."""
    ranked = [(rank(typed, text(thing)), thing) for thing in things]
    kept = [(found, thing) for found, thing in ranked if found is not None]
    return [thing for _, thing in sorted(kept, key=lambda each: each[0])]


def _spread(wanted: str, there: str) -> int | None:
    """Over how many letters the wanted ones are spread, if they come in their order and the first begins a word."""
    first = at = -1
    for letter in wanted:
        at = there.find(letter, at + 1)
        if at < 0:
            return None
        first = at if first < 0 else first
    begins_word = first == 0 or not there[first - 1].isalnum()
    return at - first if begins_word else None

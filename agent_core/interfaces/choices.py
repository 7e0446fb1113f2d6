"""A list to look through: one line per entry, the details behind it, and the entries that match what was typed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from .spans import Line, Span


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry: its line in the list, the text that is searched, and its details."""

    name: str
    line: Line
    text: str
    lines: Callable[[], list[Line]]
    source: Callable[[], tuple[str, int]] | None = None
    """Python source and the number of its first line, shown under the lines."""


@dataclass(frozen=True, slots=True)
class Table:
    """Choices under a head, with further lines. With `keeps_order`, better matches do not move to the top."""

    title: str
    head: Line
    choices: tuple[Choice, ...]
    keeps_order: bool = False
    below: tuple[Line, ...] = ()

    def lines(self) -> list[Line]:
        """Return the whole table as lines, for printing."""
        heads = [tuple[Span, ...](("dim", text) for _, text in self.head)] if self.choices else []
        return [*heads, *(choice.line for choice in self.choices), *self.below]


T = TypeVar("T")

_LEAST_INSIDE = 3  # letters: fewer are in the middle of too much
_STARTS, _WORD_STARTS, _CONTAINS, _LETTERS = 0, 1, 2, 3


def rank(typed: str, text: str) -> tuple[int, int] | None:
    """Return how well the text matches, lower is better, or None if it does not."""
    letters, target = typed.lower(), text.lower()
    at = target.find(letters)
    if at == 0:
        return _STARTS, 0
    if at > 0 and not target[at - 1].isalnum():
        return _WORD_STARTS, at
    if at > 0 and len(letters) >= _LEAST_INSIDE:
        return _CONTAINS, at
    spread = _spread(letters, target)
    return None if spread is None else (_LETTERS, spread)


def fitting(typed: str, things: Iterable[T], text: Callable[[T], str]) -> list[T]:
    """Return the items with matching text, best first; equal matches keep their order."""
    ranked = [(rank(typed, text(thing)), thing) for thing in things]
    matches = [(score, thing) for score, thing in ranked if score is not None]
    return [thing for _, thing in sorted(matches, key=lambda match: match[0])]


def _spread(letters: str, target: str) -> int | None:
    """Return how many letters the match spans, if the letters come in order and the first begins a word."""
    first = at = -1
    for letter in letters:
        at = target.find(letter, at + 1)
        if at < 0:
            return None
        first = at if first < 0 else first
    begins_word = first == 0 or not target[first - 1].isalnum()
    return at - first if begins_word else None

"""What a search of the conversation gathers before it weighs: rows ready for scoring, cosines, of how many. Values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..storage import Said
from .asked import Asked
from .stem import stem

_SELF: Final = frozenset("i i'm i've i'd i'll my me mine we we're we've our us".split())  # noqa: SIM905
_OTHER: Final = frozenset("you you're you've you'll your yours ya".split())  # noqa: SIM905
_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A message with its words and their stems counted; how much it speaks of who says it, and of who hears it."""

    said: Said
    words: tuple[str, ...]
    counts: Mapping[str, int]
    size: int
    self_told: float
    addressed: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found for a question: rows in the order of `n`, which hold its words, cosines, of how many rows."""

    asked: Asked
    rows: Sequence[Row]
    worded: frozenset[int]
    cosines: Mapping[int, float]
    total: int


def row(said: Said) -> Row:
    """A message made ready for scoring."""
    words = said.words.split()
    counts: dict[str, int] = {}
    for word in words:
        term = stem(word)
        counts[term] = counts.get(term, 0) + 1
    spoken = said.text.lower().replace("’", "'").split()
    told, addressed = (min(sum(map(own.__contains__, spoken)), _MOST) / _MOST for own in (_SELF, _OTHER))
    return Row(said, tuple(dict.fromkeys(words)), counts, len(words), told, addressed)

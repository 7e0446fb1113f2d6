"""Which of some names may have been meant by one that is none of them."""

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from typing import Final

_LONGEST: Final = 100  # characters: no name is longer, and what is longer was not mistyped
_MOST: Final = 5_000  # names that are looked at
_COMPARED: Final = 20  # of them letter by letter


def nearest(name: str, names: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return the names most like one, the nearest first; as `difflib.get_close_matches`, but in bounded time."""
    letters = Counter(name)
    if not 0 < len(name) <= _LONGEST:
        return []
    fitting = (each for each in islice(names, _MOST) if _can_be(len(name), len(each), likeness))
    shared = ((_shared(letters, each) * 2 / (len(name) + len(each)), each) for each in fitting)
    best = nlargest(_COMPARED, (each for each in shared if each[0] >= likeness))
    matcher = SequenceMatcher(b=name, autojunk=False)
    scored = []
    for _, each in best:
        matcher.set_seq1(each)
        scored.append((matcher.ratio(), each))
    return [each for score, each in nlargest(most, scored) if score >= likeness]


def _can_be(length: int, other: int, likeness: float) -> bool:
    return 2 * min(length, other) >= likeness * (length + other)


def _shared(letters: Counter[str], name: str) -> int:
    """How many letters two names share, in whatever order."""
    return sum(min(name.count(letter), count) for letter, count in letters.items())

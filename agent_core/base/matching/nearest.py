"""Finds the known names that an unknown name probably meant."""

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice
from typing import Final

_LONGEST: Final = 100  # characters: no name is longer, so a longer text is not a typo
_MOST: Final = 5_000  # names examined
_COMPARED: Final = 20  # of these, the ones compared letter by letter


def nearest(name: str, names: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return the most similar names, best first, like `difflib.get_close_matches`, but in bounded time."""
    letters = Counter(name)
    if not 0 < len(name) <= _LONGEST:
        return []
    fitting = (candidate for candidate in islice(names, _MOST) if _can_be(len(name), len(candidate), likeness))
    shared = (
        (_shared_letters(letters, candidate) * 2 / (len(name) + len(candidate)), candidate) for candidate in fitting
    )
    best = nlargest(_COMPARED, (pair for pair in shared if pair[0] >= likeness))
    matcher = SequenceMatcher(b=name, autojunk=False)
    scored = []
    for _, match in best:
        matcher.set_seq1(match)
        scored.append((matcher.ratio(), match))
    return [candidate for score, candidate in nlargest(most, scored) if score >= likeness]


def did_you_mean(name: str, names: Iterable[str], otherwise: str, likeness: float = 0.6) -> str:
    """Return a sentence that suggests the most similar known name; `otherwise` if none is similar."""
    matches = nearest(name, names, likeness=likeness)
    return f"Did you mean `{matches[0]}`?" if matches else otherwise


def _can_be(length: int, other_length: int, likeness: float) -> bool:
    return 2 * min(length, other_length) >= likeness * (length + other_length)


def _shared_letters(letters: Counter[str], name: str) -> int:
    """Return how many letters two names share, in any order."""
    return sum(min(name.count(letter), count) for letter, count in letters.items())


_LOOKS: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "8": "b", "_": "", "-": ""})


def look(name: str) -> str:
    """Return a key that is the same for names that look alike: case, separators and similar letters are ignored."""
    return name.casefold().translate(_LOOKS).replace("rn", "m").replace("vv", "w")

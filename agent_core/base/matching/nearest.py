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
    shared: list[tuple[float, str]] = []
    for candidate in islice(names, _MOST):
        length = len(name) + len(candidate)
        if 2 * min(len(name), len(candidate)) < likeness * length:
            continue
        common = sum(min(candidate.count(letter), count) for letter, count in letters.items())  # in any order
        if common * 2 / length >= likeness:
            shared.append((common * 2 / length, candidate))
    best = nlargest(_COMPARED, shared)
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


_LOOKS: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "8": "b", "_": "", "-": ""})


def look(name: str) -> str:
    """Return a key that is the same for names that look alike: case, separators and similar letters are ignored."""
    return name.casefold().translate(_LOOKS).replace("rn", "m").replace("vv", "w")

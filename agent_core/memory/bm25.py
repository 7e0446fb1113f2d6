"""Scores of texts by the words that they share with a question (BM25), over the given texts. Pure values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names

_K1: Final = 1.2
_B: Final = 0.75


def counted(texts: Sequence[Mapping[str, int]], terms: Sequence[str]) -> Array:
    """Count each term in each text; the result has one row per text."""
    places = {term: place for place, term in enumerate(terms)}
    table = np.zeros((len(texts), len(places)), "f4")
    for row, counts in enumerate(texts):
        for term in places.keys() & counts.keys():  # most texts hold one term or none
            table[row, places[term]] = counts[term]
    return table


def rarity(counts: Array, worded: Array, total: int) -> Array:
    """Return the rarity of each term among all texts, of which the given ones are a part.

    `worded` are those that a search of words found. Such texts are counted; from the others, which came by another
    way, the share of a term among the texts that are not at hand is estimated.
    """
    has = counts > 0
    others = has[~worded]
    absent = max(total - len(counts), 0)
    among = has.sum(0) + (others.mean(0) * absent if len(others) else 0.0)
    rare: Array = np.log1p((np.maximum(max(total, len(counts)) - among, 0) + 0.5) / (among + 0.5))
    return np.where(has.any(0), rare, 0.0)


def bm25(counts: Array, sizes: Array, rare: Array) -> Array:
    """Return the score of each text; `counts` are its query terms, `sizes` its numbers of words."""
    if not counts.size:
        return np.zeros(len(counts))
    damp = _K1 * (1 - _B + _B * sizes / max(float(sizes.mean()), 1.0))
    scores: Array = (counts * (_K1 + 1) / (counts + damp[:, None] + 1e-9)) @ rare
    return scores


def top(scores: Array) -> Array:
    """Return the scores divided by the best one."""
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores

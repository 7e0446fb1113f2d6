"""Scores of texts by the words that they share with a question (BM25), over the texts at hand. Pure values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names

_K1: Final = 1.2
_B: Final = 0.75


def counted(texts: Sequence[Mapping[str, int]], terms: Sequence[str]) -> Array:
    """How often each text has each term: a row for each text."""
    return np.array([[counts.get(term, 0) for term in terms] for counts in texts], "f4").reshape(len(texts), len(terms))


def rarity(held: Array, worded: Array, total: int) -> Array:
    """How rare each term is among all texts, of which those at hand are a part.

    `worded` are those that a search of words found. Such texts are counted; from the others, which came by another
    way, the share of a term among the texts that are not at hand is estimated.
    """
    has = held > 0
    others = has[~worded]
    absent = max(total - len(held), 0)
    among = has.sum(0) + (others.mean(0) * absent if len(others) else 0.0)
    rare: Array = np.log1p((np.maximum(max(total, len(held)) - among, 0) + 0.5) / (among + 0.5))
    return np.where(has.any(0), rare, 0.0)


def bm25(held: Array, sizes: Array, rare: Array) -> Array:
    """The score of each text, of which `held` are the asked terms and `sizes` the words."""
    if not held.size:
        return np.zeros(len(held))
    damp = _K1 * (1 - _B + _B * sizes / max(float(sizes.mean()), 1.0))
    scores: Array = (held * (_K1 + 1) / (held + damp[:, None] + 1e-9)) @ rare
    return scores


def top(scores: Array) -> Array:
    """Scores as shares of the best."""
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores

"""How well the words of a text fit a question: by the words that they share (BM25), and by meaning.

By meaning: how near each word of the question is to the nearest word of the text. The vectors of single words are kept
once they were made, because texts share most of their words.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.base.errors import KnapperError

from .embedding import Embedder

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names

_K1: Final = 1.2
_B: Final = 0.75


def counted(texts: Sequence[Mapping[str, int]], terms: Sequence[str], forms: Mapping[str, str]) -> Array:
    """Count each term in each text, also by its forms in other languages; the result has one row per text."""
    places = {term: place for place, term in enumerate(terms)}
    table = np.zeros((len(texts), len(places)), "f4")
    for row, counts in enumerate(texts):
        for term in places.keys() & counts.keys():  # most texts hold one term or none
            table[row, places[term]] = counts[term]
        for form in forms.keys() & counts.keys():
            place = places[forms[form]]
            table[row, place] = max(table[row, place], counts[form])
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


_MOST: Final = 30_000
_NEAR: Final = 0.35
# Multiplications for which numpy's library starts no threads: waiting for them takes many times as long.
_ALONE: Final = 1 << 18


class Lexicon:
    """The vectors of the words seen so far."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._texts: dict[int, Sequence[int]] = {}
        self._vectors: Array = np.empty((0, 0), "f4")

    async def likeness(self, query_words: Sequence[str], texts: Mapping[int, Sequence[str]]) -> Array | None:
        """Return, for each text (a row) and query word, the cosine of the nearest word in that text; 0 if none is near.

        None where the model cannot be had.
        """
        if len(self._places) > _MOST or len(self._texts) > _MOST:
            self._places, self._texts, self._vectors = {}, {}, np.empty((0, 0), "f4")
        fresh = {number: words for number, words in texts.items() if number not in self._texts}
        try:
            await self._learn(chain(query_words, *fresh.values()))
        except KnapperError:
            return None
        places = self._places.__getitem__
        self._texts.update((number, [*map(places, words)]) for number, words in fresh.items())
        return self._nearest([*map(places, query_words)], [self._texts[number] for number in texts])

    def _nearest(self, word_places: Sequence[int], texts: Sequence[Sequence[int]]) -> Array:
        sizes = np.fromiter(map(len, texts), "i8", len(texts))
        similarity = np.zeros((len(word_places), len(texts)), "f4")
        if word_places and sizes.any():
            met, inside = np.unique(np.fromiter(chain.from_iterable(texts), "i8"), return_inverse=True)
            cosines = _products(self._vectors[met], self._vectors[word_places]).T
            filled = np.flatnonzero(sizes)
            similarity[:, filled] = np.maximum.reduceat(cosines[:, inside], (np.cumsum(sizes) - sizes)[filled], axis=1)
        similarity[similarity < _NEAR] = 0
        return similarity.T

    async def _learn(self, words: Iterable[str]) -> None:
        missing = [word for word in dict.fromkeys(words) if word not in self._places]
        if not missing:
            return
        blobs = await self._embedder.embed(missing)
        vectors = np.frombuffer(b"".join(blobs), "<f4").reshape(len(missing), -1)
        count = len(self._places)
        if count + len(missing) > len(self._vectors):
            grown = np.empty(((count + len(missing)) * 5 // 4, vectors.shape[1]), "f4")
            if count:
                grown[:count] = self._vectors[:count]
            self._vectors = grown
        self._vectors[count : count + len(missing)] = vectors
        self._places.update(zip(missing, range(count, count + len(missing)), strict=True))


def _products(texts: Array, words: Array) -> Array:
    """Return the scalar product of each row of `texts` with each row of `words`, computed in small blocks."""
    step = max(1, _ALONE // words.size)
    return np.concatenate([texts[start : start + step] @ words.T for start in range(0, len(texts), step)])

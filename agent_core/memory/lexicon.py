"""How well the words of a text fit a question: by the words that they share (BM25), and by meaning.

By meaning: how near each word of the question is to the nearest word of the text. The vectors of single words are kept
once they were made, because texts share most of their words.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.base.errors import KnapperError
from agent_core.base.offload import aside

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
        self._texts: dict[int, Array] = {}
        self._one_at_a_time = asyncio.Lock()
        self._vectors: Array = np.empty((0, 0), "f4")

    async def likeness(self, query_words: Sequence[str], texts: Mapping[int, Sequence[str]]) -> Array | None:
        """Return, for each text (a row) and query word, the cosine of the nearest word in that text; 0 if none is near.

        None where the model cannot be had.
        """
        size = sum(map(len, texts.values()))
        async with self._one_at_a_time:  # a place that another search takes meanwhile would be given twice
            missing = await aside(size, self._missing, query_words, texts)
            try:
                vectors = await self._embedder.embed(missing) if missing else []
            except KnapperError:
                return None
            return await aside(size + len(missing), self._compare, query_words, texts, missing, vectors)

    def _missing(self, query_words: Iterable[str], texts: Mapping[int, Sequence[str]]) -> list[str]:
        """Return the words without a vector, of the question and of texts that were not seen before."""
        if len(self._places) > _MOST or len(self._texts) > _MOST:
            self._places, self._texts, self._vectors = {}, {}, np.empty((0, 0), "f4")
        fresh = [words for number, words in texts.items() if number not in self._texts]
        return [word for word in dict.fromkeys(chain(query_words, *fresh)) if word not in self._places]

    def _compare(
        self,
        query_words: Sequence[str],
        texts: Mapping[int, Sequence[str]],
        missing: Sequence[str],
        new: Sequence[bytes],
    ) -> Array:
        if missing:
            self._learn(missing, np.frombuffer(b"".join(new), "<f4").reshape(len(missing), -1))
        places = self._places.__getitem__
        for number, words in texts.items():
            if number not in self._texts:
                self._texts[number] = np.fromiter(map(places, words), "i8", len(words))
        return self._nearest([*map(places, query_words)], [self._texts[number] for number in texts])

    def _learn(self, words: Sequence[str], vectors: Array) -> None:
        count = len(self._places)
        if count + len(words) > len(self._vectors):
            grown = np.empty(((count + len(words)) * 5 // 4, vectors.shape[1]), "f4")
            if count:
                grown[:count] = self._vectors[:count]
            self._vectors = grown
        self._vectors[count : count + len(words)] = vectors
        self._places.update(zip(words, range(count, count + len(words)), strict=True))

    def _nearest(self, word_places: Sequence[int], texts: Sequence[Array]) -> Array:
        similarity = np.zeros((len(texts), len(word_places)), "f4")
        if word_places and texts:
            is_met = np.zeros(len(self._places), bool)
            for places in texts:
                is_met[places] = True
            met = np.flatnonzero(is_met)
            rows = np.cumsum(is_met) - 1
            cosines = _products(self._vectors, met, self._vectors[word_places])
            for row, places in enumerate(texts):
                if len(places):
                    similarity[row] = cosines[rows[places]].max(axis=0)
        similarity[similarity < _NEAR] = 0
        return similarity


def _products(vectors: Array, places: Array, words: Array) -> Array:
    """Return the scalar product of the vector at each place with each of `words`, computed in small blocks."""
    step = max(1, _ALONE // words.size)
    blocks = [vectors[places[start : start + step]] @ words.T for start in range(0, len(places), step)]
    return np.concatenate(blocks) if blocks else np.zeros((0, len(words)), "f4")

"""How near each word of a question is to the nearest word of a text, by meaning.

The vectors of single words are kept once they were made, because texts share most of their words.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from agent_core.base.errors import KnapperError
from agent_core.base.matching.likeness import Array
from agent_core.base.offload import aside

from .embedding import Embedder

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
            vectors = np.frombuffer(b"".join(new), "<f4").reshape(len(missing), -1)
            count = len(self._places)
            if count + len(missing) > len(self._vectors):
                grown = np.empty(((count + len(missing)) * 5 // 4, vectors.shape[1]), "f4")
                if count:
                    grown[:count] = self._vectors[:count]
                self._vectors = grown
            self._vectors[count : count + len(missing)] = vectors
            self._places.update(zip(missing, range(count, count + len(missing)), strict=True))
        places = self._places.__getitem__
        for number, words in texts.items():
            if number not in self._texts:
                self._texts[number] = np.fromiter(map(places, words), "i8", len(words))
        return self._nearest([*map(places, query_words)], [self._texts[number] for number in texts])

    def _nearest(self, word_places: Sequence[int], texts: Sequence[Array]) -> Array:
        similarity = np.zeros((len(texts), len(word_places)), "f4")
        if word_places and texts:
            is_met = np.zeros(len(self._places), bool)
            for places in texts:
                is_met[places] = True
            met = np.flatnonzero(is_met)
            rows = np.cumsum(is_met) - 1
            words = self._vectors[word_places]
            step = max(1, _ALONE // words.size)  # in small blocks
            blocks = [self._vectors[met[start : start + step]] @ words.T for start in range(0, len(met), step)]
            cosines = np.concatenate(blocks) if blocks else np.zeros((0, len(words)), "f4")
            for row, places in enumerate(texts):
                if len(places):
                    similarity[row] = cosines[rows[places]].max(axis=0)
        similarity[similarity < _NEAR] = 0
        return similarity

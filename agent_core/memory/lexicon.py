"""Word similarity by meaning: how near each word of a question is to the nearest word of each text.

The vectors of single words are kept once they were made: texts share most of their words.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from agent_core.base.errors import ToolwrightError

from .bm25 import Array
from .embedding import Embedder

_MOST: Final = 30_000
_NEAR: Final = 0.35


class Lexicon:
    """The vectors of the words seen so far."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._texts: dict[int, Array] = {}
        self._vectors: Array = np.empty((0, 0), "f4")

    async def likeness(self, query_words: Sequence[str], texts: Mapping[int, Sequence[str]]) -> Array | None:
        """Return, for each text (a row) and query word, the cosine of the nearest word in that text; 0 if none is near.

        None where the model cannot be had.
        """
        if len(self._places) > _MOST or len(self._texts) > _MOST:
            self._places, self._texts, self._vectors = {}, {}, np.empty((0, 0), "f4")
        fresh = {number: words for number, words in texts.items() if number not in self._texts}
        try:
            await self._learn([*query_words, *(word for words in fresh.values() for word in words)])
        except ToolwrightError:
            return None
        for number, words in fresh.items():
            self._texts[number] = np.array([self._places[word] for word in words], "i8")
        return self._nearest([self._places[word] for word in query_words], [self._texts[number] for number in texts])

    def _nearest(self, word_places: Sequence[int], texts: Sequence[Array]) -> Array:
        sizes = np.array([len(text) for text in texts], "i8")
        similarity = np.zeros((len(word_places), len(texts)), "f4")
        if sizes.any():
            met, inside = np.unique(np.concatenate(texts), return_inverse=True)
            # Not `@`: its library shares so little work out among threads, and waits for them six times as long.
            cosines = np.einsum("ad,md->am", self._vectors[word_places], self._vectors[met])
            filled = np.flatnonzero(sizes)
            similarity[:, filled] = np.maximum.reduceat(cosines[:, inside], (np.cumsum(sizes) - sizes)[filled], axis=1)
        similarity[similarity < _NEAR] = 0
        return similarity.T

    async def _learn(self, words: Iterable[str]) -> None:
        missing = list(dict.fromkeys(word for word in words if word not in self._places))
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

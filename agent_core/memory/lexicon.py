"""Words by their meaning: how near each word of a question is to the nearest word of each text.

The vectors of single words are kept once they were made: texts share most of their words.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ..embedding import Embedder
from ..errors import ToolwrightError
from .bm25 import Array

_MOST: Final = 30_000
_NEAR: Final = 0.35


class Lexicon:
    """The vectors of the words that were met."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._vectors: Array = np.empty((0, 0), "f4")

    async def likeness(self, asked: Sequence[str], texts: Sequence[Sequence[str]]) -> Array | None:
        """For each text (a row) and asked word, the cosine of its nearest word; 0 where none is near.

        None where the model cannot be had.
        """
        try:
            await self._learn([*asked, *(word for text in texts for word in text)])
        except ToolwrightError:
            return None
        places = self._places
        vectors = self._vectors[: len(places)]
        numbers = np.fromiter((places[word] for text in texts for word in text), "i8")
        sizes = np.array([len(text) for text in texts], "i8")
        near = np.zeros((len(asked), len(texts)), "f4")
        if len(numbers):
            met, inside = np.unique(numbers, return_inverse=True)
            cosines = vectors[[places[word] for word in asked]] @ vectors[met].T
            filled = np.flatnonzero(sizes)
            starts = (np.cumsum(sizes) - sizes)[filled]
            near[:, filled] = np.maximum.reduceat(cosines[:, inside], starts, axis=1)
        near[near < _NEAR] = 0
        return near.T

    async def _learn(self, words: Iterable[str]) -> None:
        if len(self._places) > _MOST:
            self._places, self._vectors = {}, np.empty((0, 0), "f4")
        missing = list(dict.fromkeys(word for word in words if word not in self._places))
        if not missing:
            return
        made = await self._embedder.embed(missing)
        vectors = np.frombuffer(b"".join(made), "<f4").reshape(len(missing), -1)
        count = len(self._places)
        if count + len(missing) > len(self._vectors):
            grown = np.empty(((count + len(missing)) * 5 // 4, vectors.shape[1]), "f4")
            if count:
                grown[:count] = self._vectors[:count]
            self._vectors = grown
        self._vectors[count : count + len(missing)] = vectors
        self._places.update(zip(missing, range(count, count + len(missing)), strict=True))

"""An index of words over several fields per document, ranked by BM25F (Zaragoza et al., TREC 2004).

Frequencies are normalized by field length and weighted before the fields are added, so that a word in a name counts for
more than one in a long description.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
_SATURATION = 1.2  # for repeated words


class WordIndex:
    """Documents, each identified by a small number (a slot)."""

    def __init__(self, weights: Sequence[float], slopes: Sequence[float]) -> None:
        """Create an empty index; `slopes` (0 to 1) are the strength of length normalization per field."""
        self._weights = np.array(weights, np.float32)
        self._slopes = np.array(slopes, np.float32)
        self._lengths = np.zeros((0, len(weights)), np.float32)
        self._words: dict[int, tuple[str, ...]] = {}
        self._postings: dict[str, dict[int, list[int]]] = {}
        self._arrays: dict[str, tuple[npt.NDArray[np.int64], Floats]] = {}

    def put(self, slot: int, fields: Sequence[Sequence[str]]) -> None:
        """Add a document, or replace the one in this slot."""
        self.drop(slot)
        if slot >= len(self._lengths):
            room = max(slot + 1 - len(self._lengths), len(self._lengths), 64)
            self._lengths = np.concatenate([self._lengths, np.zeros((room, len(self._weights)), np.float32)])
        self._lengths[slot] = [len(field) for field in fields]
        for place, field in enumerate(fields):
            for word, count in Counter(field).items():
                counts = self._postings.setdefault(word, {}).setdefault(slot, [0] * len(fields))
                counts[place] = count
                self._arrays.pop(word, None)
        self._words[slot] = tuple({word for field in fields for word in field})

    def drop(self, slot: int) -> None:
        """Remove the document in this slot, if any."""
        for word in self._words.pop(slot, ()):
            del self._postings[word][slot]
            self._arrays.pop(word, None)
        if slot < len(self._lengths):
            self._lengths[slot] = 0

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a word."""
        holding = len(self._postings.get(word, ()))
        return float(np.log1p((len(self._words) - holding + 0.5) / (holding + 0.5)))

    def scores(self, words: Collection[str], size: int) -> Floats:
        """Return the scores of the first `size` slots, divided by the highest score."""
        scores = np.zeros(size, np.float32)
        if not self._words:
            return scores
        average = np.maximum(self._lengths.sum(0) / len(self._words), 1e-6)
        for word in {*words} & self._postings.keys():
            if word not in self._arrays:
                rows = self._postings[word]
                table = np.array([*rows.values()], np.float32).reshape(len(rows), len(self._weights))
                self._arrays[word] = np.fromiter(rows, np.int64, len(rows)), table
            slots, counts = self._arrays[word]
            length = 1 - self._slopes + self._slopes * self._lengths[slots] / average
            frequency = (counts * (self._weights / length)).sum(1)
            scores[slots] += self.weight(word) * frequency * (_SATURATION + 1) / (frequency + _SATURATION)
        best: Any = scores.max(initial=0)  # Any: a numpy scalar
        return scores / best if best > 0 else scores

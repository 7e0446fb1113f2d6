"""Vectors by slot, and how crowded each place is: the mean cosine to the three nearest others.

A vector that is close to many others is also close to many requests, and rarely what they mean; search subtracts a
penalty for this.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .word_index import Floats

NEAREST: Final = 3
_COMPARED: Final = 4000  # with at most this many others: beyond that, a sample is as good
_BLOCK: Final = 512


class VectorTable:
    """Vectors of one space. Their length need not be 1: a weighted sum of vectors scores like the weighted scores."""

    def __init__(self) -> None:
        self._vectors: Floats = np.zeros((0, 0), np.float32)
        self._near: Floats = np.zeros((0, NEAREST), np.float32)
        self._live: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._lengths: Floats = np.zeros(0, np.float32)

    def put(self, slots: Sequence[int], vectors: "Floats") -> None:
        """Set the vectors of these slots."""
        if not len(slots):
            return
        size = max(slots) + 1
        if size > len(self._vectors):
            room = max(size - len(self._vectors), len(self._vectors) // 2)
            self._vectors = self._vectors.reshape(len(self._vectors), vectors.shape[1])
            self._vectors = np.concatenate([self._vectors, np.zeros((room, vectors.shape[1]), np.float32)])
            self._near = np.concatenate([self._near, np.zeros((room, NEAREST), np.float32)])
            self._live = np.concatenate([self._live, np.zeros(room, np.bool_)])
            self._lengths = np.concatenate([self._lengths, np.zeros(room, np.float32)])
        before = self._live.copy()
        before[list(slots)] = False
        self._vectors[list(slots)] = vectors
        self._lengths[list(slots)] = np.linalg.norm(vectors, axis=-1)
        self._live[list(slots)] = True
        # Find the nearest vectors of the new slots, and update those of the old ones.
        new, old = np.array(slots), np.flatnonzero(before)
        everything = np.concatenate([old, new])
        sample = everything[:: len(everything) // _COMPARED + 1]
        others = _unit(self._vectors[sample])
        for start in range(0, len(new), _BLOCK):
            block = new[start : start + _BLOCK]
            cosines = _unit(self._vectors[block]) @ others.T
            cosines[block[:, None] == sample[None, :]] = 0
            self._near[block] = _top(cosines)
        fresh = _unit(self._vectors[new[:: len(new) // _COMPARED + 1]])
        for start in range(0, len(old), _BLOCK):
            block = old[start : start + _BLOCK]
            cosines = _unit(self._vectors[block]) @ fresh.T
            self._near[block] = _top(np.concatenate([self._near[block], cosines], 1))

    def drop(self, slots: Sequence[int]) -> None:
        """Remove the vectors of these slots."""
        known = [slot for slot in slots if slot < len(self._live)]
        self._live[known] = False
        self._vectors[known] = 0

    def products(self, vector: "Floats", size: int) -> "Floats":
        """Return the dot products of the first `size` slots with a vector; 0 for empty slots."""
        products = np.zeros(size, np.float32)
        if self._vectors.size:
            products[: len(self._vectors)] = self._vectors[:size] @ vector
        return products

    def crowding(self, size: int) -> "Floats":
        """Return how crowded the first `size` slots are, 0 to 1."""
        crowding = np.zeros(size, np.float32)
        crowding[: len(self._near)] = self._near[:size].mean(1)
        return crowding

    def neighbors(self, slots: Sequence[int], count: int) -> dict[int, list[tuple[int, float]]]:
        """Return the nearest slots of each slot with cosines, nearest first; slots without a vector are left out."""
        asked = [slot for slot in slots if slot < len(self._live) and self._live[slot]]
        lengths = np.where(self._lengths > 0, self._lengths, 1)
        cosines = self._vectors[asked] @ self._vectors.T / (lengths[asked, None] * lengths)
        cosines[:, ~self._live] = -1
        near: dict[int, list[tuple[int, float]]] = {}
        for slot, row in zip(asked, cosines, strict=True):
            row[slot] = -1
            order = np.argsort(-row)[:count]
            near[slot] = [(int(place), float(row[place])) for place in order if row[place] > -1]
        return near

    def pairs(self, least: float, slots: Sequence[int] | None = None) -> Iterator[tuple[int, int, float]]:
        """Yield the pairs of slots with at least this cosine, each once; with `slots`, only pairs with one of them."""
        live = np.flatnonzero(self._live)
        asked = live if slots is None else np.array([slot for slot in slots if slot in live], np.int64)
        others = _unit(self._vectors[live])
        for start in range(0, len(asked), _BLOCK):
            block = asked[start : start + _BLOCK]
            cosines = _unit(self._vectors[block]) @ others.T
            for row, column in np.argwhere(cosines >= least):
                one, other = int(block[row]), int(live[column])
                if one < other or (one > other and slots is not None and other not in slots):
                    yield one, other, float(cosines[row, column])


def _unit(vectors: "Floats") -> "Floats":
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _top(cosines: "Floats") -> "Floats":
    count = min(NEAREST, cosines.shape[1])
    top = np.zeros((len(cosines), NEAREST), np.float32)
    top[:, :count] = np.partition(cosines, -count, axis=1)[:, -count:]
    return top

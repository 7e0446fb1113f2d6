"""The search of vectors: the signs of their components find some, a byte for each component puts these in order.

288 bytes a vector of 256 components. Where signs agree most, the cosine is high: of a hundred thousand a thousand
are looked at. The last word has the store, with the vectors as they were given.
"""

import numpy as np

from ..errors import StorageError
from .kept import Array, Kept, Pile, best

FEW = 4096  # so many are all looked at
LOOKED_AT, FOR_EACH = 1000, 16


class Vectors(Kept):
    """The vectors of a lane."""

    def __init__(self) -> None:
        super().__init__()
        self._width = 0
        self._codes = self._signs = Pile("i1", 0)
        self._norms = Pile("<f4")
        self._middle: Array = np.empty(0, "i1")

    def add(self, sizes: Array, body: bytes) -> None:
        """Codes, their lengths, and their signs about the middle of those that came first."""
        codes = np.frombuffer(body, "i1").reshape(len(sizes), -1)
        if not self._width:
            self._width = codes.shape[1]
            self._codes, self._signs = Pile("i1", self._width), Pile("<u8", -(-self._width // 64))
            self._middle = np.rint(codes.mean(0, dtype="<f4")).astype("i1")
        self._codes.add(codes)
        self._norms.add(_lengths(codes))
        self._signs.add(self._signed(codes))

    def settle(self, *, lost: bool) -> None:
        """Nothing: a search passes over what went."""

    def _signed(self, codes: Array) -> Array:
        packed = np.packbits(codes > self._middle, axis=1)
        return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view("<u8")

    def search(self, vector: Array, count: int) -> list[int]:
        """The `seq` of each of the nearest rows, nearest first."""
        if len(vector) != self._width:
            raise StorageError(f"A vector of {len(vector)} components is asked for among vectors of {self._width}.")
        near = self._near(vector, max(LOOKED_AT, FOR_EACH * count))
        # Not `@`: its library takes a second thread for so many, and on a busy machine that waits for its turn.
        scores = np.einsum("ij,j->i", self._codes.rows[near].astype("<f4"), vector) / self._norms.rows[near]
        found: list[int] = self.seqs.rows[near[best(scores - scores.min(initial=0) + 1, count)]].tolist()
        return found

    def _near(self, vector: Array, count: int) -> Array:
        live = self.live.rows
        if len(live) <= max(FEW, count):
            return np.flatnonzero(live)
        scale = float(np.abs(vector).max()) or 1.0
        signs = self._signed((vector * (127 / scale))[None])[0]
        apart = np.zeros(len(live), "<u2")
        for place, word in enumerate(signs):
            apart += np.bitwise_count(self._signs.rows[:, place] ^ word)
        apart[~live] = self._width + 1
        within = np.searchsorted(np.cumsum(np.bincount(apart)), count)
        return np.flatnonzero(apart <= min(int(within), self._width))


def _lengths(codes: Array) -> Array:
    lengths: Array = np.sqrt(np.einsum("ij,ij->i", codes, codes, dtype="<f4"))
    lengths[lengths == 0] = 1.0
    return lengths

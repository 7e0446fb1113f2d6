"""The search of words: BM25 over every row that holds any of them, exactly.

One sorted array holds all postings, each in 64 bits: the number of the stem, of the row, and how often. What came
since stands in a second, small one. A very frequent word is a long slice, and an array adds it up in no time.
"""

from collections.abc import Collection
from math import log

import numpy as np

from ..errors import StorageError
from .kept import Array, Kept, Pile, best

K1, B = 1.2, 0.75
ROW_BITS, TIMES_BITS = 24, 8
MOST_ROWS = 1 << ROW_BITS
TAIL = 8  # the second array joins the first when it is an eighth of it
PAIR = np.dtype([("term", "<u4"), ("times", "u1")])


class Words(Kept):
    """The words of a lane."""

    item = PAIR.itemsize

    def __init__(self) -> None:
        super().__init__()
        self._lengths = Pile("<f4")
        self._fresh: list[Array] = []
        self._postings: list[Array] = [np.empty(0, "<u8"), np.empty(0, "<u8")]
        self._norms: Array = np.empty(0, "<f4")

    def add(self, sizes: Array, body: bytes) -> None:
        """Postings, and the length of each row in words."""
        first = len(self._lengths.rows)
        if first + len(sizes) > MOST_ROWS:
            raise StorageError(f"An agent can search {MOST_ROWS:,} texts, and this one has more.")
        pairs = np.frombuffer(body, PAIR)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        self._lengths.add(np.bincount(owners, pairs["times"], len(sizes)))
        rows = (owners + first).astype("<u8") << TIMES_BITS
        self._fresh.append(pairs["term"].astype("<u8") << ROW_BITS + TIMES_BITS | rows | pairs["times"])

    def settle(self, *, lost: bool) -> None:
        """Sort what is new in, leave out what went, and weigh lengths by the average that is now."""
        old, tail = self._postings
        fresh, self._fresh = np.concatenate([tail, *self._fresh]), []
        if len(fresh) * TAIL > len(old):
            old, tail = np.sort(np.concatenate([old, fresh])), tail[:0]
        else:
            tail = np.sort(fresh)
        live, lengths = self.live.rows, self._lengths.rows
        self._postings = [part[live[_rows(part)]] for part in (old, tail)] if lost else [old, tail]
        average = float(lengths[live].mean()) if live.any() else 0.0
        self._norms = (K1 * (1 - B + B * lengths / (average or 1.0))).astype("<f4")

    def search(self, terms: Collection[int], count: int) -> list[tuple[int, float]]:
        """The best rows: each one's `seq` and score."""
        scores = np.zeros(len(self._norms), "<f4")
        for term in sorted(set(terms)):
            self._score(term, scores)
        found = best(scores, count)
        return list(zip(self.seqs.rows[found].tolist(), scores[found].tolist(), strict=True))

    def _score(self, term: int, scores: Array) -> None:
        bounds = np.array([term, term + 1], "<u8") << (ROW_BITS + TIMES_BITS)
        if term == 0xFFFFFFFF:
            bounds[1] = 0xFFFFFFFFFFFFFFFF
        parts = [part[slice(*np.searchsorted(part, bounds))] for part in self._postings]
        holding, live = sum(map(len, parts)), self.state.live
        weight = log(1 + (live - holding + 0.5) / (holding + 0.5)) * (K1 + 1)
        for part in parts:
            rows, times = _rows(part), (part & 0xFF).astype("<f4")
            scores[rows] += weight * times / (times + self._norms[rows])


def _rows(postings: Array) -> Array:
    return (postings >> TIMES_BITS & MOST_ROWS - 1).astype("<i4")

"""Numbers that say how well a passage fits a question: its words, its meaning, what stands beside it. Pure values."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..storage import PassageRow
from .asked import Asked
from .bm25 import Array, bm25, counted, rarity, top
from .signals import Signals, summed
from .stem import stem


def measure(
    rows: Sequence[PassageRow], asked: Asked, worded: Collection[int], cosines: Mapping[int, float], total: int
) -> Signals:
    """Every signal of the passages."""
    stems = [[stem(word) for word in row.words.split()] for row in rows]
    held = counted([Counter(each) for each in stems], asked.terms)
    rare = rarity(held, np.array([row.seq in worded for row in rows], bool), total)
    own = top(bm25(held, np.array([len(each) for each in stems], "f4"), rare))
    signals = {"own": own, "beside": _beside(rows, own)}
    if cosines:
        signals["meaning"] = np.array([cosines.get(row.seq, 0.0) for row in rows])
    return signals


def order(rows: Sequence[PassageRow], signals: Signals, weights: Mapping[str, float]) -> list[PassageRow]:
    """The passages by the weighted sum of their signals, best first; of equal ones the newest."""
    scores = summed(signals, weights, len(rows))
    return [rows[place] for place in sorted(range(len(rows)), key=lambda place: (-scores[place], -place))]


def _beside(rows: Sequence[PassageRow], own: Array) -> Array:
    """The better score of the two passages that stand beside one in its source, as far as they were found."""
    at = {(row.document, row.n): score for row, score in zip(rows, own.tolist(), strict=True) if row.document}
    near = [max(at.get((row.document, row.n - 1), 0.0), at.get((row.document, row.n + 1), 0.0)) for row in rows]
    return np.array(near)

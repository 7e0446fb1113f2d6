"""Signals that measure how well a passage fits a question: its words, its meaning, and its neighbors. Pure values."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from agent_core.storage import PassageRow

from .bm25 import Array, bm25, counted, rarity, top
from .search_query import ParsedQuery
from .signals import Signals, summed
from .stem import stem


def measure(
    rows: Sequence[PassageRow], question: ParsedQuery, worded: Collection[int], cosines: Mapping[int, float], total: int
) -> Signals:
    """Return every signal of the passages."""
    stems = [[stem(word) for word in row.words.split()] for row in rows]
    counts = counted([Counter(passage_stems) for passage_stems in stems], question.terms)
    rare = rarity(counts, np.array([row.seq in worded for row in rows], bool), total)
    own = top(bm25(counts, np.array([len(passage_stems) for passage_stems in stems], "f4"), rare))
    signals = {"own": own, "beside": _neighbor_scores(rows, own)}
    if cosines:
        signals["meaning"] = np.array([cosines.get(row.seq, 0.0) for row in rows])
    return signals


def order(rows: Sequence[PassageRow], signals: Signals, weights: Mapping[str, float]) -> list[PassageRow]:
    """Return the passages by the weighted sum of their signals, best first; among equals, the newest first."""
    scores = summed(signals, weights, len(rows))
    return [rows[place] for place in sorted(range(len(rows)), key=lambda place: (-scores[place], -place))]


def _neighbor_scores(rows: Sequence[PassageRow], own: Array) -> Array:
    """Return the better score of the two passages next to each one in its source, if they were found."""
    at = {(row.document, row.n): score for row, score in zip(rows, own.tolist(), strict=True) if row.document}
    scores = [max(at.get((row.document, row.n - 1), 0.0), at.get((row.document, row.n + 1), 0.0)) for row in rows]
    return np.array(scores)

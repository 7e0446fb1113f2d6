"""The search by words, which computes: rarer words count more."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from . import word_index
from .session import Hit, Key, SqlSession

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names
MOST_POSTINGS: Final = 30_000


def words(
    session: SqlSession, key: Key, query_words: Sequence[str], limit: int, candidates: Sequence[int] | None = None
) -> list[Hit]:
    """Return the best rows by BM25; `candidates` restricts them."""
    stems = word_index.sought(query_words)
    index = word_index.catch_up(session, key)
    if not stems or limit < 1 or index is None:
        return []
    counts = session.postings.row_counts(session, key.shelf, [word_index.token(index, stem) for stem in stems])
    ranked = sorted(counts, key=lambda token: (counts[token], token))
    # The rarest words within a limit of rows: a common word says little, and reading its rows takes long.
    upto = np.cumsum([counts[token] for token in ranked])
    most = max(1, int(np.searchsorted(upto, MOST_POSTINGS, "right")))
    tokens = ranked[: most if candidates is None else None]  # a few rows may have the common words alone
    holding = [np.fromstring(session.postings.holding(session, key.shelf, token), "<i8", sep=",") for token in tokens]
    return _rarest(holding, index.rows, limit, candidates)


def _rarest(holding: Sequence[Array], total: int, limit: int, candidates: Sequence[int] | None) -> list[Hit]:
    """Return the best rows by the summed rarity of their words; the newest first among equals."""
    if not holding:
        return []
    counts = np.array([len(rows) for rows in holding])
    rarity = np.log1p((np.maximum(total - counts, 0) + 0.5) / (counts + 0.5))
    seqs, place = np.unique(np.concatenate(holding), return_inverse=True)
    scores = np.bincount(place, np.repeat(rarity, counts))
    if candidates is not None:
        is_candidate = np.isin(seqs, np.array(candidates, "<i8"))
        seqs, scores = seqs[is_candidate], scores[is_candidate]
    least = np.partition(scores, -limit)[-limit] if len(scores) > limit else 0.0
    best = np.flatnonzero(scores >= least)
    best = best[np.lexsort((-best, -scores[best]))][:limit]
    return [Hit(seq, score) for seq, score in zip(seqs[best].tolist(), scores[best].tolist(), strict=True)]

"""The search by words, which computes: rarer words count more."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from . import word_index
from .session import Hit, Key, SqlSession

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
    if not counts:
        return []
    ranked = sorted(counts, key=lambda token: (counts[token], token))
    # The rarest words within a limit of rows: a common word says little, and reading its rows takes long.
    upto = np.cumsum([counts[token] for token in ranked])
    most = max(1, int(np.searchsorted(upto, MOST_POSTINGS, "right")))
    tokens = ranked[: most if candidates is None else None]  # a few rows may have the common words alone
    holding = [np.fromstring(session.postings.holding(session, key.shelf, token), "<i8", sep=",") for token in tokens]
    # Of the rows with these words, the best ones by the summed rarity of their words; the newest first among equals.
    lengths = np.array([len(rows) for rows in holding])
    rarity = np.log1p((np.maximum(index.rows - lengths, 0) + 0.5) / (lengths + 0.5))
    seqs, place = np.unique(np.concatenate(holding), return_inverse=True)
    scores = np.bincount(place, np.repeat(rarity, lengths))
    if candidates is not None:
        is_candidate = np.isin(seqs, np.array(candidates, "<i8"))
        seqs, scores = seqs[is_candidate], scores[is_candidate]
    least = np.partition(scores, -limit)[-limit] if len(scores) > limit else 0.0
    best = np.flatnonzero(scores >= least)
    best = best[np.lexsort((-best, -scores[best]))][:limit]
    return [Hit(seq, score) for seq, score in zip(seqs[best].tolist(), scores[best].tolist(), strict=True)]

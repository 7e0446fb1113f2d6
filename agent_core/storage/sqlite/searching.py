"""The three queries that compute: rows by words, rows by meaning, and the similarity of given rows."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.base.errors import StorageError

from ..memory_store import Hit, Shelf
from . import vector_index, word_index
from .connection import SqlSession
from .lanes import Key, Lane, lane, numbers
from .vector_index import FLOAT, PARTS, UNREADABLE, WIDEST, bits, trouble

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names
MOST_POSTINGS: Final = 30_000
LOOKED_AT: Final = 1_000
MOST_NEAREST: Final = 4_096  # as sqlite-vec has it
# A vector of zeros has no angle.
_COSINES: Final = (
    "select seq, coalesce(1 - vec_distance_cosine(vector, ?1), 0.0) as score from vector"
    " where lane = ?2 and length(vector) = length(?1)"
)


def words(session: SqlSession, shelf: Shelf, agent: str, query_words: Sequence[str], limit: int) -> list[Hit]:
    """Return the best rows by BM25."""
    stems = word_index.sought(session, query_words)
    index = word_index.catch_up(session, Key(agent, shelf))
    if not stems or limit < 1 or index is None:
        return []
    tokens = _affordable(word_index.row_counts(session, shelf, [word_index.token(index, stem) for stem in stems]))
    return _rarest([_holding(session, word_index.TABLES[shelf], token) for token in tokens], index.rows, limit)


def _affordable(counts: Mapping[str, int]) -> list[str]:
    """Return the rarer of the words: what so many rows hold says little, and would take long to read."""
    ranked = sorted(counts, key=lambda token: (counts[token], token))
    upto = np.cumsum([counts[token] for token in ranked])
    return ranked[: max(1, int(np.searchsorted(upto, MOST_POSTINGS, "right")))]


def _holding(session: SqlSession, table: str, token: str) -> Array:
    """Return the rows that hold a word, in order."""
    rows = session.all(f"select group_concat(rowid) from {table} where {table} match ?", f'"{token}"')[0][0]  # noqa: S608  (a table of ours)
    return np.fromstring(rows or "", "<i8", sep=",")


def _rarest(holding: Sequence[Array], total: int, limit: int) -> list[Hit]:
    """Return the best by the sum of how rare their words are, of equal ones the newest."""
    if not holding:
        return []
    counts = np.array([len(rows) for rows in holding])
    rarity = np.log1p((np.maximum(total - counts, 0) + 0.5) / (counts + 0.5))
    seqs, place = np.unique(np.concatenate(holding), return_inverse=True)
    scores = np.bincount(place, np.repeat(rarity, counts))
    least = np.partition(scores, -limit)[-limit] if len(scores) > limit else 0.0
    best = np.flatnonzero(scores >= least)
    best = best[np.lexsort((-best, -scores[best]))][:limit]
    return [Hit(seq, score) for seq, score in zip(seqs[best].tolist(), scores[best].tolist(), strict=True)]


def nearest(session: SqlSession, key: Key, vector: bytes, limit: int) -> list[Hit]:
    """Return the best rows by cosine; of many rows, those whose signs agree most are compared."""
    index = lane(session, key)
    if index is None or limit < 1 or trouble(session) or not _is_comparable(session, index, vector):
        return []
    width = len(vector) // FLOAT
    if vector_index.has_signs(index, width):
        try:
            return _nearest_by_signs(session, vector_index.catch_up(session, key, width), vector, limit)
        except UNREADABLE:
            with session.transaction():
                vector_index.drop(session, bits(index))
    return _nearest(session, index, vector, limit)


def _is_comparable(session: SqlSession, found: Lane, vector: bytes) -> bool:
    row = session.one("select length(vector) from vector where lane = ? limit 1", found.id)
    if row and len(vector) != row[0]:
        asked = f"A vector of {len(vector) // FLOAT} components"
        raise StorageError(f"{asked} is asked for among vectors of {row[0] // FLOAT}.")
    return row is not None


def _nearest(
    session: SqlSession, found: Lane, vector: bytes, limit: int, among: str = "", *values: object
) -> list[Hit]:
    sql = f"{_COSINES} {among} order by score desc, seq desc limit ?3"
    return [Hit(seq, score) for seq, score in session.all(sql, vector, found.id, limit, *values)]


def _nearest_by_signs(session: SqlSession, found: Lane, vector: bytes, limit: int) -> list[Hit]:
    """Compare about a thousand whose signs agree most: a part of the rows says how far these are from the vector.

    To choose all that are within a distance is far cheaper for sqlite-vec than to choose so many nearest ones.
    """
    signs = f"from {bits(found)} where bits match vec_quantize_binary(?1)"
    most = min(max(LOOKED_AT, 4 * limit), MOST_NEAREST)
    of_part = session.all(f"select distance {signs} and k = ?2 and part = 0", vector, most // PARTS)
    distances = [row[0] for row in of_part]
    within = distances[-1] if len(distances) == most // PARTS else WIDEST
    if distances and distances[0] == within:  # where all are alike, a few do
        most = min(limit, MOST_NEAREST)
    among = f"and seq in (select rowid {signs} and k = ?4 and distance <= ?5)"
    return _nearest(session, found, vector, limit, among, most, within)


def cosines(session: SqlSession, key: Key, vector: bytes, seqs: Collection[int]) -> dict[int, float]:
    """Return the cosines of those rows that have a vector."""
    found = lane(session, key)
    if found is None or trouble(session):
        return {}
    among = "and seq in (select value from json_each(?3))"
    return dict(session.all(f"{_COSINES} {among}", vector, found.id, numbers([*seqs])))

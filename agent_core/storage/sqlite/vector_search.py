"""Searches by meaning in a state file: the nearest rows, and the cosines of given ones. `Vectors` on SQLite."""

from collections.abc import Collection
from typing import Final

from agent_core.base.errors import StorageError

from ..memory_store import Hit
from ..tables.lanes import Lane, lane, numbers
from ..tables.session import Key
from ..tables.vector_form import FLOAT, WIDEST
from .connection import SqliteSession
from .vector_index import (
    PARTS,
    UNREADABLE,
    bits,
    catch_up,
    drop,
    has_signs,
    remove,
    save,
    sweep,
    trouble,
)

__all__ = ["cosines", "nearest", "remove", "save", "sweep", "trouble"]

LOOKED_AT: Final = 1_000
MOST_NEAREST: Final = 4_096  # as sqlite-vec has it
# A vector of zeros has no angle.
_COSINES: Final = (
    "select seq, coalesce(1 - vec_distance_cosine(vector, ?1), 0.0) as score from vector"
    " where lane = ?2 and length(vector) = length(?1)"
)


def nearest(session: SqliteSession, key: Key, vector: bytes, limit: int) -> list[Hit]:
    """Return the best rows by cosine; of many rows, those whose signs agree most are compared."""
    index = lane(session, key)
    if index is None or limit < 1 or trouble(session) or not _is_comparable(session, index, vector):
        return []
    width = len(vector) // FLOAT
    if has_signs(index, width):
        try:
            return _nearest_by_signs(session, catch_up(session, key, width), vector, limit)
        except UNREADABLE:
            with session.transaction():
                drop(session, bits(index))
    return _nearest(session, index, vector, limit)


def _is_comparable(session: SqliteSession, found: Lane, vector: bytes) -> bool:
    row = session.one("select length(vector) from vector where lane = ? limit 1", found.id)
    if row and len(vector) != row[0]:
        asked = f"A vector of {len(vector) // FLOAT} components"
        raise StorageError(f"{asked} is asked for among vectors of {row[0] // FLOAT}.")
    return row is not None


def _nearest(
    session: SqliteSession, found: Lane, vector: bytes, limit: int, among: str = "", *values: object
) -> list[Hit]:
    sql = f"{_COSINES} {among} order by score desc, seq desc limit ?3"
    return [Hit(seq, score) for seq, score in session.all(sql, vector, found.id, limit, *values)]


def _nearest_by_signs(session: SqliteSession, found: Lane, vector: bytes, limit: int) -> list[Hit]:
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


def cosines(session: SqliteSession, key: Key, vector: bytes, seqs: Collection[int]) -> dict[int, float]:
    """Return the cosines of those rows that have a vector."""
    found = lane(session, key)
    if found is None or trouble(session):
        return {}
    among = "and seq in (select value from json_each(?3))"
    return dict(session.all(f"{_COSINES} {among}", vector, found.id, numbers([*seqs])))

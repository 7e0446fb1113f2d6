"""The words of rows, and their vectors, in plain tables: the `SearchIndex` of PostgreSQL.

Words have one row per token. Vectors are compared by pgvector: all of a lane, exactly. They can be stored without
pgvector; only a search needs it. A lane belongs to one agent, so an index over all vectors would also find those of
other agents.
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from agent_core.base.errors import StorageError
from agent_core.storage.search_index import (
    FLOAT,
    Lane,
    check_vectors,
    grow,
    lane,
    numbers,
    rebuild_later,
    spaces,
)
from agent_core.storage.tables import Hit, Key

from .connection import PostgresSession

_WORD_TABLES: Final = {"recall": "said_words", "archival": "passage_words"}


def insert(session: PostgresSession, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Store the tokens of rows."""
    pairs = [(token, seq) for seq, tokens in rows for token in tokens]
    if pairs:
        sql = f"insert into {_WORD_TABLES[shelf]} (token, seq) select * from unnest(?::text[], ?::bigint[])"  # noqa: S608  (our own table)
        session.all(sql, [token for token, _ in pairs], [seq for _, seq in pairs])


def delete(session: PostgresSession, shelf: str, seqs: Collection[int]) -> None:
    """Delete the tokens of rows."""
    session.all(f"delete from {_WORD_TABLES[shelf]} where seq = any(?::bigint[])", [*seqs])  # noqa: S608  (our own table)


def row_counts(session: PostgresSession, shelf: str, tokens: Sequence[str]) -> dict[str, int]:
    """Return the number of rows with each token, omitting tokens without rows."""
    sql = f"select token, count(*) from {_WORD_TABLES[shelf]} where token = any(?::text[]) group by token"  # noqa: S608  (our own table)
    return dict(session.all(sql, [*tokens]))


def holding(session: PostgresSession, shelf: str, token: str) -> str:
    """Return the rows that contain a token, in order, separated by commas."""
    sql = f"select coalesce(string_agg(seq::text, ',' order by seq), '') from {_WORD_TABLES[shelf]} where token = ?"  # noqa: S608  (our own table)
    return str(session.all(sql, token)[0][0])


def rebuild(session: PostgresSession) -> None:
    """Delete all tokens; each lane is indexed again at its next search."""
    for table in _WORD_TABLES.values():
        session.all(f"delete from {table}")  # noqa: S608  (our own table)
    rebuild_later(session.all)


_SCHEMA_OF_PGVECTOR: Final = (
    "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
    " where e.extname = 'vector'"
)
_NO_PGVECTOR: Final = (
    "Texts are found only by their words: the database has no pgvector."
    " Its administrator types: create extension vector with schema public"
)
_AMONG: Final = "seq in (select cast(value as integer) from json_each(?))"


def trouble(session: PostgresSession) -> str:
    """Return the reason why vectors cannot be searched; "" if they can."""
    return "" if session.one(_SCHEMA_OF_PGVECTOR) else _NO_PGVECTOR


def sweep(_: PostgresSession) -> None:
    """Do nothing: no data is derived from vectors here."""


def save(session: PostgresSession, key: Key, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Store the vectors of rows; a later one replaces an earlier one."""
    found = grow(session, key, 0)
    check_vectors(key.space, _width(session, found) * FLOAT, vectors)
    gone = _delete(session, found, [seq for seq, _ in vectors])
    session.many(
        "insert into vector (lane, seq, vector) values (?, ?, ?::real[])",
        [(found.id, seq, [*array("f", vector)]) for seq, vector in vectors],
    )
    grow(session, key, len(vectors) - gone)


def remove(session: PostgresSession, agent: str, shelf: str, seqs: Sequence[int]) -> None:
    """Delete the vectors of rows, in every space."""
    for key, found in spaces(session, agent, shelf):
        grow(session, key, -_delete(session, found, seqs))


def nearest(session: PostgresSession, key: Key, vector: bytes, limit: int) -> list[Hit]:
    """Return the best rows by cosine; the newest first among equals."""
    found = lane(session, key)
    if found is None or limit < 1 or trouble(session):
        return []
    width, asked = _width(session, found), len(vector) // FLOAT
    if width and width != asked:
        raise StorageError(f"A vector of {asked} components is asked for among vectors of {width}.")
    sql = f"{_cosines(session)} order by score desc, seq desc limit ?"
    return [
        Hit(seq, score) for seq, score in session.all(sql, _text(vector), found.id, asked, limit)
    ]


def cosines(
    session: PostgresSession, key: Key, vector: bytes, seqs: Collection[int]
) -> dict[int, float]:
    """Return the cosines of those rows that have a vector."""
    found = lane(session, key)
    if found is None or trouble(session):
        return {}
    sql = f"{_cosines(session)} and {_AMONG}"
    return dict(session.all(sql, _text(vector), found.id, len(vector) // FLOAT, numbers([*seqs])))


def _cosines(session: PostgresSession) -> str:
    """Return the query for cosines; a zero vector has no angle."""
    schema = session.all(_SCHEMA_OF_PGVECTOR)[0][0]
    distance = f"(vector::{schema}.vector operator({schema}.<=>) ?::{schema}.vector)"
    score = f"coalesce(1 - nullif({distance}, 'NaN'::double precision), 0.0)"
    return f"select seq, {score} as score from vector where lane = ? and cardinality(vector) = ?"  # noqa: S608  (a schema that the database names)


def _text(vector: bytes) -> str:
    return str([*array("f", vector)])


def _width(session: PostgresSession, lane: Lane) -> int:
    row = session.one("select cardinality(vector) from vector where lane = ? limit 1", lane.id)
    return row[0] if row else 0


def _delete(session: PostgresSession, lane: Lane, seqs: Sequence[int]) -> int:
    return len(
        session.all(
            f"delete from vector where lane = ? and {_AMONG} returning 1",  # noqa: S608  (our own text)
            lane.id,
            numbers(seqs),
        )
    )

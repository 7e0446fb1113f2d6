"""The words of rows in plain tables, one row per token: `Postings` on PostgreSQL."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from .. import search_index
from .connection import PostgresSession

TABLES: Final = {"recall": "said_words", "archival": "passage_words"}


def insert(session: PostgresSession, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Store the tokens of rows."""
    pairs = [(token, seq) for seq, tokens in rows for token in tokens]
    if pairs:
        sql = f"insert into {TABLES[shelf]} (token, seq) select * from unnest(?::text[], ?::bigint[])"  # noqa: S608  (our own table)
        session.all(sql, [token for token, _ in pairs], [seq for _, seq in pairs])


def delete(session: PostgresSession, shelf: str, seqs: Collection[int]) -> None:
    """Delete the tokens of rows."""
    session.all(f"delete from {TABLES[shelf]} where seq = any(?::bigint[])", [*seqs])  # noqa: S608  (our own table)


def row_counts(session: PostgresSession, shelf: str, tokens: Sequence[str]) -> dict[str, int]:
    """Return the number of rows with each token, omitting tokens without rows."""
    sql = f"select token, count(*) from {TABLES[shelf]} where token = any(?::text[]) group by token"  # noqa: S608  (our own table)
    return dict(session.all(sql, [*tokens]))


def holding(session: PostgresSession, shelf: str, token: str) -> str:
    """Return the rows that contain a token, in order, separated by commas."""
    sql = f"select coalesce(string_agg(seq::text, ',' order by seq), '') from {TABLES[shelf]} where token = ?"  # noqa: S608  (our own table)
    return str(session.all(sql, token)[0][0])


def rebuild(session: PostgresSession) -> None:
    """Delete all tokens; each lane is indexed again at its next search."""
    for table in TABLES.values():
        session.all(f"delete from {table}")  # noqa: S608  (our own table)
    search_index.rebuild_later(session)

"""The words of rows in contentless FTS5 tables: `Postings` on SQLite."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import apsw

from ..search_index import ROWS, numbers
from .connection import SqliteSession
from .migrate import drop_unread

TABLES: Final = {"recall": "said_words", "archival": "passage_words"}
_DAMAGED: Final = ("fts5 file format", "no such fts5 table")


def insert(session: SqliteSession, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Store the tokens of rows."""
    sql = f"insert into {TABLES[shelf]} (rowid, words) values (?, ?)"  # noqa: S608  (our own table)
    session.db.executemany(sql, ((seq, " ".join(tokens)) for seq, tokens in rows))


def delete(session: SqliteSession, shelf: str, seqs: Collection[int]) -> None:
    """Delete the tokens of rows."""
    among = "rowid in (select value from json_each(?))"
    session.all(f"delete from {TABLES[shelf]} where {among}", numbers([*seqs]))  # noqa: S608  (our own table)


def row_counts(session: SqliteSession, shelf: str, tokens: Sequence[str]) -> dict[str, int]:
    """Return the number of rows with each token, omitting tokens without rows; far cheaper than reading the rows."""
    table = TABLES[shelf]
    session.all(f"create virtual table if not exists temp.{table}_terms using fts5vocab(main, {table}, 'row')")
    among = "where term in (select value from json_each(?))"
    return dict(session.all(f"select term, doc from temp.{table}_terms {among}", json.dumps(tokens)))  # noqa: S608  (our own table)


def holding(session: SqliteSession, shelf: str, token: str) -> str:
    """Return the rows that contain a token, in order."""
    table = TABLES[shelf]
    rows = session.all(f"select group_concat(rowid) from {table} where {table} match ?", f'"{token}"')[0][0]  # noqa: S608  (our own table)
    return rows or ""


def is_damage(error: apsw.Error) -> bool:
    """Return whether FTS5 reports that its tables are damaged."""
    # apsw documents the attribute, but its types omit it
    extended = error.extendedresult  # type: ignore[attr-defined]
    return extended == apsw.SQLITE_CORRUPT_VTAB or any(text in str(error) for text in _DAMAGED)


def rebuild(session: SqliteSession) -> None:
    """Delete all tokens; each lane is indexed again at its next search."""
    forget(session.db)


def forget(db: apsw.Connection) -> None:
    """Drop the index without reading it; each lane is indexed again at its next search."""
    for shelf, table in TABLES.items():
        (sql,) = next(db.execute("select sql from sqlite_schema where name = ?", (table,)))
        drop_unread(db, f"{table}*")
        list(db.execute(sql))
        db.execute("delete from lane where shelf = ? and space = ''", (shelf,))
        lanes = f"select agent, ?1, '', count(*), max(seq) from {ROWS[shelf]} group by agent"  # noqa: S608  (our own table)
        db.execute(f"insert into lane (agent, shelf, space, rows, upto) {lanes}", (shelf,))

"""The index of words: FTS5 tables of stems, written in the transaction of the rows that they index.

A stem carries the number of its lane, so that the postings of one agent are a list of their own: what others keep
makes its searches neither slower nor different.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from agent_core.base.language import OTHERS, foreign, marked

from .connection import SqlSession
from .lanes import Key, Lane, advance, grow, lane, numbers
from .migrate import drop_unread

ROWS: Final = {"recall": "said", "archival": "passage"}
TABLES: Final = {"recall": "said_words", "archival": "passage_words"}
BATCH: Final = 2_000  # rows that one transaction indexes, some 20 ms
_DAMAGED: Final = ("fts5 file format", "no such fts5 table")
_SHORT = re.compile(r"\b(\w)ies\b", re.IGNORECASE)  # the stemmer makes `pi` of `pies`, and leaves `pie`


def sought(session: SqlSession, query_words: Sequence[str]) -> set[str]:
    """Return the stems of what is searched for, in every language: a question may be too short to tell its own."""
    words = [word.lower() for word in query_words if len(word) > 1]
    return stems(session, " ".join(query_words).lower()).union(*(marked(words, language) for language in OTHERS))


def _indexed(session: SqlSession, text: str) -> set[str]:
    language = foreign(text)
    return stems(session, text).union(marked(text.split(), language) if language else ())


def stems(session: SqlSession, text: str) -> set[str]:
    """Return the words of a text, each without its English ending, as they are compared."""
    tokenize = session.db.fts5_tokenizer("porter", ["unicode61"])
    found = tokenize(
        _SHORT.sub(r"\1ie", text).encode(),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return {str(stem) for stem in found}


def token(lane: Lane, stem: str) -> str:
    """Return a stem of a lane as the index has it; digits end at the `x`, so that no two read alike."""
    return f"{lane.id}x{stem}"


def row_counts(session: SqlSession, shelf: str, tokens: Sequence[str]) -> dict[str, int]:
    """Return in how many rows each token is, without those that are in none: a count is far cheaper than the rows."""
    table = TABLES[shelf]
    session.all(f"create virtual table if not exists temp.{table}_terms using fts5vocab(main, {table}, 'row')")
    among = "where term in (select value from json_each(?))"
    return dict(session.all(f"select term, doc from temp.{table}_terms {among}", json.dumps(tokens)))  # noqa: S608  (a table of ours)


def add(session: SqlSession, key: Key, rows: Sequence[tuple[int, str]]) -> None:
    """Index new rows, each by its `seq` and words."""
    _insert(session, key, grow(session, key, len(rows)), rows)


def remove(session: SqlSession, key: Key, seqs: Sequence[int]) -> None:
    """Take rows, each of which was there, out of the index."""
    if seqs:
        among = "rowid in (select value from json_each(?))"
        session.all(f"delete from {TABLES[key.shelf]} where {among}", numbers(seqs))  # noqa: S608  (a table of ours)
        grow(session, key, -len(seqs))


def remove_agent(session: SqlSession, agent: str) -> None:
    """Take all rows of an agent, which are still there, out of the index."""
    for shelf, table in TABLES.items():
        among = f"rowid in (select seq from {ROWS[shelf]} where agent = ?)"  # noqa: S608  (a table of ours)
        session.all(f"delete from {table} where {among}", agent)  # noqa: S608  (a table of ours)


def catch_up(session: SqlSession, key: Key) -> Lane | None:
    """Return the lane, all of it indexed: what is older than its index comes in, a batch in each transaction."""
    words = lane(session, key)
    while words is not None and words.done < words.upto:
        with session.transaction():
            words = lane(session, key)
            if words is not None and words.done < words.upto:  # another process may be at it, too
                _index_batch(session, key, words)
        words = lane(session, key)
    return words


def _index_batch(session: SqlSession, key: Key, words: Lane) -> None:
    older = "where agent = ? and seq > ? and seq <= ? order by seq limit ?"
    rows = session.all(
        f"select seq, words from {ROWS[key.shelf]} {older}",  # noqa: S608  (a table of ours)
        *(key.agent, words.done, words.upto, BATCH),
    )
    _insert(session, key, words, rows)
    advance(session, words, rows[-1][0] if len(rows) == BATCH else words.upto)


def _insert(session: SqlSession, key: Key, words: Lane, rows: Iterable[Sequence[object]]) -> None:
    session.db.executemany(
        f"insert into {TABLES[key.shelf]} (rowid, words) values (?, ?)",  # noqa: S608  (a table of ours)
        ((seq, " ".join(token(words, stem) for stem in _indexed(session, str(text)))) for seq, text in rows),
    )


def is_damage(error: apsw.Error) -> bool:
    """Return whether FTS5 says that its tables are not what it wrote."""
    # apsw documents the attribute, its types leave it out
    extended = error.extendedresult  # type: ignore[attr-defined]
    return extended == apsw.SQLITE_CORRUPT_VTAB or any(text in str(error) for text in _DAMAGED)


def forget(db: apsw.Connection) -> None:
    """Drop the index unread; each lane is indexed anew when it is searched next."""
    for shelf, table in TABLES.items():
        (sql,) = next(db.execute("select sql from sqlite_schema where name = ?", (table,)))
        drop_unread(db, f"{table}*")
        list(db.execute(sql))
        db.execute("delete from lane where shelf = ? and space = ''", (shelf,))
        lanes = f"select agent, ?1, '', count(*), max(seq) from {ROWS[shelf]} group by agent"  # noqa: S608  (a table of ours)
        db.execute(f"insert into lane (agent, shelf, space, rows, upto) {lanes}", (shelf,))

"""The word index: the stems of each row, written in the same transaction as the rows.

A stem contains the number of its lane, so that the postings of one agent form a separate list: the data of other agents
neither slows down nor changes its searches.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from agent_core.base.language import OTHERS, english_stems, foreign, marked

from .lanes import Lane, advance, grow, lane
from .session import Key, SqlSession

ROWS: Final = {"recall": "said", "archival": "passage"}
LONGEST: Final = 500  # characters of a stem: PostgreSQL cannot index a pasted file as one word
BATCH: Final = 2_000  # rows indexed per transaction, some 20 ms


def sought(query_words: Sequence[str]) -> set[str]:
    """Return the stems of a query in every language: a question may be too short to detect its language."""
    words = [word.lower() for word in query_words if len(word) > 1]
    return english_stems(" ".join(query_words).lower()).union(*(marked(words, language) for language in OTHERS))


def token(lane: Lane, stem: str) -> str:
    """Return a stem of a lane as the index stores it; the `x` ends the digits, so that tokens are unique."""
    return f"{lane.id}x{stem[:LONGEST]}"


def add(session: SqlSession, key: Key, rows: Sequence[tuple[int, str]]) -> None:
    """Index new rows, each by its `seq` and words."""
    _insert(session, key, grow(session, key, len(rows)), rows)


def remove(session: SqlSession, key: Key, seqs: Sequence[int]) -> None:
    """Remove rows, each of which was indexed, from the index."""
    if seqs:
        session.postings.delete(session, key.shelf, seqs)
        grow(session, key, -len(seqs))


def remove_agent(session: SqlSession, agent: str) -> None:
    """Remove all rows of an agent, which still exist, from the index."""
    for shelf, table in ROWS.items():
        rows = session.all(f"select seq from {table} where agent = ?", agent)  # noqa: S608  (our own table)
        session.postings.delete(session, shelf, [seq for (seq,) in rows])


def catch_up(session: SqlSession, key: Key) -> Lane | None:
    """Return the lane after indexing its older rows, one batch per transaction."""
    words = lane(session, key)
    while words is not None and words.done < words.upto:
        with session.transaction():
            words = lane(session, key)
            if words is not None and words.done < words.upto:  # another process may be indexing, too
                rows = session.all(
                    f"select seq, words from {ROWS[key.shelf]}"  # noqa: S608  (our own table)
                    " where agent = ? and seq > ? and seq <= ? order by seq limit ?",
                    *(key.agent, words.done, words.upto, BATCH),
                )
                _insert(session, key, words, rows)
                advance(session, words, rows[-1][0] if len(rows) == BATCH else words.upto)
        words = lane(session, key)
    return words


def _insert(session: SqlSession, key: Key, lane: Lane, rows: Iterable[Sequence[object]]) -> None:
    indexed: list[tuple[int, list[str]]] = []
    for seq, text in rows:
        words = str(text)
        language = foreign(words)
        stems = english_stems(words).union(marked(words.split(), language) if language else ())
        indexed.append((int(str(seq)), [*{token(lane, stem) for stem in stems}]))
    session.postings.insert(session, key.shelf, indexed)


def rebuild_later(session: SqlSession) -> None:
    """Mark each lane for indexing at its next search; its old tokens must be deleted already."""
    for shelf, table in ROWS.items():
        session.all("delete from lane where shelf = ? and space = ''", shelf)
        lanes = f"select agent, ?1, '', count(*), max(seq) from {table} group by agent"  # noqa: S608  (our own table)
        session.all(f"insert into lane (agent, shelf, space, rows, upto) {lanes}", shelf)

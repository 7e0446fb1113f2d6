"""Lanes, and the index of words in them: the common part of both databases' searches.

A lane is the scope of one search: an agent's words, or its vectors of one space, in one of the two stores. Vectors are
little-endian float32, with the same number of components throughout a lane.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Final

from agent_core.base.errors import StorageError
from agent_core.base.language import OTHERS, english_stems, foreign, marked
from agent_core.base.records import dataclass

from .subject import dump
from .tables import Hit, Key, SqlSession

FLOAT: Final = 4  # bytes
WIDEST: Final = 8_192  # components, the limit of sqlite-vec
_SELECT = "select id, rows, done, upto from lane where agent = ? and shelf = ? and space = ?"
_GROW = (
    "update lane set rows = rows + ? where agent = ? and shelf = ? and space = ? returning id, rows, done, upto",
    "insert into lane (rows, agent, shelf, space) values (?, ?, ?, ?) returning id, rows, done, upto",
)
_SPACES = (
    "select space, id, rows, done, upto from lane where agent = ? and shelf = ? and space <> ''"
)


@dataclass(frozen=True, slots=True)
class Lane:
    """The state of a lane: its number of rows, and how far they are indexed."""

    id: int
    rows: int
    done: int
    upto: int


def lane(session: SqlSession, key: Key) -> Lane | None:
    """Return the lane, or None if nothing was ever in it."""
    row = session.one(_SELECT, *key)
    return Lane(*row) if row else None


def grow(session: SqlSession, key: Key, count: int) -> Lane:
    """Add to a lane's number of rows, creating the lane if necessary, and return it."""
    update, insert = _GROW
    return Lane(*(session.one(update, count, *key) or session.all(insert, count, *key)[0]))


def advance(session: SqlSession, lane: Lane, done: int) -> None:
    """Record how far the rows are indexed."""
    session.all("update lane set done = ? where id = ?", done, lane.id)


def spaces(session: SqlSession, agent: str, shelf: str) -> list[tuple[Key, Lane]]:
    """Return the lanes of an agent's vectors in one of the two stores."""
    rows = session.all(_SPACES, agent, shelf)
    return [(Key(agent, shelf, space), Lane(*lane)) for space, *lane in rows]


def numbers(values: Sequence[int]) -> str:
    """Return numbers as one parameter for `in (select cast(value as integer) from json_each(?))`."""
    return dump([*values])


def check_vectors(space: str, size: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Reject vectors that a search cannot compare: it compares all vectors of a lane with one vector.

    `size` is that of the existing vectors in bytes; 0 if there are none.

    Raises:
        StorageError: a vector is invalid or has another size.
    """
    for seq, vector in vectors:
        components = array("f", vector) if len(vector) % FLOAT == 0 else ()
        if not (0 < len(components) <= WIDEST and isfinite(sum(components))):
            raise StorageError(f"The vector of row {seq} is none.")
        size = size or len(vector)
        if len(vector) != size:
            raise StorageError(
                f"Vectors of the space `{space}` have {size // FLOAT} components, and some of these have not.",
                fix="Give the vectors of each model and size a space of their own.",
            )


# The word index: the stems of each row, written in the same transaction as the rows.
# A stem contains the number of its lane, so that the postings of one agent form a separate list: the data of other
# agents neither slows down nor changes its searches.

ROWS: Final = {"recall": "said", "archival": "passage"}
LONGEST_STEM: Final = 500  # characters of a stem: PostgreSQL cannot index a pasted file as one word
BATCH: Final = 2_000  # rows indexed per transaction, some 20 ms


def sought(query_words: Sequence[str]) -> set[str]:
    """Return the stems of a query in every language: a question may be too short to detect its language."""
    words = [word.lower() for word in query_words if len(word) > 1]
    return english_stems(" ".join(query_words).lower()).union(
        *(marked(words, language) for language in OTHERS)
    )


def token(lane: Lane, stem: str) -> str:
    """Return a stem of a lane as the index stores it; the `x` ends the digits, so that tokens are unique."""
    return f"{lane.id}x{stem[:LONGEST_STEM]}"


def add_words(session: SqlSession, key: Key, rows: Sequence[tuple[int, str]]) -> None:
    """Index new rows, each by its `seq` and words."""
    _insert(session, key, grow(session, key, len(rows)), rows)


def remove_words(session: SqlSession, key: Key, seqs: Sequence[int]) -> None:
    """Remove rows, each of which was indexed, from the index."""
    if seqs:
        session.index.delete(session, key.shelf, seqs)
        grow(session, key, -len(seqs))


def remove_words_of_agent(session: SqlSession, agent: str) -> None:
    """Remove all rows of an agent, which still exist, from the index."""
    for shelf, table in ROWS.items():
        # The messages of a conversation that is found alone have its line for an agent; 0 follows the slash.
        sql = (
            f"select seq from {table} where agent = ?1 or (agent > ?1 || '/' and agent < ?1 || '0')"  # noqa: S608
        )
        rows = session.all(sql, agent)
        session.index.delete(session, shelf, [seq for (seq,) in rows])


def catch_up(session: SqlSession, key: Key) -> Lane | None:
    """Return the lane after indexing its older rows, one batch per transaction."""
    words = lane(session, key)
    while words is not None and words.done < words.upto:
        with session.transaction():
            words = lane(session, key)
            if (
                words is not None and words.done < words.upto
            ):  # another process may be indexing, too
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
    session.index.insert(session, key.shelf, indexed)


def rebuild_later(run: Callable[[str, str], object]) -> None:
    """Mark each lane for indexing at its next search; its old tokens must be deleted already.

    `run` runs a statement with one value.
    """
    for shelf, table in ROWS.items():
        run("delete from lane where shelf = ? and space = ''", shelf)
        lanes = f"select agent, ?1, '', count(*), max(seq) from {table} group by agent"  # noqa: S608  (our own table)
        run(f"insert into lane (agent, shelf, space, rows, upto) {lanes}", shelf)


MOST_POSTINGS: Final = 30_000


def search_words(
    session: SqlSession,
    key: Key,
    query_words: Sequence[str],
    limit: int,
    candidates: Sequence[int] | None = None,
) -> list[Hit]:
    """Return the best rows by BM25; `candidates` restricts them."""
    import numpy as np  # noqa: PLC0415 - only a search pays for the import

    stems = sought(query_words)
    index = catch_up(session, key)
    if not stems or limit < 1 or index is None:
        return []
    counts = session.index.row_counts(session, key.shelf, [token(index, stem) for stem in stems])
    if not counts:
        return []
    ranked = sorted(counts, key=lambda token: (counts[token], token))
    # The rarest words within a limit of rows: a common word says little, and reading its rows takes long.
    upto = np.cumsum([counts[token] for token in ranked])
    most = max(1, int(np.searchsorted(upto, MOST_POSTINGS, "right")))
    tokens = ranked[
        : most if candidates is None else None
    ]  # a few rows may have the common words alone
    holding = [
        np.fromstring(session.index.holding(session, key.shelf, token), "<i8", sep=",")
        for token in tokens
    ]
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
    return [
        Hit(seq, score)
        for seq, score in zip(seqs[best].tolist(), scores[best].tolist(), strict=True)
    ]

"""The indexes of words and of vectors, and the searches in them: the `SearchIndex` of SQLite.

The words of rows are in contentless FTS5 tables. Vectors are stored as given; their signs are in a table of sqlite-vec
for each lane with many vectors. The extension is loaded at first use. If that fails, `trouble` gives the reason; stored
vectors stay, and the signs are created once the extension is available.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import reinstall

from ..search_index import (
    FLOAT,
    WIDEST,
    Lane,
    advance,
    check_vectors,
    grow,
    lane,
    numbers,
    rebuild_later,
    spaces,
)
from ..subject import dump
from ..tables import Hit, Key
from .connection import SqliteSession, drop_unread

_WORD_TABLES: Final = {"recall": "said_words", "archival": "passage_words"}
_DAMAGED: Final = ("fts5 file format", "no such fts5 table")


def insert(session: SqliteSession, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Store the tokens of rows."""
    sql = f"insert into {_WORD_TABLES[shelf]} (rowid, words) values (?, ?)"  # noqa: S608  (our own table)
    session.many(sql, ((seq, " ".join(tokens)) for seq, tokens in rows))


def delete(session: SqliteSession, shelf: str, seqs: Collection[int]) -> None:
    """Delete the tokens of rows."""
    among = "rowid in (select value from json_each(?))"
    session.all(f"delete from {_WORD_TABLES[shelf]} where {among}", numbers([*seqs]))  # noqa: S608  (our own table)


def row_counts(session: SqliteSession, shelf: str, tokens: Sequence[str]) -> dict[str, int]:
    """Return the number of rows with each token, omitting tokens without rows; far cheaper than reading the rows."""
    table = _WORD_TABLES[shelf]
    session.all(
        f"create virtual table if not exists temp.{table}_terms using fts5vocab(main, {table}, 'row')"
    )
    among = "where term in (select value from json_each(?))"
    return dict(session.all(f"select term, doc from temp.{table}_terms {among}", dump(tokens)))  # noqa: S608  (our own table)


def holding(session: SqliteSession, shelf: str, token: str) -> str:
    """Return the rows that contain a token, in order."""
    table = _WORD_TABLES[shelf]
    rows = session.all(
        f"select group_concat(rowid) from {table} where {table} match ?",  # noqa: S608  (our own table)
        f'"{token}"',
    )[0][0]
    return rows or ""


def is_damage(error: apsw.Error) -> bool:
    """Return whether FTS5 reports that its tables are damaged."""
    # apsw documents the attribute, but its types omit it
    extended = error.extendedresult  # type: ignore[attr-defined]
    return extended == apsw.SQLITE_CORRUPT_VTAB or any(text in str(error) for text in _DAMAGED)


def rebuild(session: SqliteSession) -> None:
    """Delete all tokens; each lane is indexed again at its next search."""
    forget_words(session.db)


def forget_words(db: apsw.Connection) -> None:
    """Drop the index without reading it; each lane is indexed again at its next search."""
    for table in _WORD_TABLES.values():
        (sql,) = next(db.execute("select sql from sqlite_schema where name = ?", (table,)))
        drop_unread(db, f"{table}*")
        list(db.execute(sql))
    rebuild_later(lambda sql, value: db.execute(sql, (value,)))


EXACT: Final = 5_000  # in a smaller lane, all vectors are compared
BATCH: Final = 5_000  # signs written per transaction, some 60 ms
PARTS: Final = 16  # partitions of a table of signs; one is searched first
UNREADABLE: Final = (apsw.SQLError, apsw.CorruptError)
"""The errors that a damaged table of signs causes."""
# Small chunks: to select a row, sqlite-vec scans its whole chunk.
_SIGN_TABLE: Final = "CREATE VIRTUAL TABLE bits_{} using vec0(part integer partition key, bits bit[{}], chunk_size=256)"
_MADE: Final = re.compile(re.escape(_SIGN_TABLE).replace(r"\{\}", r"\d{1,18}"))
_MIXED, _PRIME = 2_654_435_761, (1 << 31) - 1  # spreads neighbors over different partitions
_ALONE: Final = "Texts are found only by their words:"
LOOKED_AT: Final = 1_000
MOST_NEAREST: Final = 4_096  # the limit of sqlite-vec
# A zero vector has no angle.
_COSINES: Final = (
    "select seq, coalesce(1 - vec_distance_cosine(vector, ?1), 0.0) as score from vector"
    " where lane = ?2 and length(vector) = length(?1)"
)


def bits(lane: Lane) -> str:
    """Return the name of the table with the signs of a lane."""
    return f"bits_{lane.id}"


def trouble(session: SqliteSession) -> str:
    """Return the reason why vectors cannot be searched; "" if they can."""
    try:
        session.all("select vec_version()")
    except apsw.SQLError:
        why = _load(session.db)
        if not why:
            sweep(session)
        return why
    return ""


def _load(db: apsw.Connection) -> str:
    package = find_spec("sqlite_vec")
    if package is None or package.origin is None:
        return f"{_ALONE} the package sqlite-vec is missing. Type: {reinstall('sqlite-vec')}"
    try:
        db.enable_load_extension(True)
        db.load_extension(str(Path(package.origin).with_name("vec0")))
        db.enable_load_extension(False)
    except (apsw.Error, AttributeError) as error:
        return f"{_ALONE} the extension sqlite-vec cannot be loaded ({error})."
    return ""


def save(session: SqliteSession, key: Key, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Store the vectors of rows; a later one replaces an earlier one."""
    found = grow(session, key, 0)
    row = session.one("select length(vector) from vector where lane = ? limit 1", found.id)
    check_vectors(key.space, row[0] if row else 0, vectors)
    is_whole = bool(found.done) and not _rows_to_sign(session, found, 1)
    seqs = [seq for seq, _ in vectors]
    gone = _delete(session, found, seqs)
    session.db.executemany(
        "insert into vector (lane, seq, vector) values (?, ?, ?)",
        [(found.id, seq, vector) for seq, vector in vectors],
    )
    now, width = grow(session, key, len(vectors) - gone), len(vectors[0][1]) // FLOAT
    if found.done and _follow(session, found, seqs, vectors):
        advance(session, found, max(found.done, *seqs) if is_whole else found.done)
    if not is_whole and has_signs(now, width) and not trouble(session):
        with suppress(*UNREADABLE):  # the next search creates them again
            _sign_batch(session, key, width)


def has_signs(lane: Lane, width: int) -> bool:
    """Return whether a lane is searched by the signs of its vectors, which need a width in whole bytes."""
    return lane.rows > EXACT and width % 8 == 0


def remove(session: SqliteSession, agent: str, shelf: str, seqs: Sequence[int]) -> None:
    """Delete the vectors of rows, in every space."""
    for key, found in spaces(session, agent, shelf):
        grow(session, key, -_delete(session, found, seqs))
        if found.done:
            _follow(session, found, seqs)


def _delete(session: SqliteSession, lane: Lane, seqs: Sequence[int]) -> int:
    which = (
        "delete from vector where lane = ? and seq in (select value from json_each(?)) returning 1"
    )
    return len(session.all(which, lane.id, numbers(seqs)))


def _follow(
    session: SqliteSession,
    lane: Lane,
    seqs: Sequence[int],
    vectors: Sequence[tuple[int, bytes]] = (),
) -> bool:
    """Keep the signs of rows in sync with their vectors; if this fails, the lane's signs are created again later."""
    try:
        if not trouble(session):
            _write_signs(session, lane, seqs, vectors)
            return True
    except UNREADABLE:
        pass
    advance(session, lane, 0)
    return False


def _write_signs(
    session: SqliteSession, lane: Lane, seqs: Sequence[int], vectors: Sequence[tuple[int, bytes]]
) -> None:
    which = "where rowid in (select value from json_each(?))"
    session.all(f"delete from {bits(lane)} {which}", numbers(seqs))  # noqa: S608  (our own table)
    session.db.executemany(
        f"insert into {bits(lane)} (rowid, part, bits) values (?, ?, vec_quantize_binary(?))",  # noqa: S608  (our own table)
        ((seq, seq * _MIXED % _PRIME % PARTS, vector) for seq, vector in vectors),
    )


def catch_up(session: SqliteSession, key: Key, width: int) -> Lane:
    """Return the lane after adding missing signs, one batch per transaction."""
    while True:
        found = lane(session, key) or grow(session, key, 0)
        if found.done and not _rows_to_sign(session, found, 1):
            return found
        with session.transaction():
            if not _sign_batch(session, key, width):
                return found


def _sign_batch(session: SqliteSession, key: Key, width: int) -> bool:
    found = grow(session, key, 0)
    if not found.done:
        drop(session, bits(found))
        session.all(_SIGN_TABLE.format(found.id, width))
    rows = _rows_to_sign(session, found, BATCH)
    if rows:
        _write_signs(session, found, [seq for seq, _ in rows], rows)
        advance(session, found, rows[-1][0])
    return bool(rows)


def _rows_to_sign(session: SqliteSession, lane: Lane, count: int) -> list[tuple[int, bytes]]:
    rows = "select seq, vector from vector where lane = ? and seq > ? order by seq limit ?"
    return [(seq, vector) for seq, vector in session.all(rows, lane.id, lane.done, count)]


def drop(session: SqliteSession, name: str) -> None:
    """Drop a table of signs, if it exists."""
    session.all("update lane set done = 0 where 'bits_' || id = ? and space <> ''", name)
    session.all(f"drop table if exists {name}")
    for part in sorted(_parts(session.db, name)):
        session.all(f"drop table if exists {part}")


def sweep(session: SqliteSession) -> None:
    """Drop each table of signs that no lane uses, or that sqlite-vec did not create."""
    used = {
        bits(Lane(id, 0, 0, 0))
        for (id,) in session.all("select id from lane where done and space <> ''")
    }
    names = session.all(
        "select name from sqlite_schema where type = 'table' and name glob 'bits_[0-9]*'"
    )
    for name in {"_".join(str(name).split("_")[:2]) for (name,) in names}:
        if (name not in used or not _is_ours(_parts(session.db, name), name)) and not trouble(
            session
        ):
            drop(session, name)


def _is_ours(parts: dict[str, str], name: str) -> bool:
    if not _MADE.fullmatch(parts.get(name, "")):
        return False
    fresh = apsw.Connection(":memory:")
    _load(fresh)
    fresh.execute(parts[name])
    return _parts(fresh, name) == parts


def _parts(db: apsw.Connection, name: str) -> dict[str, str]:
    """Return the SQL of a table of signs and of its internal sqlite-vec tables."""
    tables = "select name, sql from sqlite_schema where type = 'table' and (name = ?1 or name glob ?1 || '_*')"
    return dict(db.execute(tables, (name,)))


def forget_signs(db: apsw.Connection) -> None:
    """Drop all signs without reading them; the next search creates them again."""
    drop_unread(db, "bits_[0-9]*")
    list(
        db.execute(
            "update lane set done = 0, rows = (select count(*) from vector where lane = id) where space <> ''"
        )
    )


def nearest(session: SqliteSession, key: Key, vector: bytes, limit: int) -> list[Hit]:
    """Return the best rows by cosine; in a large lane, only the rows with the most similar signs are compared."""
    index = lane(session, key)
    if index is None or limit < 1 or trouble(session):
        return []
    row = session.one("select length(vector) from vector where lane = ? limit 1", index.id)
    if row is None:
        return []
    if len(vector) != row[0]:
        asked = f"A vector of {len(vector) // FLOAT} components"
        raise StorageError(f"{asked} is asked for among vectors of {row[0] // FLOAT}.")
    width = len(vector) // FLOAT
    if has_signs(index, width):
        try:
            return _nearest_by_signs(session, catch_up(session, key, width), vector, limit)
        except UNREADABLE:
            with session.transaction():
                drop(session, bits(index))
    return _nearest(session, index, vector, limit)


def _nearest(
    session: SqliteSession, lane: Lane, vector: bytes, limit: int, among: str = "", *values: object
) -> list[Hit]:
    sql = f"{_COSINES} {among} order by score desc, seq desc limit ?3"
    return [Hit(seq, score) for seq, score in session.all(sql, vector, lane.id, limit, *values)]


def _nearest_by_signs(session: SqliteSession, lane: Lane, vector: bytes, limit: int) -> list[Hit]:
    """Compare about a thousand rows with the most similar signs; one partition serves to estimate their distance.

    For sqlite-vec, selecting all rows within a distance is far cheaper than selecting this many nearest ones.
    """
    signs = f"from {bits(lane)} where bits match vec_quantize_binary(?1)"
    most = min(max(LOOKED_AT, 4 * limit), MOST_NEAREST)
    of_part = session.all(f"select distance {signs} and k = ?2 and part = 0", vector, most // PARTS)
    distances = [row[0] for row in of_part]
    within = distances[-1] if len(distances) == most // PARTS else WIDEST
    if distances and distances[0] == within:  # if all are alike, a few suffice
        most = min(limit, MOST_NEAREST)
    among = f"and seq in (select rowid {signs} and k = ?4 and distance <= ?5)"
    return _nearest(session, lane, vector, limit, among, most, within)


def cosines(
    session: SqliteSession, key: Key, vector: bytes, seqs: Collection[int]
) -> dict[int, float]:
    """Return the cosines of those rows that have a vector."""
    found = lane(session, key)
    if found is None or trouble(session):
        return {}
    among = "and seq in (select value from json_each(?3))"
    return dict(session.all(f"{_COSINES} {among}", vector, found.id, numbers([*seqs])))

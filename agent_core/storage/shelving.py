"""Passages, the index of what was said, and vectors in SQL: what each write does to rows and to what is searched."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from struct import pack, unpack_from
from typing import Any
from zlib import crc32

import apsw

from ..errors import StorageError
from . import memory_writes as m
from .connection import Session, dump
from .sheets import MOST_ITEMS, SIZE, Key, Row, extend, forget, lane, numbers, spaces

MOST_TIMES = 255
_SHORT = re.compile(r"\b(\w)ies\b", re.IGNORECASE)  # the stemmer makes `pi` of `pies`, and leaves `pie`


def stems(session: Session, text: str) -> list[str]:
    """The words of a text, each without its ending, as they are compared."""
    tokenize = session.db.fts5_tokenizer("porter", ["unicode61"])
    found = tokenize(
        _SHORT.sub(r"\1ie", text).encode(),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return [str(stem) for stem in found]


def term(stem: str) -> int:
    """The number that stands for a stem."""
    return crc32(stem.encode())


def words_row(session: Session, seq: int, words: str) -> Row:
    """What the search of words keeps of a row."""
    times = Counter(map(term, stems(session, words))).most_common(MOST_ITEMS)
    body = b"".join(pack("<IB", number, min(count, MOST_TIMES)) for number, count in times)
    return seq, len(times), body


def save_passages(session: Session, write: m.SavePassages) -> None:
    """Those that are new."""
    fresh: dict[str, list[Row]] = defaultdict(list)
    for passage in write.passages:
        seq = _insert_passage(session, passage)
        if seq is not None:
            fresh[passage.agent].append(words_row(session, seq, passage.words))
    for agent, rows in fresh.items():
        extend(session, Key(agent, "archival"), rows)


def _insert_passage(session: Session, one: m.PassageRow) -> int | None:
    row = session.one(
        "insert into passage (id, agent, text, words, at, tags, source, place, document, n)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning seq",
        *(one.id, one.agent, one.text, one.words, one.at, dump([*one.tags])),
        *(one.source, one.place, one.document, one.n),
    )
    if row is None:
        return None
    for tag in set(one.tags):
        session.all("insert into tag (agent, tag, passage) values (?, ?, ?)", one.agent, tag, row[0])
    return int(row[0])


def drop_passages(session: Session, write: m.DropPassages) -> None:
    """By their ids."""
    which = "delete from passage where agent = ? and id in (select value from json_each(?)) returning seq"
    _went(session, write.agent, session.all(which, write.agent, json.dumps([*write.ids])))


def drop_document(session: Session, write: m.DropDocument) -> None:
    """A source and its passages."""
    session.all("delete from document where agent = ? and hash = ?", write.agent, write.hash)
    which = "delete from passage where agent = ? and document = ? and document <> '' returning seq"
    _went(session, write.agent, session.all(which, write.agent, write.hash))


def _went(session: Session, agent: str, rows: list[tuple[Any, ...]]) -> None:  # Any: columns as SQLite types them
    seqs = sorted(row[0] for row in rows)
    words = lane(session, Key(agent, "archival"))
    if not seqs or words is None:
        return
    for key, _ in spaces(session, agent, "archival"):
        _forget_vectors(session, key, seqs)
    if not forget(session, words, seqs):
        _shelve_again(session, agent)


def _shelve_again(session: Session, agent: str) -> None:
    session.all("delete from lane where agent = ? and shelf = 'archival' and space = ''", agent)
    rows = session.all("select seq, words from passage where agent = ? order by seq", agent)
    extend(session, Key(agent, "archival"), [words_row(session, seq, words) for seq, words in rows])


def save_said(session: Session, write: m.SaveSaid) -> None:
    """Those that are new."""
    fresh: dict[str, list[Row]] = defaultdict(list)
    for one in write.said:
        row = session.one(
            "insert into said (seq, agent, n, text, words, at, speaker, session, length, asks, timed, turn)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning seq",
            *(one.seq, one.agent, one.n, one.text, one.words, one.at, one.speaker),
            *(one.session, one.length, one.asks, one.timed, one.turn),
        )
        if row:
            fresh[one.agent].append(words_row(session, one.seq, one.words))
    for agent, rows in fresh.items():
        extend(session, Key(agent, "recall"), rows)


def save_vectors(session: Session, write: m.SaveVectors) -> None:
    """Those whose rows are there; a later one takes the place of an earlier."""
    if not write.space:
        raise StorageError("A space of vectors needs a name.")
    given = dict(write.vectors)
    owners: dict[str, list[int]] = defaultdict(list)
    for agent, seq in session.all(OWNERS[write.shelf], numbers([*given])):
        owners[agent].append(seq)
    for agent, seqs in owners.items():
        _save_lane(session, Key(agent, write.shelf, write.space), [(seq, given[seq]) for seq in seqs])


def _save_lane(session: Session, key: Key, vectors: Sequence[tuple[int, bytes]]) -> None:
    _forget_vectors(session, key, [seq for seq, _ in vectors])
    rows = codes(vectors)
    id = extend(session, key, rows)
    _refuse_other_sizes(session, id, key.space, {size for _, size, _ in rows})
    session.db.executemany(
        "insert into vector (lane, seq, vector) values (?, ?, ?)", [(id, seq, vector) for seq, vector in vectors]
    )


def _refuse_other_sizes(session: Session, id: int, space: str, sizes: set[int]) -> None:
    """A search multiplies all of a lane by one vector."""
    sheet = session.all("select sizes from sheet where lane = ? order by first limit 1", id)[0][0]
    (size,) = unpack_from(SIZE, sheet)
    if sizes != {size}:
        raise StorageError(
            f"Vectors of the space `{space}` have {size} components, and some of these have not.",
            mend="Give the vectors of each model and size a space of their own.",
        )


def codes(vectors: Iterable[tuple[int, bytes]]) -> list[Row]:
    """What the search of vectors keeps: each component as a byte, the largest of a vector as 127."""
    import numpy as np  # noqa: PLC0415 whoever has no vectors does not wait for it

    found = []
    for seq, vector in vectors:
        floats = np.frombuffer(vector, "<f4")
        if not (0 < len(floats) <= MOST_ITEMS and np.isfinite(floats).all()):
            raise StorageError(f"The vector of row {seq} is none.")
        largest = np.abs(floats).max() or 1.0
        found.append((seq, len(floats), np.rint(floats * (127 / largest)).astype(np.int8).tobytes()))
    return found


def _forget_vectors(session: Session, key: Key, seqs: Sequence[int]) -> None:
    found = lane(session, key)
    if found is None:
        return
    rows = session.all(
        "delete from vector where lane = ? and seq in (select value from json_each(?)) returning seq",
        *(found.id, numbers(seqs)),
    )
    if rows and not forget(session, found, sorted(row[0] for row in rows)):
        _embed_again(session, key, found.id)


def _embed_again(session: Session, key: Key, old: int) -> None:
    kept = session.all("select seq, vector from vector where lane = ? order by seq", old)
    session.all("delete from lane where id = ?", old)
    if kept:
        _save_lane(session, key, kept)


def drop_vectors(session: Session, write: m.DropVectors) -> None:
    """Every lane of another space."""
    session.all("delete from lane where shelf = ? and space not in ('', ?)", write.shelf, write.space)


OWNERS = {
    "recall": "select agent, seq from said where seq in (select value from json_each(?)) order by seq",
    "archival": "select agent, seq from passage where seq in (select value from json_each(?)) order by seq",
}

# Any: each action takes the one class that it is listed under, which a mapping's type cannot say.
ACTIONS: dict[type[object], Callable[[Session, Any], None]] = {
    m.SavePassages: save_passages,
    m.DropPassages: drop_passages,
    m.DropDocument: drop_document,
    m.SaveSaid: save_said,
    m.SaveVectors: save_vectors,
    m.DropVectors: drop_vectors,
}

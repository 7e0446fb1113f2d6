"""Passages and messages in SQL: each write of rows, together with what finds them."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from agent_core.base.errors import StorageError

from . import memory_writes as m
from . import vector_index, word_index
from .connection import SqlSession, dump
from .lanes import Key, numbers


def save_passages(session: SqlSession, write: m.SavePassages) -> None:
    """Keep the passages that are new."""
    fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for passage in write.passages:
        seq = _insert_passage(session, passage)
        if seq is not None:
            fresh[passage.agent].append((seq, passage.words))
    for agent, rows in fresh.items():
        word_index.add(session, Key(agent, "archival"), rows)


def _insert_passage(session: SqlSession, passage: m.PassageRow) -> int | None:
    row = session.one(
        "insert into passage (id, agent, text, words, at, tags, source, place, document, n)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning seq",
        *(passage.id, passage.agent, passage.text, passage.words, passage.at, dump([*passage.tags])),
        *(passage.source, passage.place, passage.document, passage.n),
    )
    if row is None:
        return None
    for tag in set(passage.tags):
        session.all("insert into tag (agent, tag, passage) values (?, ?, ?)", passage.agent, tag, row[0])
    return int(row[0])


def drop_passages(session: SqlSession, write: m.DropPassages) -> None:
    """Delete passages by their ids."""
    which = "delete from passage where agent = ? and id in (select value from json_each(?)) returning seq"
    _unindex(session, write.agent, session.all(which, write.agent, json.dumps([*write.ids])))


def drop_document(session: SqlSession, write: m.DropDocument) -> None:
    """Delete a source and its passages."""
    session.all("delete from document where agent = ? and hash = ?", write.agent, write.hash)
    which = "delete from passage where agent = ? and document = ? and document <> '' returning seq"
    _unindex(session, write.agent, session.all(which, write.agent, write.hash))


def _unindex(
    session: SqlSession, agent: str, rows: Sequence[tuple[Any, ...]]
) -> None:  # Any: columns as SQLite types them
    if seqs := [row[0] for row in rows]:
        word_index.remove(session, Key(agent, "archival"), seqs)
        vector_index.remove(session, agent, "archival", seqs)


def save_said(session: SqlSession, write: m.SaveSaid) -> None:
    """Keep the messages that are new."""
    fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for said in write.rows:
        row = session.one(
            "insert into said (seq, agent, n, text, words, at, speaker, session, length, asks, timed, turn)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning seq",
            *(said.seq, said.agent, said.n, said.text, said.words, said.at, said.speaker),
            *(said.session, said.length, said.asks, said.timed, said.turn),
        )
        if row:
            fresh[said.agent].append((said.seq, said.words))
    for agent, rows in fresh.items():
        word_index.add(session, Key(agent, "recall"), rows)


def save_vectors(session: SqlSession, write: m.SaveVectors) -> None:
    """Keep the vectors of rows that are there."""
    if not write.space:
        raise StorageError("A space of vectors needs a name.")
    given = dict(write.vectors)
    owners: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for agent, seq in session.all(_OWNERS[write.shelf], numbers([*given])):
        owners[agent].append((seq, given[seq]))
    for agent, vectors in owners.items():
        vector_index.save(session, Key(agent, write.shelf, write.space), vectors)


def drop_vectors(session: SqlSession, write: m.DropVectors) -> None:
    """Delete the vectors of every other space."""
    session.all("delete from lane where shelf = ? and space not in ('', ?)", write.shelf, write.space)
    vector_index.sweep(session)


_OWNERS = {
    "recall": "select agent, seq from said where seq in (select value from json_each(?)) order by seq",
    "archival": "select agent, seq from passage where seq in (select value from json_each(?)) order by seq",
}

# Any: each action takes the one class that it is listed under, which a mapping's type cannot say.
ACTIONS: dict[type[object], Callable[[SqlSession, Any], None]] = {
    m.SavePassages: save_passages,
    m.DropPassages: drop_passages,
    m.DropDocument: drop_document,
    m.SaveSaid: save_said,
    m.SaveVectors: save_vectors,
    m.DropVectors: drop_vectors,
}

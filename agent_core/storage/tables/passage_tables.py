"""The tables of passages, sources, indexed messages and vectors: each row is written together with its index.

The search module is imported at the first search.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from agent_core.base.errors import StorageError

from ..memory_store import (
    CopyDocument,
    Counts,
    DocumentRow,
    DropDocument,
    DropPassages,
    DropVectors,
    Hit,
    PassageRow,
    RecallMessage,
    SaveDocument,
    SavePassages,
    SaveSaid,
    SaveVectors,
    Shelf,
)
from ..subject import dump, parse_row
from . import word_index
from .lanes import lane, numbers, spaces
from .session import Key, SqlSession
from .tables import Tables, perform, query

_HOW_MANY = "select count(*) from said"
_SAID = "select seq, agent, n, text, words, at, speaker, session, length, asks, timed, turn from said"
_PASSAGES = "select id, agent, text, words, at, tags, source, place, document, n, seq from passage"
_TEXTS = {"recall": "select seq, text from said as r", "archival": "select seq, text from passage as r"}
_AMONG = "in (select cast(value as integer) from json_each(?))"
FEW_IDS = 10
_OWNERS = {
    "recall": f"select agent, seq from said where seq {_AMONG} order by seq",  # noqa: S608  (our own text)
    "archival": f"select agent, seq from passage where seq {_AMONG} order by seq",  # noqa: S608  (as above)
}


class PassageTables(Tables):
    """The rows that are searched."""

    @query
    def memory_counts(self, session: SqlSession, agent: str) -> Counts:
        """Return the counts, which the lanes maintain."""
        return _counts(session, agent)

    @query
    def messages(self, session: SqlSession, agent: str, seqs: Collection[int]) -> list[RecallMessage]:
        """Return messages by `seq`."""
        # The empty text keeps the planner from scanning all rows of the agent.
        rows = session.all(f"{_SAID} where seq {_AMONG} and agent || '' = ? order by seq", numbers([*seqs]), agent)
        return [_said_of(row) for row in rows]

    @query
    def messages_beside(self, session: SqlSession, agent: str, places: Collection[int]) -> list[RecallMessage]:
        """Return messages by position."""
        rows = session.all(f"{_SAID} where agent = ? and n {_AMONG} order by n, seq", agent, numbers([*places]))
        return [_said_of(row) for row in rows]

    @query
    def messages_between(
        self, session: SqlSession, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[RecallMessage]]:
        """Return messages by time."""
        where, span = "where agent = ? and at >= ? and at < ?", (start, end)
        total = session.all(f"{_HOW_MANY} {where}", agent, *span)[0][0]
        rows = session.all(f"{_SAID} {where} order by at, seq limit ? offset ?", agent, *span, limit, offset)
        return total, [_said_of(row) for row in rows]

    @query
    def last_message(self, session: SqlSession, agent: str) -> RecallMessage | None:
        """Return the message with the highest `seq`: positions are assigned in this order."""
        row = session.one(f"{_SAID} where agent = ? order by n desc, seq desc limit 1", agent)
        return _said_of(row) if row else None

    @query
    def passages(self, session: SqlSession, seqs: Collection[int]) -> list[PassageRow]:
        """Return passages by `seq`."""
        return [_passage(row) for row in session.all(f"{_PASSAGES} where seq {_AMONG} order by seq", numbers([*seqs]))]

    @query
    def list_passages(
        self, session: SqlSession, agent: str, tag: str, offset: int, limit: int
    ) -> tuple[int, list[PassageRow]]:
        """Return passages, newest first."""
        if not tag:
            rows = session.all(f"{_PASSAGES} where agent = ? order by seq desc limit ? offset ?", agent, limit, offset)
            return _counts(session, agent).passages, [_passage(row) for row in rows]
        total = session.all("select count(*) from tag where agent = ? and tag = ?", agent, tag)[0][0]
        chosen = "select passage from tag where agent = ? and tag = ? order by passage desc limit ? offset ?"
        rows = session.all(f"{_PASSAGES} where seq in ({chosen}) order by seq desc", agent, tag, limit, offset)
        return total, [_passage(row) for row in rows]

    @query
    def passage_ids(self, session: SqlSession, agent: str, begins: str) -> list[str]:
        """Return a few ids with this prefix."""
        rows = session.all(
            "select id from passage where agent = ? and id >= ? and substr(id, 1, length(?)) = ? order by id limit ?",
            *(agent, begins, begins, begins, FEW_IDS),
        )
        return [row[0] for row in rows]

    @query
    def documents(self, session: SqlSession, agent: str) -> list[DocumentRow]:
        """Return documents, oldest first."""
        rows = session.all(
            "select hash, agent, name, kind, at, done, total, complete from document where agent = ? order by seq",
            agent,
        )
        found = [DocumentRow(*row) for row in rows]
        return [replace(document, complete=bool(document.complete)) for document in found]

    @query
    def unembedded(self, session: SqlSession, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
        """Return rows without a vector, for each agent that has fewer vectors than rows."""
        rows: list[tuple[int, str]] = []
        short = (
            "select w.agent, w.rows - coalesce(v.rows, 0) as missing, v.id from lane w left join lane v"
            " on v.agent = w.agent and v.shelf = w.shelf and v.space = ? where w.shelf = ? and w.space = ''"
            " and w.rows > coalesce(v.rows, 0)"
        )
        for agent, missing, vectors in session.all(short, space, shelf):
            rows += _missing(session, _TEXTS[shelf], agent, vectors, min(missing, limit))
        return sorted(rows)[:limit]

    @query
    def search_words(
        self, session: SqlSession, shelf: Shelf, agent: str, words: Sequence[str], limit: int
    ) -> list[Hit]:
        """Return the best rows by words."""
        from . import searching  # noqa: PLC0415 - only a search pays for the import

        return searching.words(session, shelf, agent, words, limit)

    @query
    def search_vector(
        self, session: SqlSession, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int
    ) -> list[Hit]:
        """Return the best rows by meaning."""
        return session.vectors.nearest(session, Key(agent, shelf, space), vector, limit)

    @query
    def cosines(
        self, session: SqlSession, shelf: Shelf, agent: str, space: str, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:
        """Return the cosines of given rows."""
        return session.vectors.cosines(session, Key(agent, shelf, space), vector, seqs)

    @query
    def vector_trouble(self, session: SqlSession) -> str:
        """Return why vectors cannot be searched."""
        return session.vectors.trouble(session)


def _counts(session: SqlSession, agent: str) -> Counts:
    """Return the counts, which the lanes maintain."""
    lanes = [lane(session, Key(agent, shelf)) for shelf in ("recall", "archival")]
    messages, passages = (lane_row.rows if lane_row else 0 for lane_row in lanes)
    edited = session.all(
        "select coalesce(max(b.edited), 0.0) from holding h join block b on b.id = h.block"
        " where h.agent = ? and h.attached and b.version > 1",
        agent,
    )[0][0]
    last = session.one("select seq from said where agent = ? order by n desc, seq desc limit 1", agent)
    return Counts(messages, passages, edited, last[0] if last else 0)


def _missing(session: SqlSession, texts: str, agent: str, vectors: int | None, count: int) -> list[tuple[int, str]]:
    """Return the rows after the last one with a vector; if they are too few, search all rows."""
    last = session.all("select coalesce(max(seq), 0) from vector where lane = ?", vectors)[0][0]
    rows = session.all(f"{texts} where agent = ? and seq > ? order by seq limit ?", agent, last, count)
    if len(rows) < count:
        without = "not exists (select 1 from vector where lane = ? and seq = r.seq)"
        rows = session.all(f"{texts} where agent = ? and {without} order by seq limit ?", agent, vectors, count)
    return [(seq, text) for seq, text in rows]


def _said_of(row: tuple[Any, ...]) -> RecallMessage:  # Any: columns as SQLite types them
    *columns, asks, timed, turn = row
    columns += [bool(asks), bool(timed), turn]
    return RecallMessage(*columns)


def _passage(row: tuple[Any, ...]) -> PassageRow:  # Any: columns as SQLite types them
    id, agent, text, words, at, tags, *columns = row
    return PassageRow(id, agent, text, words, at, tuple(parse_row(tags, [str])) if tags != "[]" else (), *columns)


@perform.register
def _save_passages(write: SavePassages, session: SqlSession) -> None:
    """Store the new passages."""
    fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
    # Of two with the same id, the first one is kept, here and by the database.
    by_id = {(passage.agent, passage.id): passage for passage in reversed(write.passages)}
    for seq, agent, id in session.many(_INSERT_PASSAGE, map(_passage_columns, write.passages)):
        passage = by_id[agent, id]
        for tag in set(passage.tags):
            session.all("insert into tag (agent, tag, passage) values (?, ?, ?)", agent, tag, seq)
        fresh[agent].append((seq, passage.words))
    for agent, rows in fresh.items():
        word_index.add(session, Key(agent, "archival"), rows)


_INSERT_PASSAGE: Final = (
    "insert into passage (id, agent, text, words, at, tags, source, place, document, n)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning seq, agent, id"
)


def _passage_columns(passage: PassageRow) -> tuple[str | float, ...]:
    tags = dump([*passage.tags]) if passage.tags else "[]"
    return (
        *(passage.id, passage.agent, passage.text, passage.words, passage.at, tags),
        *(passage.source, passage.place, passage.document, passage.n),
    )


@perform.register
def _drop_passages(write: DropPassages, session: SqlSession) -> None:
    """Delete passages by their ids."""
    which = "delete from passage where agent = ? and id in (select value from json_each(?)) returning seq"
    _unindex(session, write.agent, session.all(which, write.agent, json.dumps([*write.ids])))


@perform.register
def _drop_document(write: DropDocument, session: SqlSession) -> None:
    """Delete a source and its passages."""
    session.all("delete from document where agent = ? and hash = ?", write.agent, write.hash)
    which = "delete from passage where agent = ? and document = ? and document <> '' returning seq"
    _unindex(session, write.agent, session.all(which, write.agent, write.hash))


def _unindex(
    session: SqlSession, agent: str, rows: Sequence[tuple[Any, ...]]
) -> None:  # Any: columns as SQLite types them
    if seqs := [row[0] for row in rows]:
        word_index.remove(session, Key(agent, "archival"), seqs)
        session.vectors.remove(session, agent, "archival", seqs)


@perform.register
def _save_said(write: SaveSaid, session: SqlSession) -> None:
    """Store the new messages."""
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


@perform.register
def _save_vectors(write: SaveVectors, session: SqlSession) -> None:
    """Store the vectors of existing rows."""
    if not write.space:
        raise StorageError("A space of vectors needs a name.")
    given = dict(write.vectors)
    owners: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for agent, seq in session.all(_OWNERS[write.shelf], numbers([*given])):
        owners[agent].append((seq, given[seq]))
    for agent, vectors in owners.items():
        session.vectors.save(session, Key(agent, write.shelf, write.space), vectors)


@perform.register
def _drop_vectors(write: DropVectors, session: SqlSession) -> None:
    """Delete the vectors of every other space."""
    session.all("delete from lane where shelf = ? and space not in ('', ?)", write.shelf, write.space)
    session.vectors.sweep(session)


@perform.register
def _save_document(write: SaveDocument, session: SqlSession) -> None:
    document = write.document
    session.all(
        "insert into document (agent, hash, name, kind, at, done, total, complete) values (?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (agent, hash) do update set name = excluded.name, kind = excluded.kind, at = excluded.at,"
        " done = excluded.done, total = excluded.total, complete = excluded.complete",
        *(
            document.agent,
            document.hash,
            document.name,
            document.kind,
            document.at,
            document.done,
            document.total,
            document.complete,
        ),
    )


_COPY_DOCUMENT: Final = (
    "insert into document (agent, hash, name, kind, at, done, total, complete)"
    " select ?3, hash, name, kind, at, done, total, complete from document where agent = ?2 and hash = ?1"
)
_COPIED: Final = f"{_PASSAGES} where agent = ? and document = ? order by n"
_PAIRS: Final = (
    "select own.seq, v.vector from passage own join passage p on p.agent = ?2 and p.id = own.id"
    " join vector v on v.lane = ?4 and v.seq = p.seq where own.agent = ?3 and own.document = ?1"
)


@perform.register
def _copy_document(write: CopyDocument, session: SqlSession) -> None:
    """Copy a source: nothing is read or embedded again."""
    session.all(_COPY_DOCUMENT, write.hash, write.owner, write.agent)
    passages = [_passage(row) for row in session.all(_COPIED, write.owner, write.hash)]
    _save_passages(SavePassages(tuple(replace(passage, agent=write.agent) for passage in passages)), session)
    for key, found in spaces(session, write.owner, "archival"):
        if vectors := session.all(_PAIRS, write.hash, write.owner, write.agent, found.id):
            session.vectors.save(session, key._replace(agent=write.agent), [(seq, vector) for seq, vector in vectors])

"""Memory in the store that is searched: passages, sources, the index of messages, and vectors.

The conversation itself is the journal; `RecallMessage`s and vectors are derived from it, and recomputed if missing.
Each row is written together with its index.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from agent_core.base.errors import StorageError
from agent_core.base.records import dataclass, replace

from . import search_index
from .block_store import BlockStore
from .conversation_store import recall_scope
from .names import LOADED, agent_of
from .search_index import lane, numbers, spaces
from .subject import Removal, Write, dump, parse_row
from .tables import Hit, Key, Shelf, SqlSession, perform, query


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A piece of text in archival memory. The caller sets all but `seq`; `id` is a UUIDv7.

    `document` is the content hash of its source and `n` its index there (neighbors are n ± 1); both are empty for a
    passage that the agent inserted itself. `words` is the input of the word index: the text without stop words, with
    dates and names. `source` and `place` are its origin, as cited in an answer.
    """

    id: str
    agent: str
    text: str
    words: str
    at: float
    tags: tuple[str, ...] = ()
    source: str = ""
    place: str = ""
    document: str = ""
    n: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SavePassages(Write):
    """A write that stores passages; a passage with an existing id is skipped."""

    passages: tuple[PassageRow, ...]

    def stored_under(self) -> Iterable[str]:
        """Return the agents whose passages they are."""
        return {row.agent for row in self.passages} - {LOADED}


@dataclass(frozen=True, slots=True)
class DropPassages(Removal):
    """A write that deletes passages of an agent, with their vectors."""

    agent: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A source that was or is being read, once per agent and content hash; `done` of `total` passages are stored."""

    hash: str
    agent: str
    name: str
    kind: str
    at: float
    done: int = 0
    total: int = 0
    complete: bool = False


@dataclass(frozen=True, slots=True)
class SaveDocument(Write):
    """A write that stores the progress of reading a source; a later one of the same agent and hash replaces it."""

    document: DocumentRow

    def stored_under(self) -> Iterable[str]:
        """Return the agent that reads it."""
        return {self.document.agent} - {LOADED}


@dataclass(frozen=True, slots=True)
class CopyDocument(Write):
    """A write that gives another agent a source, with its passages and their vectors."""

    hash: str
    owner: str
    agent: str


@dataclass(frozen=True, slots=True)
class DropDocument(Removal):
    """A write that forgets a source and deletes its passages."""

    agent: str
    hash: str


@dataclass(frozen=True, slots=True)
class RecallMessage:
    """One message in the recall index; `seq` is that of its journal entry. `n` counts from 0 in its conversation.

    `agent` names the lane in which it is found, `line` its conversation. `session` rises after a long silence;
    `speaker` is user, assistant or a name. Features of the message: `length` in content words, `asks` whether it ends
    as a question, `timed` whether it names a time. `words` as in `PassageRow`.
    """

    seq: int
    agent: str
    n: int
    text: str
    words: str
    at: float
    speaker: str
    session: int = 0
    length: int = 0
    asks: bool = False
    timed: bool = False
    turn: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class SaveSaid(Write):
    """A write that indexes messages; a `seq` that is already indexed is skipped."""

    rows: tuple[RecallMessage, ...]


@dataclass(frozen=True, slots=True)
class SaveVectors(Write):
    """A write that stores vectors of a space (model and size) by `seq`, as little-endian float32; the last counts."""

    shelf: Shelf
    space: str
    vectors: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class DropVectors(Write):
    """A write that deletes the vectors of all other spaces, because the embedding model changed."""

    shelf: Shelf
    space: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of an agent's memory; `edited` is the time of its last block edit, 0 for never.

    The index of the messages of one conversation is complete up to the entry `indexed`.
    """

    messages: int
    passages: int
    edited: float
    indexed: int = 0


_HOW_MANY = "select count(*) from said"
_SAID = "select seq, agent, n, text, words, at, speaker, session, length, asks, timed, turn, line from said"
_PASSAGES = "select id, agent, text, words, at, tags, source, place, document, n, seq from passage"
_TEXTS = {
    "recall": "select seq, text from said as r",
    "archival": "select seq, text from passage as r",
}
_UNINDEXED = (
    "select line from (select t.line, t.last, coalesce((select s.seq from said s where s.line = t.line"
    " order by s.n desc, s.seq desc limit 1), 0) as done"
    " from (select line, max(seq) as last from turn where agent = ? group by line) t) u"
    " where last > done >> 20 or exists (select 1 from entry e where e.seq > done and e.seq < last + 1 << 20"
    " and e.kind in ('user', 'assistant'))"
)
_AMONG = "in (select cast(value as integer) from json_each(?))"
FEW_IDS = 10
_OWNERS = {
    "recall": f"select agent, seq from said where seq {_AMONG} order by seq",  # noqa: S608  (our own text)
    "archival": f"select agent, seq from passage where seq {_AMONG} order by seq",  # noqa: S608  (as above)
}


class MemoryStore(BlockStore):
    """The memory of agents: blocks and sections, and the rows that are searched."""

    @query
    def memory_counts(self, session: SqlSession, line: str) -> Counts:
        """Return the size of an agent's memory, as one of its conversations finds it."""
        return _counts(session, line)

    @query
    def messages(
        self, session: SqlSession, agent: str, seqs: Collection[int]
    ) -> list[RecallMessage]:
        """Return indexed messages by `seq`, in order."""
        # The empty text keeps the planner from scanning all rows of the agent.
        rows = session.all(
            f"{_SAID} where seq {_AMONG} and agent || '' = ? order by seq", numbers([*seqs]), agent
        )
        return [_said_of(row) for row in rows]

    @query
    def messages_beside(
        self, session: SqlSession, line: str, places: Collection[int]
    ) -> list[RecallMessage]:
        """Return the indexed messages of a conversation by `n`, in order: neighbors of hits."""
        rows = session.all(
            f"{_SAID} where line = ? and n {_AMONG} order by n, seq", line, numbers([*places])
        )
        return [_said_of(row) for row in rows]

    @query
    def messages_between(
        self, session: SqlSession, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[RecallMessage]]:
        """Return the number of messages from `start` until before `end`, and a page of them, oldest first."""
        where, span = "where agent = ? and at >= ? and at < ?", (start, end)
        total = session.all(f"{_HOW_MANY} {where}", agent, *span)[0][0]
        rows = session.all(
            f"{_SAID} {where} order by at, seq limit ? offset ?", agent, *span, limit, offset
        )
        return total, [_said_of(row) for row in rows]

    @query
    def last_message(self, session: SqlSession, line: str) -> RecallMessage | None:
        """Return the newest indexed message of a conversation, by its position; the index is complete up to it."""
        row = session.one(f"{_SAID} where line = ? order by n desc, seq desc limit 1", line)
        return _said_of(row) if row else None

    @query
    def unindexed_lines(self, session: SqlSession, line: str) -> list[str]:
        """Return the conversations in the lane of one that may have messages that are not indexed yet, and itself."""
        scope = recall_scope(session, line)
        if scope != agent_of(line):
            return [line]
        lines = [row[0] for row in session.all(_UNINDEXED, scope) if row[0] != line]
        return [line, *(each for each in lines if recall_scope(session, each) == scope)]

    @query
    def passages(self, session: SqlSession, seqs: Collection[int]) -> list[PassageRow]:
        """Return passages by `seq`, in order."""
        return [
            _passage(row)
            for row in session.all(f"{_PASSAGES} where seq {_AMONG} order by seq", numbers([*seqs]))
        ]

    @query
    def list_passages(
        self, session: SqlSession, agent: str, tags: Collection[str], offset: int, limit: int
    ) -> tuple[int, list[PassageRow]]:
        """Return the number of an agent's passages that have all of these tags, and a page of them, newest first."""
        if not tags:
            rows = session.all(
                f"{_PASSAGES} where agent = ? order by seq desc limit ? offset ?",
                agent,
                limit,
                offset,
            )
            passages = lane(session, Key(agent, "archival"))
            return passages.rows if passages else 0, [_passage(row) for row in rows]
        seqs = _tagged(session, agent, tags)
        page = numbers(seqs[offset : offset + limit])
        rows = session.all(f"{_PASSAGES} where seq {_AMONG} order by seq desc", page)
        return len(seqs), [_passage(row) for row in rows]

    @query
    def tagged(self, session: SqlSession, agent: str, tags: Collection[str]) -> list[int]:
        """Return the `seq` of an agent's passages that have all of these tags, newest first."""
        return _tagged(session, agent, tags)

    @query
    def passage_ids(self, session: SqlSession, agent: str, begins: str) -> list[str]:
        """Return the ids of the agent's passages with this prefix; at most ten."""
        rows = session.all(
            "select id from passage where agent = ? and id >= ? and substr(id, 1, length(?)) = ? order by id limit ?",
            *(agent, begins, begins, begins, FEW_IDS),
        )
        return [row[0] for row in rows]

    @query
    def documents(self, session: SqlSession, agent: str) -> list[DocumentRow]:
        """Return the sources of an agent, oldest first."""
        rows = session.all(
            "select hash, agent, name, kind, at, done, total, complete from document where agent = ? order by seq",
            agent,
        )
        found = [DocumentRow(*row) for row in rows]
        return [replace(document, complete=bool(document.complete)) for document in found]

    @query
    def unembedded(
        self, session: SqlSession, shelf: Shelf, space: str, limit: int
    ) -> list[tuple[int, str]]:
        """Return (`seq`, text) of rows without a vector of this space, oldest first."""
        rows: list[tuple[int, str]] = []
        short = (
            "select w.agent, w.rows - coalesce(v.rows, 0) as missing, v.id from lane w left join lane v"
            " on v.agent = w.agent and v.shelf = w.shelf and v.space = ? where w.shelf = ? and w.space = ''"
            " and w.rows > coalesce(v.rows, 0)"
        )
        texts = _TEXTS[shelf]
        for agent, missing, vectors in session.all(short, space, shelf):
            # Usually the rows after the last one with a vector; if these are too few, search all rows.
            count = min(missing, limit)
            last = session.all("select coalesce(max(seq), 0) from vector where lane = ?", vectors)[
                0
            ][0]
            new = session.all(
                f"{texts} where agent = ? and seq > ? order by seq limit ?", agent, last, count
            )
            if len(new) < count:
                without = "not exists (select 1 from vector where lane = ? and seq = r.seq)"
                new = session.all(
                    f"{texts} where agent = ? and {without} order by seq limit ?",
                    agent,
                    vectors,
                    count,
                )
            rows += [(seq, text) for seq, text in new]
        return sorted(rows)[:limit]

    @query
    def search_words(
        self,
        session: SqlSession,
        shelf: Shelf,
        agent: str,
        words: Sequence[str],
        limit: int,
        candidates: Sequence[int] | None = None,
    ) -> list[Hit]:
        """Return the rows with any of these words (stemmed alike), best first; `candidates` restricts them.

        `words` has no stop words.
        """
        return search_index.search_words(session, Key(agent, shelf), words, limit, candidates)

    @query
    def search_vector(
        self, session: SqlSession, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int
    ) -> list[Hit]:
        """Return the rows nearest to a vector, by cosine, best first."""
        return session.index.nearest(session, Key(agent, shelf, space), vector, limit)

    @query
    def cosines(
        self,
        session: SqlSession,
        shelf: Shelf,
        agent: str,
        space: str,
        vector: bytes,
        seqs: Collection[int],
    ) -> dict[int, float]:
        """Return the cosine of each of these rows that has a vector."""
        return session.index.cosines(session, Key(agent, shelf, space), vector, seqs)

    @query
    def vector_trouble(self, session: SqlSession) -> str:
        """Return the reason why vectors cannot be searched; "" if they can."""
        return session.index.trouble(session)


def _counts(session: SqlSession, line: str) -> Counts:
    """Return the counts, which the lanes maintain."""
    agent = agent_of(line)
    keys = (Key(recall_scope(session, line), "recall"), Key(agent, "archival"))
    lanes = [lane(session, key) for key in keys]
    messages, passages = (lane_row.rows if lane_row else 0 for lane_row in lanes)
    edited = session.all(
        "select coalesce(max(b.edited), 0.0) from holding h join block b on b.id = h.block"
        " where h.agent = ? and h.attached and b.version > 1",
        agent,
    )[0][0]
    last = session.one(
        "select seq from said where line = ? order by n desc, seq desc limit 1", line
    )
    return Counts(messages, passages, edited, last[0] if last else 0)


def _tagged(session: SqlSession, agent: str, tags: Collection[str]) -> list[int]:
    rows = session.all(
        "select passage from tag where agent = ? and tag in (select value from json_each(?))"
        " group by passage having count(*) = ? order by passage desc",
        *(agent, dump([*tags]), len({*tags})),
    )
    return [row[0] for row in rows]


def _said_of(row: tuple[Any, ...]) -> RecallMessage:  # Any: columns as SQLite types them
    *columns, asks, timed, turn, line = row
    columns += [bool(asks), bool(timed), turn, line]
    return RecallMessage(*columns)


def _passage(row: tuple[Any, ...]) -> PassageRow:  # Any: columns as SQLite types them
    id, agent, text, words, at, tags, *columns = row
    return PassageRow(
        id, agent, text, words, at, tuple(parse_row(tags, [str])) if tags != "[]" else (), *columns
    )


@perform.register
def _save_passages(save: SavePassages, session: SqlSession) -> None:
    """Store the new passages."""
    fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
    # Of two with the same id, the first one is kept, here and by the database.
    by_id = {(passage.agent, passage.id): passage for passage in reversed(save.passages)}
    for seq, agent, id in session.many(_INSERT_PASSAGE, map(_passage_columns, save.passages)):
        passage = by_id[agent, id]
        for tag in set(passage.tags):
            session.all("insert into tag (agent, tag, passage) values (?, ?, ?)", agent, tag, seq)
        fresh[agent].append((seq, passage.words))
    for agent, rows in fresh.items():
        search_index.add_words(session, Key(agent, "archival"), rows)


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
def _drop_passages(drop: DropPassages, session: SqlSession) -> None:
    """Delete passages by their ids."""
    which = "delete from passage where agent = ? and id in (select value from json_each(?)) returning seq"
    _unindex(session, drop.agent, session.all(which, drop.agent, dump([*drop.ids])))


@perform.register
def _drop_document(drop: DropDocument, session: SqlSession) -> None:
    """Delete a source and its passages."""
    session.all("delete from document where agent = ? and hash = ?", drop.agent, drop.hash)
    which = "delete from passage where agent = ? and document = ? and document <> '' returning seq"
    _unindex(session, drop.agent, session.all(which, drop.agent, drop.hash))


def _unindex(
    session: SqlSession, agent: str, rows: Sequence[tuple[Any, ...]]
) -> None:  # Any: columns as SQLite types them
    if seqs := [row[0] for row in rows]:
        search_index.remove_words(session, Key(agent, "archival"), seqs)
        session.index.remove(session, agent, "archival", seqs)


@perform.register
def _save_said(save: SaveSaid, session: SqlSession) -> None:
    """Store the new messages."""
    fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for said in save.rows:
        row = session.one(
            "insert into said (seq, agent, n, text, words, at, speaker, session, length, asks, timed, turn, line)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning seq",
            *(said.seq, said.agent, said.n, said.text, said.words, said.at, said.speaker),
            *(said.session, said.length, said.asks, said.timed, said.turn, said.line),
        )
        if row:
            fresh[said.agent].append((said.seq, said.words))
    for agent, rows in fresh.items():
        search_index.add_words(session, Key(agent, "recall"), rows)


@perform.register
def _save_vectors(save: SaveVectors, session: SqlSession) -> None:
    """Store the vectors of existing rows."""
    if not save.space:
        raise StorageError("A space of vectors needs a name.")
    given = dict(save.vectors)
    owners: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for agent, seq in session.all(_OWNERS[save.shelf], numbers([*given])):
        owners[agent].append((seq, given[seq]))
    for agent, vectors in owners.items():
        session.index.save(session, Key(agent, save.shelf, save.space), vectors)


@perform.register
def _drop_vectors(drop: DropVectors, session: SqlSession) -> None:
    """Delete the vectors of every other space."""
    session.all("delete from lane where shelf = ? and space not in ('', ?)", drop.shelf, drop.space)
    session.index.sweep(session)


@perform.register
def _save_document(save: SaveDocument, session: SqlSession) -> None:
    document = save.document
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
def _copy_document(copy: CopyDocument, session: SqlSession) -> None:
    """Copy a source: nothing is read or embedded again."""
    session.all(_COPY_DOCUMENT, copy.hash, copy.owner, copy.agent)
    passages = [_passage(row) for row in session.all(_COPIED, copy.owner, copy.hash)]
    _save_passages(
        SavePassages(tuple(replace(passage, agent=copy.agent) for passage in passages)), session
    )
    for key, found in spaces(session, copy.owner, "archival"):
        if vectors := session.all(_PAIRS, copy.hash, copy.owner, copy.agent, found.id):
            session.index.save(
                session, key._replace(agent=copy.agent), [(seq, vector) for seq, vector in vectors]
            )

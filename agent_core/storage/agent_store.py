"""Agents in the store: their settings, and complete agents as values, each read and written in one transaction.

A complete agent has positions instead of entry numbers: entries are counted through all turns from 1, and a summary's
`upto` is such a count. Ids that are globally unique (turns, blocks) are kept where they are free, and replaced where
they are taken. Derived data (the recall index, vectors) is created again by the code that needs it.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar, overload

from agent_core.base.errors import StorageError
from agent_core.base.records import dataclass, field, replace

from . import search_index
from .block_store import (
    BlockAccess,
    BlockChange,
    BlockRow,
    SectionRow,
    access_of,
    block_of,
    give_block,
    history_of,
    sections_of,
)
from .conversation_store import (
    MAIN,
    ConversationRow,
    SaveDoor,
    add_conversation,
    hide_conversation,
    id_of,
    line_of,
    lines_closed_to,
    put_conversation,
)
from .function_store import JoinOwnSet
from .inbox import Inbound
from .journal import MessageEntry, NoticeEntry, write_entry
from .memory_store import DocumentRow, PassageRow, SaveDocument, SavePassages
from .names import agent_named, agent_of, is_line, is_main, line_named
from .subject import SETTINGS, Entry, Misfit, Removal, SaveText, Write, dump, parse_row, rows_of
from .tables import Key, SqlSession, Tables, apply, change, drop_texts, perform, query, text_hashes
from .thread_store import leave_threads
from .turn_store import IMPORTED, N_BITS, SUMMARY

HELPER_RUN = "helper--"
"""The prefix of the names of agents that are runs of helpers."""
PASSING = "once--"
"""The prefix of the name of an agent that is deleted after one question; a later answer could not reach it."""
_TOLD = ("user", "notice", "assistant", "result", "summary")
_PORTION_ENTRIES = 200
"""How many entries of a conversation that was elsewhere are stored before others have their turn, and a few more."""


T = TypeVar("T")


class Made(Sequence[T]):
    """A sequence of rows, each converted to a value on access.

    Rows are plain tuples, which the garbage collector does not traverse: with very many values, it would cause long
    pauses.
    """

    __slots__ = ("_make", "_rows")

    def __init__(
        self, rows: tuple[tuple[Any, ...], ...], make: Callable[..., T]
    ) -> None:  # Any: columns
        self._rows = rows
        self._make = make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> "Made[T]": ...
    def __getitem__(self, at: int | slice) -> "T | Made[T]":
        return (
            Made(self._rows[at], self._make)
            if isinstance(at, slice)
            else self._make(*self._rows[at])
        )


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent that has had a turn: the number of turns, the start of the last one, and the number of hidden ones."""

    name: str
    turns: int
    last_at: float
    hidden: int


@dataclass(frozen=True, slots=True)
class AgentCounts:
    """How much was said to and by an agent, how many passages it has, and when its last turn began, if it had one."""

    turns: int
    hidden_turns: int
    messages: int
    summaries: int
    passages: int
    last_at: float | None


@dataclass(frozen=True, slots=True)
class SaveAgent(Write):
    """A write that stores an agent's settings, as JSON: preset, memory class, style of summaries."""

    agent: str
    settings: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropAgent(Removal):
    """A write that deletes an agent: its conversation, memory, passages, sources, pins, and runs of helpers.

    Its recorded calls and the texts that only its entries name go, too. Shared blocks stay, and the recorded calls of
    the turns that `come_back`.
    """

    agent: str
    come_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """An event that arrived for an agent. `due` None means at once."""

    kind: str
    payload: dict[str, Any] | str  # Any: JSON
    at: float
    key: str | None = None
    due: float | None = None


@dataclass(frozen=True, slots=True)
class EntryText(Entry):
    """An entry to import, whose payload is already JSON `text` that is stored without parsing.

    A summary's `upto` is separate, because it is the only part that changes on import.
    """

    text: str = "{}"
    upto: int | None = None


@dataclass(frozen=True, slots=True)
class WholeTurn:
    """A turn: its journal, and the events that it took; the first one began it. `conversation` is the id of its own."""

    id: str
    state: str
    started: float
    ended: float | None
    events: Sequence[WholeEvent]
    entries: Sequence[Entry]
    hidden: bool = False
    conversation: str = MAIN


@dataclass(frozen=True, slots=True)
class WholeConversation:
    """A conversation by its id. A branch has its `parent` up to the entry at a position, but the `left_out` turns."""

    id: str
    name: str
    renamed: bool
    began: float
    origin: str = ""
    parent: str = ""
    upto: int = 0
    left_out: tuple[str, ...] = ()
    deleted: float | None = None


@dataclass(frozen=True, slots=True)
class WholeBlock:
    """A block with its history and access rights. An unattached block belonged to the agent earlier."""

    row: BlockRow
    history: tuple[BlockChange, ...]
    attached: bool = True
    readers: tuple[str, ...] = ("*",)
    writers: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class WholeAgent:
    """All stored data of an agent except derived data. `texts` maps the hashes in its entries to the texts."""

    name: str
    settings: dict[str, Any] | None = None  # Any: JSON
    turns: Sequence[WholeTurn] = ()
    inbox: tuple[WholeEvent, ...] = ()
    blocks: tuple[WholeBlock, ...] = ()
    sections: tuple[SectionRow, ...] = ()
    passages: Sequence[PassageRow] = ()
    documents: tuple[DocumentRow, ...] = ()
    pins: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    conversations: tuple[WholeConversation, ...] = ()


def text_names(entry: Entry) -> Iterator[str]:
    """Return the hashes of the texts that an entry refers to: its own full text, or the parts of a request."""
    if entry.kind == "request":
        sections = entry.payload.get("sections")
        names = [
            entry.payload.get("instructions"),
            *(sections if isinstance(sections, list) else ()),
        ]
    else:
        names = [entry.payload.get("whole")] if entry.kind in _TOLD else []
    return (name for name in names if isinstance(name, str) and name)


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of an import: the new ids of turns and blocks by their ids in the file, and reused shared blocks."""

    turns: dict[str, str]
    blocks: dict[str, str]
    attached: tuple[str, ...]


_TABLES = {
    "turn": "agent",
    "event": "agent",
    "conversation": "agent",
    "agent": "name",
    "holding": "agent",
    "section": "agent",
} | {
    "passage": "agent",
    "document": "agent",
    "own_set": "agent",
}


_RUNS_OF_HELPERS = "select name, settings from agent where substr(name, 1, 8) = 'helper--'"
_TURN_ENTRIES = (
    "select e.seq from turn t join entry e on e.seq between t.seq << 20 and (t.seq "
    "+ 1 << 20) - 1 where t.agent = ?"
)
_HAS_LINE = "(line = ?1 or (line > ?1 || '/' and line < ?1 || '0'))"
_LINES_BUT = "agent = ? and line not in (select value from json_each(?))"
_TURN_COUNTS = (
    "select count(*), coalesce(sum(case when hidden then 1 else 0 end), 0), max(started)"  # noqa: S608
    f" from turn where {_LINES_BUT}"
)
_ENTRY_COUNTS = (
    "select entry.kind, count(*) from turn join entry on entry.seq >= turn.seq << ?3"
    " and entry.seq < turn.seq + 1 << ?3 where turn.agent = ?1"
    " and turn.line not in (select value from json_each(?2)) group by entry.kind"
)
_WAITING_BUT = (
    "agent = ? and turn is null and line not in (select value from json_each(?)) order by due, seq"
)
_ALL_OF_AN_AGENT = (
    "delete from block where not shared and id in (select block from holding where agent = ?1)"
    " and not exists (select 1 from holding where block = id and agent <> ?1)",
    "delete from holding where agent = ?",
    "delete from section where agent = ?",
    "delete from passage where agent = ?",
    "delete from document where agent = ?",
    f"delete from said where {_HAS_LINE}",  # noqa: S608  (our own text)
    "delete from lane where agent = ?1 or (agent > ?1 || '/' and agent < ?1 || '0')",  # 0 follows the slash
    "delete from conversation where agent = ?",
    "delete from own_set where agent = ?",
    "delete from seen where agent = ?",
    "delete from question where agent = ?",
    "delete from made where agent = ?",
    "update spent set line = ?1 || '/' where agent = ?1",  # what it spent stays spent, also by the next of its name
    "delete from approval where function = 'agent:' || ?",  # of the folders that its functions may read
    "delete from agent where name = ?",
    f"delete from entry where seq in ({_TURN_ENTRIES})",  # noqa: S608  (our own text)
    "update event set turn = null where agent = ?",
    "delete from turn where agent = ?",
    "delete from event where agent = ?",
)
_LINE_ENTRIES = _TURN_ENTRIES.replace("t.agent", "t.line")
_LINE_DELETIONS = (  # of a conversation, or of a text with a slash that an earlier version took for an agent's name
    f"delete from entry where seq in ({_LINE_ENTRIES})",  # noqa: S608  (our own text)
    "update event set turn = null where line = ?",
    "delete from turn where line = ?",
    "delete from event where line = ?",
    "delete from conversation where line = ?",
)


_RECORDED = (
    "delete from recorded where turn in (select id from turn where agent = ?)"
    " and turn not in (select value from json_each(?))"
)
_TURNS_OF = "select id from turn where line = ?"
_CONVERSATION_DELETIONS = (
    f"delete from recorded where turn in ({_TURNS_OF})",  # noqa: S608  (our own text)
    f"delete from question where turn in ({_TURNS_OF})",  # noqa: S608  (our own text)
    "delete from said where line = ?",
    "delete from lane where agent = ?",
    *_LINE_DELETIONS,
)
_PASSAGES = "select id, text, words, at, tags, source, place, document, n from passage where agent = ? order by seq"
_DOCUMENTS = (
    "select hash, name, kind, at, done, total, complete from document where agent = ? order by seq"
)
_HOLDINGS = (
    "select h.attached, b.id, b.label, b.value, b.chars, b.description, b.read_only, b.shared, h.position,"
    " b.version, b.edited from holding h join block b on b.id = h.block where h.agent = ?"
    " order by h.attached desc, h.position, b.label, b.id"
)


class AgentStore(Tables):
    """Agents, their settings, and the queries for moving them."""

    @query
    def agent_settings(self, session: SqlSession, agent: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the saved settings of an agent; None if none were saved."""
        row = session.one("select settings from agent where name = ?", agent)
        return parse_row(row[0], SETTINGS) if row else None

    @query
    def agents_with(
        self, session: SqlSession, prefix: str, text: str
    ) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return the settings of the agents whose names begin with a prefix, if the settings contain a text.

        The characters `%` and `_` in the text are wildcards.
        """
        sql = "select name, settings from agent where name >= ? and name < ? and settings like ?"
        rows = session.all(
            sql, prefix, f"{prefix}\U0010ffff", f"%{text}%"
        )  # by bytes in both databases
        found: dict[str, dict[str, Any]] = {}  # Any: JSON
        for name, settings in rows:
            with rows_of(name):
                found[name] = parse_row(settings, SETTINGS)
        return found

    @query
    def agents(self, session: SqlSession) -> list[AgentRow]:
        """Return the agents that have had a turn, by name."""
        rows = session.all(
            "select agent, count(*), max(started), count(*) filter (where hidden) from turn group by agent order by 1"
        )
        return [AgentRow(*row) for row in rows]

    @query
    def has_agent(self, session: SqlSession, name: str) -> bool:
        """Return whether anything is stored for an agent of that name."""
        return not name.startswith("@") and _exists(session, name)

    @query
    def agent_names(self, session: SqlSession) -> list[str]:
        """Return the names of all agents that have stored data."""
        union = " union ".join(f"select {key} from {table}" for table, key in _TABLES.items())  # noqa: S608
        return sorted(str(name) for (name,) in session.all(union) if not str(name).startswith("@"))

    @query
    def agent_counts(
        self, session: SqlSession, agent: str, *, token: str | None = None
    ) -> AgentCounts:
        """Count what an agent has; with a `token`, without conversations that are private to another one."""
        with session.snapshot():
            left_out = dump([*lines_closed_to(session, agent, token)])
            turns, hidden, last = session.one(_TURN_COUNTS, agent, left_out) or (0, 0, None)
            said: dict[str, int] = dict(session.all(_ENTRY_COUNTS, agent, left_out, N_BITS))
            passages = session.one("select count(*) from passage where agent = ?", agent) or (0,)
            messages = said.get("user", 0) + said.get("assistant", 0)
            return AgentCounts(turns, hidden, messages, said.get(SUMMARY, 0), passages[0], last)

    @query
    def read_agent(
        self,
        session: SqlSession,
        agent: str,
        *,
        token: str | None = None,
        has_contents: bool = True,
    ) -> WholeAgent | None:
        """Return all stored data of an agent, or None if there is none.

        With a `token`, without the conversations that are private to another one; without its contents, all but
        turns and passages.
        """
        with session.snapshot():
            if not _exists(session, agent):
                return None
            left_out = dump(
                [*lines_closed_to(session, agent, token), *_impossible_lines(session, agent)]
            )
            settings = session.one("select settings from agent where name = ?", agent)
            counted = list[int]()
            turns = tuple(_turns(session, agent, counted, left_out)) if has_contents else ()
            named = {name for turn in turns for entry in turn.entries for name in text_names(entry)}
            texts = [
                (name, session.one("select text from text where hash = ?", name))
                for name in sorted(named)
            ]
            pins = session.all(
                "select function from own_set where agent = ? order by function", agent
            )
            blocks = []
            for attached, *columns in session.all(_HOLDINGS, agent):
                row = block_of(tuple(columns))
                access, history = access_of(session, row.id), tuple(history_of(session, row.id))
                is_attached = bool(attached) and access.may_read(agent)
                blocks.append(WholeBlock(row, history, is_attached, access.readers, access.writers))
            return WholeAgent(
                agent,
                parse_row(settings[0], dict) if settings else None,
                turns,
                tuple(_events(session, _WAITING_BUT, agent, left_out)),
                tuple(blocks),
                tuple(sections_of(session, agent)),
                tuple(
                    PassageRow(id, agent, text, words, at, tuple(parse_row(tags, [str])), *columns)
                    for id, text, words, at, tags, *columns in (
                        session.all(_PASSAGES, agent) if has_contents else ()
                    )
                ),
                tuple(
                    DocumentRow(hash, agent, name, kind, at, done, total, bool(complete))
                    for hash, name, kind, at, done, total, complete in session.all(
                        _DOCUMENTS, agent
                    )
                ),
                tuple(name for (name,) in pins),
                {name: row[0] for name, row in texts if row},
                tuple(_whole_conversations(session, agent, counted, left_out))
                if has_contents
                else (),
            )

    @change
    def write_agent(
        self, session: SqlSession, whole: WholeAgent, *, share: bool = False, drop: bool = False
    ) -> Moved:
        """Insert an agent. `share` reuses an existing shared block; `drop` deletes the existing agent of that name.

        A dropped agent's successor keeps its shared blocks: access that existed before is no new right.

        Raises:
            StorageError: there is an agent of that name; nothing was written.
            UsageError: no agent can have the name, or no conversation an id in it.
        """
        agent_named(whole.name)
        attached = {
            row[0]
            for row in session.all(
                "select block from holding where agent = ? and attached", whole.name
            )
        }
        if drop:
            apply(session, [DropAgent(whole.name, tuple(turn.id for turn in whole.turns))])
        if _exists(session, whole.name):
            raise StorageError(f"There is an agent `{whole.name}` already.")
        turns = {turn.id: _free(session, "turn", turn.id) for turn in whole.turns}
        blocks = {block.row.id: _free(session, "block", block.row.id) for block in whole.blocks}
        shared = [
            block
            for block in whole.blocks
            if block.row.shared and (share or block.row.id in attached)
        ]
        is_there = "select 1 from block where id = ? and shared"
        had = [block for block in shared if session.one(is_there, block.row.id)]
        blocks |= {block.row.id: block.row.id for block in had}
        apply(session, _writes(whole))
        for section in whole.sections:  # a `SaveSection` write would change their time of editing
            session.all(
                "insert into section (agent, name, position, text, chars, edited) values (?, ?, ?, ?, ?, ?)",
                *(
                    whole.name,
                    section.name,
                    section.position,
                    section.text,
                    section.limit,
                    section.edited,
                ),
            )
        counted = _put_turns(session, whole, turns)
        _put_conversations(session, whole, turns, counted)
        for block in whole.blocks:
            if block not in had:
                _put_block(session, block, blocks[block.row.id], turns)
                # It belongs to the imported agent, no matter who wrote its first line.
                access = BlockAccess(whole.name, block.readers, block.writers)
                give_block(session, blocks[block.row.id], access)
            session.all(
                "insert into holding (agent, block, position, attached) values (?, ?, ?, ?)",
                *(whole.name, blocks[block.row.id], block.row.position, block.attached),
            )
        if whole.inbox:
            heard = _as_heard(whole.inbox, session.clock.new_id())
            _put_turns(session, replace(whole, turns=(heard,)), {heard.id: heard.id})
        return Moved(turns, blocks, tuple(block.row.label for block in had))

    async def begin_with(
        self,
        agent: str,
        origin: str,
        name: str,
        turns: Sequence[WholeTurn],
        door: dict[str, Any],  # Any: JSON
    ) -> ConversationRow:
        """Begin a conversation of an agent with turns that were elsewhere, and what a door keeps of it.

        It is hidden until all of them are stored, some at a time, so that others use the store meanwhile.
        """
        row = await self._begin_hidden(agent, origin, name)
        for some in _portions(turns):
            await self._add_turns(row, some)
        return await self._show_with(row.line, door)

    @change
    def _begin_hidden(
        self, session: SqlSession, agent: str, origin: str, name: str
    ) -> ConversationRow:
        row = add_conversation(session, agent, origin, name)
        return hide_conversation(session, row.line, is_hidden=True)

    @change
    def _add_turns(
        self, session: SqlSession, row: ConversationRow, turns: Sequence[WholeTurn]
    ) -> None:
        own = [replace(turn, conversation=row.id) for turn in turns]
        ids = {turn.id: _free(session, "turn", turn.id) for turn in own}
        _put_turns(session, WholeAgent(agent_of(row.line), turns=own), ids)

    @change
    def _show_with(
        self,
        session: SqlSession,
        line: str,
        door: dict[str, Any],  # Any: JSON
    ) -> ConversationRow:
        apply(session, [SaveDoor(line, door)])
        return hide_conversation(session, line, is_hidden=False)

    @change
    def erase_conversation(self, session: SqlSession, line: str) -> bool:
        """Erase a conversation that a door began, and return whether it is gone; one with branches stays.

        What the agent has learned in it stays, too, because its memory is shared.

        Raises:
            StorageError: it is the main conversation.
        """
        if is_main(line):
            raise StorageError("The main conversation stays.", fix="Erase another one.")
        if session.one("select 1 from conversation where parent = ?", line):
            return False
        sql = f"select payload from entry where seq in ({_LINE_ENTRIES})"  # noqa: S608  (our own text)
        hashes = text_hashes(session.all(sql, line))
        turns = {id for (id,) in session.all(_TURNS_OF, line)}
        for name in _helper_runs(session, agent_of(line), turns):
            apply(session, [DropAgent(name)])
        found_by = dict[str, list[int]]()
        for finder, seq in session.all("select agent, seq from said where line = ?", line):
            found_by.setdefault(finder, []).append(seq)
        for finder, seqs in found_by.items():
            search_index.remove_words(session, Key(finder, "recall"), seqs)
            session.index.remove(session, finder, "recall", seqs)
        for sql in _CONVERSATION_DELETIONS:
            session.all(sql, line)
        drop_texts(session, hashes)
        session.index.sweep(session)
        return True


def _portions(turns: Sequence[WholeTurn]) -> Iterator[list[WholeTurn]]:
    """Yield the turns in portions, each of which is stored in moments."""
    portion = list[WholeTurn]()
    size = 0
    for turn in turns:
        portion.append(turn)
        size += len(turn.entries)
        if size >= _PORTION_ENTRIES:
            yield portion
            portion = []
            size = 0
    yield portion


def _impossible_lines(session: SqlSession, agent: str) -> list[str]:
    """Return the lines that no conversation can have: an earlier version let programs begin such ones."""
    rows = session.all(
        "select line from turn where agent = ?1 union select line from event where agent = ?1",
        agent,
    )
    return [line for (line,) in rows if not is_line(line)]


def _exists(session: SqlSession, agent: str) -> bool:
    """Check whether anything is stored for an agent of that name."""
    union = " union all ".join(
        f"select 1 from {table} where {key} = ?1"  # noqa: S608
        for table, key in _TABLES.items()
    )
    return session.one(f"select 1 where exists ({union})", agent) is not None


@perform.register
def _save_agent(save: SaveAgent, session: SqlSession) -> None:
    session.all(
        "insert into agent (name, settings) values (?, ?)"
        " on conflict (name) do update set settings = excluded.settings",
        *(save.agent, dump(save.settings)),
    )


@perform.register
def _drop_agent(drop: DropAgent, session: SqlSession) -> None:
    agents, hashes, come_back = [drop.agent], set[str](), dump([*drop.come_back])
    while agents:
        agent = agents.pop()
        of_turns = _TURN_ENTRIES if is_main(agent) else _LINE_ENTRIES
        sql = f"select payload from entry where seq in ({of_turns})"  # noqa: S608  (our own text)
        hashes |= text_hashes(session.all(sql, agent))
        session.all(_RECORDED, agent, come_back)
        search_index.remove_words_of_agent(session, agent)
        leave_threads(session, agent)
        for sql in _ALL_OF_AN_AGENT:
            session.all(sql, agent)
        for sql in () if is_main(agent) else _LINE_DELETIONS:
            session.all(sql, agent)
        agents += _helper_runs(session, agent)
    drop_texts(session, hashes)
    session.index.sweep(session)


def _helper_runs(
    session: SqlSession, agent: str, turns: Collection[str] | None = None
) -> Iterator[str]:
    """Yield the names of the runs of helpers that an agent called; with `turns`, in these alone."""
    for name, text in session.all(_RUNS_OF_HELPERS):
        with suppress(Misfit):  # a foreign row, so it is not a run of an agent
            settings = parse_row(text, dict)
            is_meant = turns is None or settings.get("turn") in turns
            if settings.get("caller") == agent and is_meant:
                yield name


def _turns(
    session: SqlSession, agent: str, counted: list[int], left_out: str
) -> Iterator[WholeTurn]:
    """Yield the turns of all conversations but those `left_out` in order, and add the numbers of their entries."""
    turns = session.all(
        "select seq, id, state, started, ended, hidden, event, line from turn where agent = ?"
        " and line not in (select value from json_each(?)) order by seq",
        agent,
        left_out,
    )
    for seq, id, state, started, ended, hidden, first, line in turns:
        events = _events(session, "turn = ? order by seq <> ?, seq", seq, first)
        entries: list[Entry] = []
        rows = session.all(
            "select seq, kind, payload, at from entry where seq between ? and ? order by seq",
            *(seq << N_BITS, (seq + 1 << N_BITS) - 1),
        )
        for n, (number, kind, payload, at) in enumerate(rows):
            counted.append(number)
            try:
                said = parse_row(payload, dict)
            except (
                Misfit
            ) as error:  # the rest of the conversation is kept, and says what is missing
                kind, said = "notice", {"text": f"[An entry was left out. {error.message}]"}
            if kind == SUMMARY and isinstance(said.get("upto"), int):
                said = {**said, "upto": bisect_right(counted, said["upto"])}
            entries.append(Entry(kind, said, n, at=at))
        told = (tuple(events), tuple(entries), bool(hidden), id_of(line))
        yield WholeTurn(id, state, started, ended, *told)


def _whole_conversations(
    session: SqlSession, agent: str, counted: Sequence[int], apart: str
) -> Iterator[WholeConversation]:
    """Yield the conversations of an agent; the entries of all its turns were counted."""
    rows = session.all(
        "select line, name, renamed, began, origin, parent, upto, hidden, deleted from conversation"
        " where agent = ? and line not in (select value from json_each(?)) order by began, line",
        agent,
        apart,
    )
    for line, name, renamed, began, origin, parent, upto, hidden, deleted in rows:
        left_out = session.all(
            "select id from turn where seq in (select cast(value as integer) from json_each(?)) order by seq",
            dump(parse_row(hidden, [int])),
        )
        yield WholeConversation(
            id_of(line),
            name,
            bool(renamed),
            began,
            origin,
            id_of(parent) if parent else "",
            bisect_right(counted, upto),
            tuple(id for (id,) in left_out),
            deleted,
        )


def _put_conversations(
    session: SqlSession, whole: WholeAgent, ids: dict[str, str], counted: list[int]
) -> None:
    """Store the conversations of an imported agent, whose turns are there."""
    for row in whole.conversations:
        known = dump([ids[turn] for turn in row.left_out if turn in ids])
        hidden = session.all(
            "select seq from turn where id in (select value from json_each(?)) order by seq", known
        )
        parent = line_of(whole.name, row.parent) if row.parent else ""
        put_conversation(
            session,
            ConversationRow(
                line_of(whole.name, row.id),
                row.name,
                row.renamed,
                row.began,
                row.origin,
                parent,
                _place(row.upto, counted) if counted else 0,
                row.deleted,
            ),
            dump([seq for (seq,) in hidden]),
        )


def _events(session: SqlSession, where: str, *values: object) -> Iterator[WholeEvent]:
    sql = f"select kind, payload, at, key, due, timed from event where {where}"  # noqa: S608  (our own conditions)
    for kind, payload, at, key, due, timed in session.all(sql, *values):
        yield WholeEvent(kind, parse_row(payload, dict), at, key, due if timed else None)


def _free(session: SqlSession, table: str, id: str) -> str:
    """Return the id, or a new one if it is taken."""
    row = session.one(f"select 1 from {table} where id = ?", id)  # noqa: S608  (our own table name)
    return session.clock.new_id() if row else id


def _writes(whole: WholeAgent) -> Iterator[Write]:
    if whole.settings is not None:
        yield SaveAgent(whole.name, whole.settings)
    yield from (SaveText(text) for text in whole.texts.values())
    yield from (JoinOwnSet(whole.name, function) for function in whole.pins)
    yield from (SaveDocument(replace(document, agent=whole.name)) for document in whole.documents)
    for passage in whole.passages:
        yield SavePassages((replace(passage, agent=whole.name),))


def _put_turns(session: SqlSession, whole: WholeAgent, ids: dict[str, str]) -> list[int]:
    """Store the turns of an imported agent; return the numbers of their entries."""
    counted: list[int] = []
    for turn in whole.turns:
        line = line_named(line_of(whole.name, turn.conversation))
        events = [_put_event(session, line, turn_event) for turn_event in turn.events]
        seq = session.all(
            "insert into turn (id, line, event, state, attempt, n, owner, hidden, started, ended)"
            " values (?, ?, ?, ?, 1, ?, '', ?, ?, ?) returning seq",
            *(ids[turn.id], line, events[0], turn.state, len(turn.entries), turn.hidden),
            *(turn.started, turn.ended),
        )[0][0]
        for event in events:
            session.all("update event set turn = ? where seq = ?", seq, event)
        for n, entry in enumerate(turn.entries):
            counted.append(seq << N_BITS | n)
            session.all(
                "insert into entry (seq, kind, payload, attempt, at) values (?, ?, ?, ?, ?)",
                *(counted[-1], entry.kind, _payload(entry, counted), IMPORTED, entry.at),
            )
    return counted


def _payload(entry: Entry, numbers: list[int]) -> str:
    """Return the JSON of an entry; a summary's `upto` becomes the local number of the entry at that position."""
    if isinstance(entry, EntryText):
        if entry.upto is None:
            return entry.text
        return f'{{"upto":{_place(entry.upto, numbers)},{entry.text[1:]}'
    upto = entry.payload.get("upto")
    if entry.kind != SUMMARY or not isinstance(upto, int):
        return dump(entry.payload)
    return dump({**entry.payload, "upto": _place(upto, numbers)})


def _place(upto: int, numbers: list[int]) -> int:
    return numbers[min(upto, len(numbers)) - 1] if upto > 0 else 0


def _as_heard(inbox: Sequence[WholeEvent], turn_id: str) -> WholeTurn:
    """Return what waits in the inbox of a file as a turn that is over: it is read, and wakes and tells nobody.

    The program's own events begin turns, go on with others, and have answers to give, and limits.
    """
    entries = list[Entry]()
    for event in inbox:
        payload = (
            parse_row(event.payload, dict) if isinstance(event.payload, str) else event.payload
        )
        inbound = Inbound.of("", event.kind, payload)
        text = inbound.text or inbound.reason
        said = MessageEntry(text=text) if event.kind == "message" else NoticeEntry(text=text)
        entries.append(replace(write_entry(said), at=event.at))
    first, last = inbox[0].at, inbox[-1].at
    events = [replace(event, key=None, due=None) for event in inbox]
    return WholeTurn(turn_id, "imported", first, last, events, entries)


def _put_event(session: SqlSession, line: str, event: WholeEvent) -> int:
    is_timed = event.due is not None
    due = event.due if is_timed else event.at
    payload = event.payload if isinstance(event.payload, str) else dump(event.payload)
    seq = session.all(
        "insert into event (id, line, key, kind, payload, due, timed, at) values (?, ?, ?, ?, ?, ?, ?, ?)"
        " returning seq",
        *(session.clock.new_id(), line, event.key, event.kind, payload, due, is_timed, event.at),
    )[0][0]
    return int(seq)


def _put_block(session: SqlSession, block: WholeBlock, id: str, turns: dict[str, str]) -> None:
    row = block.row
    session.all(
        "insert into block (id, label, value, chars, description, read_only, shared, version, edited)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(id, row.label, dump(row.value), row.limit, row.description, row.read_only, row.shared),
        *(row.version, row.edited),
    )
    for line in block.history:
        session.all(
            "insert into block_change (block, version, value, what, by, agent, turn, at)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            *(id, line.version, dump(line.value), line.action, line.by, line.agent),
            *(turns.get(line.turn, line.turn), line.at),
        )

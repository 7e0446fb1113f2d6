"""Turns in the store: an agent's inbox, the journal of its turns, and its history.

The fence: a write to a turn must name its `attempt` and `n`. A claim raises `attempt`, so that writes of an earlier
owner that was thought dead are rejected from then on.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from agent_core.base.errors import LostLease, StorageError
from agent_core.base.records import dataclass, field, replace
from sandbox.wire.strict_json import whole_value

from .block_store import shared_versions
from .conversation_store import leave_out, name_conversation, recall_scope, stretches
from .inbox import Inbound
from .journal import StreamedEntry, SummaryEntry, read_entry, write_entry
from .names import agent_of, is_main, line_named
from .subject import (
    Entry,
    InboxFull,
    Misfit,
    Write,
    dump,
    parse_row,
    rows_of,
)
from .tables import LARGEST_NUMBER, Row, SqlSession, Tables, apply, change, query, text_hashes

SAID = ("user", "assistant", "call", "result", "notice")
"""The kinds of entries that are part of the conversation; others (such as `request`) explain it."""

SUMMARY = SummaryEntry.kind

AGAIN: Final = "again"
BETWEEN: Final = ("note", "ask", "answer", "handoff", "stop", AGAIN)
"""The kinds of events that one agent causes for another; `again` repeats one whose turn was cut off."""
SCHEDULED: Final = '{"window":"schedule"}'
"""The origin of an event of a timer."""
_LONE_KINDS: Final = ", ".join(f"'{kind}'" for kind in BETWEEN)
PAUSED_EVENT: Final = (
    f"((kind in ({_LONE_KINDS}) or origin = '{SCHEDULED}') and exists (select 1 from pause))"  # noqa: S608  (our own text)
)
"""The condition for an event that begins no turn now: it runs by itself, and that is paused."""
BEGINNING: Final = ("ask", "answer", "again")
"""The kinds that always begin a turn of their own."""


@dataclass(frozen=True, slots=True)
class Post:
    """An event for the inbox of a conversation, by its line. A repeated `key` is the same event; `due` None means now.

    `origin` is the window through which it came, and whose it is, as JSON; "" if nobody says so.
    """

    line: str
    kind: str
    payload: dict[str, Any]  # Any: JSON
    key: str | None = None
    due: float | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        """Make all texts whole, as in an `Entry`; raise a UsageError if there can be no such conversation."""
        line_named(self.line)
        object.__setattr__(self, "payload", whole_value(self.payload))


@dataclass(frozen=True, slots=True)
class Posted:
    """A stored event, a `seq` before its turn, and its text; a repeated key returns the first event's text."""

    event: str
    after: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message that no turn has taken up yet; `text` may be only its beginning, `origin` is as in `Post`."""

    id: str
    text: str
    origin: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A claimed turn; writes need `attempt` and `n`. An attempt above 1 takes over an interrupted turn.

    `streamed` is the displayed part of an unfinished reply.
    """

    id: str
    line: str
    attempt: int
    n: int
    state: str
    event: Inbound
    cancelled: bool = False
    streamed: str = ""

    @property
    def agent(self) -> str:
        """The agent whose turn it is."""
        return agent_of(self.line)


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: the next `n`, whether the turn should end, and whether due events wait.

    Events that always begin a turn of their own do not count. `last` is the `seq` of the last entry that was written, 0
    if there was none; `shared` has the version of each of the agent's shared blocks, by id.
    """

    n: int
    cancelled: bool
    waits: bool = False
    last: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that has ended; `seq` is after those of its entries, and before those of the next turn."""

    id: str
    state: str
    seq: int
    at: float


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A part of a conversation, in order. `is_last`: there is no more in the direction in which it was read."""

    entries: list[Entry]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Due:
    """A conversation with work that can start now. Takeovers come first."""

    line: str
    is_takeover: bool


@dataclass(frozen=True, slots=True)
class JournalReport:
    """The result of checking all turns and entries. `missing` entries were forgotten, or are lost."""

    turns: int
    entries: int
    missing: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerAsk(Write):
    """A write that answers an ask, unless it already has an answer. `state`: answered, failed or timed_out."""

    ask: str
    text: str
    state: str = "answered"


@dataclass(frozen=True, slots=True)
class WakeAsker(Write):
    """The write at the end of each turn: its agent continues if all its asks are answered."""

    turn: str


INBOX_LIMIT = 1_000
EVERY = 1 << 62  # rows: effectively no limit
IMPORTED = 0  # the attempt of imported entries: turns count theirs from 1
N_BITS = 20  # an entry's seq is turn.seq << N_BITS | n; see migrations/0023
_WAITING = "from event where line = ? and turn is null and (due <= ? or not timed)"
# The time of the last waiting event that is due at once: the next is handled after it, even if the clock goes back.
LAST_AT_ONCE = (
    "select due from event where line = ? and turn is null and not timed order by due desc limit 1"
)
_GO_ON = "update turn set attempt = attempt + 1, owner = ? where line = ? and state = 'open'"
_BEGIN = (
    "insert into turn (id, line, event, attempt, owner, started)"  # noqa: S608  (our own text)
    " select ?1, ?2, seq, 1, ?3, ?4 from event where line = ?2 and turn is null and (due <= ?4 or not timed)"
    " and kind not in (select value from json_each(?5))"
    f" and not {PAUSED_EVENT}"
    " and not exists (select 1 from turn where line = ?2 and state = 'open') order by due, seq limit 1"
)
_TAKEN = (
    "update event set turn = t.seq from turn t"
    " where t.line = ? and t.state = 'open' and event.seq = t.event and event.turn is null"
)
_CLAIMED = (
    "select t.id, t.attempt, t.n, t.state, t.cancelled, t.streamed, e.id, e.kind, e.payload, e.origin"
    " from turn t join event e on e.seq = t.event where t.line = ? and t.state = 'open'"
)
_INBOX = f"select count(*), ({LAST_AT_ONCE}) from event where line = ? and turn is null"  # noqa: S608  (our own text)
_BEGINNING = ", ".join(f"'{kind}'" for kind in BEGINNING)
_PLACE = f"select e.kind, e.payload, e.n, t.id, e.at, e.seq, e.attempt = {IMPORTED} from"
# What a history shows of a line: without the turns that are removed from it. A branch leaves out those that were when
# it began, and shows what its parent removed later.
_VISIBLE = (
    "case when ?3 = '' then not t.hidden"
    " else t.seq not in (select cast(value as integer) from json_each(?3)) end"
)
_PART = (
    "turn t join entry e on e.seq between max(t.seq << 20, ?1) and (t.seq + 1 << 20) - 1"
    f" where e.seq > ?1 and t.line = ?2 and t.seq >= ?1 >> 20 and t.seq <= ?5 >> 20"
    f" and (?4 or {_VISIBLE}) and e.seq < ?5"
)
_SUMMARIES = (
    "entry e join turn t on t.seq = e.turn"
    f" where e.kind = 'summary' and e.seq > ?1 and t.line = ?2 and (?4 or {_VISIBLE}) and e.seq < ?5"
)


class TurnStore(Tables):
    """The inbox and the journal. A write to a turn must name its `attempt` and `n`."""

    @abstractmethod
    async def post(self, post: Post) -> str:
        """Return the event's id. A repeated key gives the id of the first event.

        Raises:
            InboxFull: too many events wait for this agent.
        """

    @abstractmethod
    async def post_after(self, post: Post) -> Posted:
        """Post an event, and return the `seq` after which its turn will come."""

    @query
    def waiting(self, session: SqlSession, line: str, thread: str | None = None) -> list[Inbound]:
        """Return the due events that no turn has taken, oldest first. `append(takes=…)` delivers them in mid-turn.

        With a `thread`, messages between agents in other threads are left out.
        """
        values: tuple[object, ...] = (line, session.clock.now())
        among = ""
        if thread is not None:
            among = " and (kind not in (select value from json_each(?)) or json_extract(payload, '$.thread') = ?)"
            values += (dump([*BETWEEN]), thread)
        own = f"{among} and not {PAUSED_EVENT} order by due, seq"
        rows = session.all(f"select id, kind, payload, origin {_WAITING}{own}", *values)
        return [
            Inbound.of(id, kind, parse_row(payload, dict), origin)
            for id, kind, payload, origin in rows
        ]

    @query
    def waiting_events(self, session: SqlSession, line: str) -> list[tuple[str, str]]:
        """Return the id and the kind of each due event that no turn has taken, oldest first."""
        rows = session.all(
            f"select id, kind {_WAITING} order by due, seq", line, session.clock.now()
        )
        return [(str(id), str(kind)) for id, kind in rows]

    @query
    def waiting_event(self, session: SqlSession, event: str) -> Inbound | None:
        """Return an event that no turn has taken yet; None if one has."""
        row = session.one(
            "select id, kind, payload, agent, origin from event where id = ? and turn is null",
            event,
        )
        if row is None:
            return None
        with rows_of(row[3]):
            return Inbound.of(row[0], row[1], parse_row(row[2], dict), row[4])

    @query
    def waiting_payload(
        self, session: SqlSession, event: str
    ) -> dict[str, Any] | None:  # Any: JSON
        """Return what an event holds that no turn has taken yet, as it is stored; None if one has."""
        row = session.one("select payload, agent from event where id = ? and turn is null", event)
        if row is None:
            return None
        with rows_of(row[1]):
            payload: dict[str, Any] = parse_row(row[0], dict)
        return payload

    @query
    def waiting_messages(
        self, session: SqlSession, line: str, *, most: int, most_chars: int
    ) -> list[WaitingMessage]:
        """Return the first messages that wait for a turn, oldest first, each with the beginning of its text."""
        sql = (
            "select id, substr(json_extract(payload, '$.text'), 1, ?3), origin, at from event"
            " where line = ?1 and turn is null and kind = 'message' order by due, seq limit ?2"
        )
        rows = session.all(sql, line, most, most_chars)
        return [WaitingMessage(id, str(text or ""), origin, at) for id, text, origin, at in rows]

    @query
    def message_ids(self, session: SqlSession, line: str, *, most: int) -> list[tuple[str, bool]]:
        """Return the ids of the last messages of a conversation, newest first, and whether each still waits."""
        sql = (
            "select id, turn is null from event where line = ? and kind = 'message'"
            " order by seq desc limit ?"
        )
        return [(str(id), bool(waits)) for id, waits in session.all(sql, line, most)]

    @query
    def running_event(self, session: SqlSession, line: str) -> str:
        """Return the id of the event that began the open turn of a conversation; "" if none is open."""
        sql = "select e.id from turn t join event e on e.seq = t.event where t.line = ? and t.state = 'open'"
        row = session.one(sql, line)
        return str(row[0]) if row else ""

    @query
    def is_there(self, session: SqlSession, event: str) -> bool:
        """Return whether an event was not withdrawn: it waits, or a turn has it."""
        return session.one("select 1 from event where id = ?", event) is not None

    @change
    def withdraw(self, session: SqlSession, event: str) -> bool:
        """Delete an event that no turn has taken yet; return whether there was one."""
        sql = "delete from event where id = ? and turn is null returning 1"
        return session.one(sql, event) is not None

    @change
    def reword(self, session: SqlSession, event: str, payload: dict[str, Any]) -> bool:
        """Replace the payload of an event that no turn has taken yet; return whether there was one. Any: JSON."""
        sql = "update event set payload = ? where id = ? and turn is null returning 1"
        return session.one(sql, dump(whole_value(payload)), event) is not None

    @change
    def next(
        self, session: SqlSession, line: str, owner: str, *, skip: Collection[str] = ()
    ) -> ClaimedTurn | None:
        """Claim the open turn (a takeover), or a new one for the oldest due event. Return None if nothing is due.

        `skip` has kinds of events that may not begin a turn now.
        """
        now = session.clock.now()
        *_, kept, rows = session.together(
            (_GO_ON, owner, line),
            (_BEGIN, session.clock.new_id(), line, owner, now, dump([*skip])),
            (_TAKEN, line),
            self._ownership_query(line),
            (_CLAIMED, line),
        )
        if not kept:
            raise LostLease(line)
        if not rows:
            return None
        id, attempt, n, state, cancelled, streamed, event, kind, payload, origin = rows[0]
        began = Inbound.of(event, kind, parse_row(payload, dict), origin)
        return ClaimedTurn(id, line, attempt, n, state, began, bool(cancelled), streamed)

    @change
    def append(  # noqa: PLR0913 one transaction writes all of it
        self,
        session: SqlSession,
        turn: str,
        attempt: int,
        n: int,
        entries: Sequence[Entry],
        *,
        posts: Sequence[Post] = (),
        writes: Sequence[Write] = (),
        takes: Sequence[str] = (),
    ) -> Appended:
        """Write entries, posts, writes and takes (ids of waiting events): all of them or none.

        Raises:
            LostLease: the turn is not at (`attempt`, `n`), or not open.
            ManifestConflict: a compare-and-set among the writes failed.
        """
        end = n + len(entries)
        row = session.one(
            "update turn set n = ?, streamed = '' where id = ? and attempt = ? and n = ? and state = 'open'"
            " returning seq, cancelled, line",
            *(end, turn, attempt, n),
        )
        if row is None:
            raise LostLease(turn)
        seq, cancelled, line = row
        if end >> N_BITS:
            raise StorageError(
                f"The turn {turn} has a million entries.", fix="End it and begin another."
            )
        now = session.clock.now()
        for place, entry in enumerate(entries, seq << N_BITS | n):
            session.all(
                "insert into entry (seq, kind, payload, attempt, at) values (?, ?, ?, ?, ?)",
                *(place, entry.kind, dump(entry.payload), attempt, now),
            )
        take = "update event set turn = ? where id = ? and line = ? and turn is null returning seq"
        for event in takes:
            if not session.one(take, seq, event, line):
                message = f"The event {event} does not wait for `{line}`."
                raise StorageError(message, fix="Ask what is waiting again.")
        for item in posts:
            post_event(session, item)
        apply(session, writes)
        last = (seq << N_BITS | end) - 1 if entries else 0
        sql = f"select 1 {_WAITING} and kind not in ({_BEGINNING}) limit 1"
        waits = session.one(sql, line, session.clock.now()) is not None
        return Appended(end, bool(cancelled), waits, last, shared_versions(session, agent_of(line)))

    @query
    def keep_streamed(
        self, session: SqlSession, turn: str, attempt: int, n: int, text: str
    ) -> bool:
        """Store the displayed part of a reply until the next append, without waiting for the disk.

        Nothing is stored if the turn is not at (`attempt`, `n`), or not open. Return whether the turn should end.
        """
        sql = (
            "update turn set streamed = ? where id = ? and attempt = ? and n = ? and state = 'open'"
            " returning cancelled"
        )
        with session.unsynced():
            row = session.one(sql, text, turn, attempt, n)
        return row is not None and bool(row[0])

    @query
    def streamed(self, session: SqlSession, line: str) -> list[Entry]:
        """Return the stored part of an unfinished reply: it is still streaming, or was cut off."""
        sql = "select streamed, n, id, started from turn where line = ? and state = 'open' and streamed <> ''"
        entries = list[Entry]()
        for text, n, turn, at in session.all(sql, line):
            streamed = write_entry(StreamedEntry(text=text))
            entries.append(replace(streamed, n=n, turn=turn, at=at))
        return entries

    @change
    def finish(
        self,
        session: SqlSession,
        turn: str,
        attempt: int,
        state: str = "done",
        *,
        posts: Sequence[Post] = (),
        writes: Sequence[Write] = (),
    ) -> None:
        """Close the turn under the same fence as `append`; the answers to its asks are posted if all have arrived."""
        row = session.one(
            "update turn set state = ?, ended = ?, streamed = ''"
            " where id = ? and attempt = ? and state = 'open' returning seq",
            *(state, session.clock.now(), turn, attempt),
        )
        if row is None:
            raise LostLease(turn)
        for item in posts:
            post_event(session, item)
        apply(session, [*writes, WakeAsker(turn)])

    @change
    def cancel(self, session: SqlSession, turn: str) -> None:
        """Ask the turn's owner to end it. The next append reports the request."""
        session.all("update turn set cancelled = true where id = ? and state = 'open'", turn)

    @query
    def due(self, session: SqlSession, limit: int = 100) -> list[Due]:
        """Return conversations with an open turn or a due event, the work list of a runner."""
        rows = session.all(
            "select line, 1, 0.0 as since, seq from turn where state = 'open' union all"
            " select line, 0, min(due), min(seq) from event where turn is null and (due <= ? or not timed)"
            " and line not in (select line from turn where state = 'open')"
            " group by line order by 2 desc, 3, 4 limit ?",
            *(session.clock.now(), limit),
        )
        return [Due(line, bool(takeover)) for line, takeover, _, _ in rows]

    @query
    def load(self, session: SqlSession, turn: str) -> list[Entry]:
        """Return the journal of one turn, all kinds, in order."""
        return _load(session, turn)

    @query
    def named_values(self, session: SqlSession) -> set[str]:
        """Return the digests of the large values that an entry or a recorded call names. It reads the whole record."""
        named = "where instr({0}, '\"large\"') > 0"
        rows = session.all(f"select payload from entry {named.format('payload')}")  # noqa: S608  (our own text)
        rows += session.all(f"select data from recorded {named.format('data')}")  # noqa: S608  (our own text)
        return text_hashes(rows)

    @query
    def named_pictures(self, session: SqlSession) -> set[str]:
        """Return the digests of the pictures that an entry or an event names. It reads the whole record."""
        named = "where instr(payload, '\"pictures\"') > 0"
        rows = session.all(f"select payload from entry {named}")  # noqa: S608  (our own text)
        rows += session.all(f"select payload from event {named}")  # noqa: S608  (our own text)
        return text_hashes(rows)

    @query
    def history(
        self,
        session: SqlSession,
        line: str,
        *,
        since: int = 0,
        before: int = LARGEST_NUMBER,
        kinds: Collection[str] = SAID,
        most: int = -1,
        with_removed: bool = False,
    ) -> list[Entry]:
        """Return the visible entries of a conversation between two numbers, in order, reading at most `most`.

        Those of a branch begin with what it stands on.

        `most` limits the rows read, before other kinds are left out; below 0 there is no limit. Summaries alone are
        found by an index. `with_removed` includes turns that were removed from the context.
        """
        parts = stretches(session, line, before)
        rows: list[Row] = []
        only = dump([*kinds])
        for part in parts:
            place = (since, part.line, part.left_out or "", with_removed, part.before)
            if set(kinds) == {SUMMARY}:
                rows += session.all(f"{_PLACE} {_SUMMARIES} order by e.seq", *place)
            elif most < 0 or len(rows) < most:
                limit = EVERY if most < 0 else most - len(rows)
                rows += session.all(
                    f"{_PLACE} {_PART} and (?6 or e.kind in (select value from json_each(?7)))"  # noqa: S608
                    " order by t.seq, e.seq limit ?8",
                    *(*place, most >= 0, only, limit),
                )
        return _entries([row for row in rows if row[0] in kinds])

    @query
    def history_page(  # noqa: PLR0913 each names a part of the history
        self,
        session: SqlSession,
        line: str,
        *,
        since: int = 0,
        before: int = LARGEST_NUMBER,
        kinds: Collection[str] = SAID,
        count: int,
        most_bytes: int,
        is_newest: bool = False,
        with_removed: bool = False,
    ) -> HistoryPage:
        """Return at most `count` entries between two numbers whose payloads have at most so many bytes in all.

        They are the oldest, or with `is_newest` the newest. An entry that alone has more bytes is a page of its own.
        Sizes are read first: no payload is read that the page does not have.
        """
        order = "desc" if is_newest else "asc"
        parts = stretches(session, line, before)
        only = dump([*kinds])
        sql = (
            f"select e.seq, octet_length(e.payload) from {_PART}"  # noqa: S608  (our own text)
            f" and e.kind in (select value from json_each(?6)) order by t.seq {order}, e.seq {order} limit ?7"
        )
        sizes: list[Row] = []
        for part in parts[::-1] if is_newest else parts:
            place = (since, part.line, part.left_out or "", with_removed, part.before)
            if len(sizes) <= count:
                sizes += session.all(sql, *place, only, count + 1 - len(sizes))
        chosen = list[int]()
        left = most_bytes
        for seq, size in sizes[:count]:
            left -= size
            if left < 0 and chosen:
                break
            chosen.append(seq)
        if not chosen:
            return HistoryPage([], is_last=True)
        rows: list[Row] = []
        kind = "e.kind in (select value from json_each(?6))"
        sql = f"{_PLACE} {_PART} and {kind} order by t.seq, e.seq"
        for part in parts:
            until = min(part.before, max(chosen) + 1)
            place = (min(chosen) - 1, part.line, part.left_out or "", with_removed, until)
            rows += session.all(sql, *place, only)
        return HistoryPage(_entries(rows), is_last=len(chosen) == len(sizes))

    @query
    def entry_in_reach(self, session: SqlSession, line: str, seq: int) -> Entry | None:
        """Return an entry of another conversation that is found in this one; None if there is none."""
        row = session.one("select line from turn where seq = ?", seq >> N_BITS)
        if row is None or recall_scope(session, row[0]) != recall_scope(session, line):
            return None
        rows = session.all(
            f"{_PLACE} entry e join turn t on t.seq = e.turn where e.seq = ?",
            seq,
        )
        return next(iter(_entries(rows)), None)

    @query
    def ended_turns(
        self,
        session: SqlSession,
        line: str,
        since: int,
        *,
        before: int = LARGEST_NUMBER,
        most: int = EVERY,
    ) -> list[EndedTurn]:
        """Return a conversation's first turns that have ended between two numbers, in order, including removed ones.

        Those that a branch stands on are its parent's.

        A turn's end uses its highest possible number, which no entry has.
        """
        rows = session.all(
            "select id, state, (seq + 1 << 20) - 1, coalesce(ended, started) from turn"
            " where line = ?1 and state <> 'open' and (seq + 1 << 20) - 1 > ?2 and (seq + 1 << 20) - 1 < ?3"
            " order by seq limit ?4",
            *(line, since, before, most),
        )
        return [EndedTurn(*row) for row in rows]

    @query
    def turn_number(self, session: SqlSession, line: str, turn: str) -> int | None:
        """Return the number before the first entry of a conversation's turn; None if it has no such turn."""
        row = session.one("select (seq << 20) - 1 from turn where line = ? and id = ?", line, turn)
        return int(row[0]) if row else None

    @query
    def turn_of(self, session: SqlSession, event: str, line: str = "") -> str | None:
        """Return the id of the turn that took an event; None while it waits, or if the conversation has no such event.

        For a turn that was cut off and is resumed, it is the resuming turn, or None until that begins.
        """
        turns = _turns_of(session, event, line)
        return turns[-1] if turns else None

    @query
    def resumption_of(self, session: SqlSession, event: str) -> str:
        """Return the event that waits, perhaps for a while, to resume the turn of another one, which was cut off.

        "" if there is none, or if all is paused that runs by itself.
        """
        turns = _turns_of(session, event, "")
        if len(turns) < 2 or turns[-1] is not None or session.one("select 1 from pause"):
            return ""
        waiting = "select id from event where key = ? and turn is null"
        row = session.one(waiting, f"{AGAIN}:{turns[-2]}")
        return str(row[0]) if row else ""

    @query
    def last_seq(self, session: SqlSession, line: str) -> int:
        """Return the `seq` of the last entry or end of a conversation's turns; 0 if there is none."""
        return last_number(session, line)

    @change
    def hide_last_turn(self, session: SqlSession, line: str) -> list[Entry]:
        """Remove the last finished turn from the history, never from the record. Return its entries.

        A turn that a branch stands on leaves the branch alone.
        """
        row = session.one(
            "update turn set hidden = true where seq ="
            " (select max(seq) from turn where line = ? and state <> 'open' and not hidden) returning id",
            line,
        )
        _drop_resumption(session, line)
        if row is not None:
            return _load(session, row[0])
        for part in stretches(session, line)[-2::-1]:
            place = (0, part.line, part.left_out or "", False, part.before)
            sql = f"select t.seq, t.id from {_PART} order by t.seq desc, e.seq desc limit 1"  # noqa: S608
            if found := session.one(sql, *place):
                leave_out(session, line, [found[0]])
                return [entry for entry in _load(session, found[1]) if entry.seq < part.before]
        return []

    @change
    def hide_turns(self, session: SqlSession, line: str) -> int:
        """Remove every finished turn from the history, never from the record. Return their number.

        Those that a branch stands on leave the branch alone.
        """
        own = "update turn set hidden = true where line = ? and state <> 'open' and not hidden returning seq"
        hidden = {seq for (seq,) in session.all(own, line)}
        _drop_resumption(session, line)
        earlier = set[int]()
        visible = f"select distinct t.seq from {_PART}"  # noqa: S608  (our own text)
        for part in stretches(session, line)[:-1]:
            place = (0, part.line, part.left_out or "", False, part.before)
            earlier.update(seq for (seq,) in session.all(visible, *place))
        if earlier:
            leave_out(session, line, earlier)
        return len(hidden | earlier)


def post_event(session: SqlSession, post: Post, *, is_limited: bool = True) -> str:
    """Return the id of the event, or of the first one with its key; without `is_limited`, a full inbox accepts it."""
    sql = "select id from event where line = ? and key = ?"
    row = session.one(sql, post.line, post.key) if post.key is not None else None
    if row:
        return str(row[0])
    waiting, last = session.all(_INBOX, post.line, post.line)[0]
    if is_limited and waiting >= INBOX_LIMIT:
        raise InboxFull(agent_of(post.line), INBOX_LIMIT)
    id = session.clock.new_id()
    now = session.clock.now()
    is_timed = post.due is not None
    session.all(
        "insert into event (id, line, key, kind, payload, due, timed, at, origin)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(id, post.line, post.key, post.kind, dump(post.payload)),
        *(post.due if is_timed else max(now, last or now), is_timed, now, post.origin),
    )
    name_by(session, post)
    return id


def _turns_of(session: SqlSession, event: str, line: str) -> list[str | None]:
    """Return the turn that took an event, and those that resume it, one after another; None for one that waits.

    Nothing is returned for an event that no turn has taken, or of another conversation than `line`.
    """
    sql = "select t.id, e.line from event e join turn t on t.seq = e.turn where e.id = ?1 and ?2 in ('', e.line)"
    row = session.one(sql, event, line)
    if row is None:
        return []
    turns: list[str | None] = [str(row[0])]
    sql = (
        "select t.id from event e left join turn t on t.seq = e.turn where e.line = ? and e.key = ?"
    )
    while turns[-1] is not None and (after := session.one(sql, row[1], f"{AGAIN}:{turns[-1]}")):
        turns.append(after[0] and str(after[0]))
    return turns


def name_by(session: SqlSession, post: Post) -> None:
    """Name a new conversation by the first message in it."""
    if not is_main(post.line) and post.kind == "message":
        name_conversation(session, post.line, Inbound.of("", post.kind, post.payload).text)


def posted(session: SqlSession, event: str, line: str) -> Posted:
    """Return an event with its text, and the last number before it, or before the turn that took it."""
    payload, turn = session.one("select payload, turn from event where id = ?", event) or (
        "{}",
        None,
    )
    text = Inbound.of(event, "", parse_row(payload, dict)).text
    return Posted(event, last_number(session, line, turn), text)


def last_number(session: SqlSession, line: str, before: int | None = None) -> int:
    """Return the number of the last entry or end of a turn, 0 if there is none; `before` limits it to earlier turns.

    In a branch without a turn, it is that of the last entry that it stands on.
    """
    sql = "select seq, n, state from turn where line = ? and seq < ? order by seq desc limit 1"
    row = session.one(sql, line, (1 << 62) if before is None else before)
    if row is None:
        earlier = stretches(session, line)[:-1]
        return earlier[-1].before - 1 if earlier else 0
    seq, n, state = row
    return int((seq << N_BITS) + n - 1 if state == "open" else (seq + 1 << N_BITS) - 1)


def _drop_resumption(session: SqlSession, line: str) -> None:
    """Delete the event that would resume a turn that is hidden now, and notify the agent that asked for the turn."""
    rows = session.all(
        "delete from event where line = ? and turn is null and kind = ?"
        " and exists (select 1 from turn t where t.hidden and t.id = substr(event.key, ?)) returning payload",
        *(line, AGAIN, len(f"{AGAIN}:") + 1),
    )
    owed = [Inbound.of("", AGAIN, parse_row(payload, dict)).owes for (payload,) in rows]
    apply(
        session,
        [AnswerAsk(ask, "The turn was removed by the user.", "failed") for ask in owed if ask],
    )


def _entries(rows: list[tuple[Any, ...]]) -> list[Entry]:  # Any: columns as SQLite types them
    entries: list[Entry] = []
    for kind, payload, n, turn, at, seq, is_imported in rows:
        entry = Entry(kind, parse_row(payload, dict), n, turn, at, seq, bool(is_imported))
        if kind in SAID:
            read_entry(
                entry
            )  # whoever reads a conversation is told of damage here, by the agent's name
        entries.append(entry)
    return entries


def _load(session: SqlSession, turn: str) -> list[Entry]:
    rows = session.all(
        f"{_PLACE} turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
        " where t.id = ? order by e.seq",
        turn,
    )
    try:
        return _entries(rows)
    except Misfit:
        (agent,) = session.one("select agent from turn where id = ?", turn) or ("NAME",)
        with rows_of(agent):
            raise


def entries_of(session: SqlSession, line: str, upto: int, kinds: Collection[str]) -> list[Entry]:
    """Return the visible entries of a conversation up to a number, in order."""
    rows: list[Row] = []
    for part in stretches(session, line, upto + 1):
        place = (0, part.line, part.left_out or "", False, part.before)
        rows += session.all(f"{_PLACE} {_PART} order by e.seq", *place)
    return _entries([row for row in rows if row[0] in kinds])

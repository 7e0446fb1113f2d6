"""Turns in the store: an agent's inbox, the journal of its turns, and its history.

The fence: a write to a turn must name its `attempt` and `n`. A claim raises `attempt`, so that writes of an earlier
owner that was thought dead are rejected from then on.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from agent_core.base.errors import LostLease, StorageError
from agent_core.base.records import dataclass, field
from sandbox.wire.strict_json import whole_value

from .block_store import shared_versions
from .subject import ENTRY, Entry, InboxFull, Misfit, Write, dump, parse_row, rows_of
from .tables import LARGEST_NUMBER, SqlSession, Tables, apply, change, query, text_hashes

SAID = ("user", "assistant", "call", "result", "notice")
"""The kinds of entries that are part of the conversation; others (such as `request`) explain it."""

USAGE = "usage"
"""The kind of an entry with the tokens of a model request: `model`, `…_tokens`, and whether it is `estimated`."""

STREAMED = "streamed"
"""The kind of an entry that is not in the journal yet: the displayed part of an unfinished reply."""

ENDED = "ended"
"""The kind of an entry that says why a turn ended without a reply: `text`, as shown to the user."""

SUMMARY = "summary"
"""The kind of an entry that replaces earlier messages in the context."""

AGAIN: Final = "again"
BETWEEN: Final = ("note", "ask", "answer", "handoff", "stop", AGAIN)
"""The kinds of events that one agent causes for another; `again` repeats one whose turn was cut off."""
BEGINNING: Final = ("ask", "answer", "again")
"""The kinds that always begin a turn of their own."""


@dataclass(frozen=True, slots=True)
class Post:
    """An event for an agent's inbox. A repeated `key` is the same event; `due` None means now."""

    agent: str
    kind: str
    payload: dict[str, Any]  # Any: JSON
    key: str | None = None
    due: float | None = None

    def __post_init__(self) -> None:
        """Make all texts whole, as in an `Entry`."""
        object.__setattr__(self, "payload", whole_value(self.payload))


@dataclass(frozen=True, slots=True)
class Posted:
    """A stored event, a `seq` before its turn, and its payload; a repeated key returns the first event's payload."""

    event: str
    after: int
    payload: dict[str, Any] = field(default_factory=dict)  # Any: JSON


@dataclass(frozen=True, slots=True)
class Inbound:
    """An event taken from the inbox."""

    id: str
    kind: str
    payload: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A claimed turn; writes need `attempt` and `n`. An attempt above 1 takes over an interrupted turn.

    `streamed` is the displayed part of an unfinished reply.
    """

    id: str
    agent: str
    attempt: int
    n: int
    state: str
    event: Inbound
    cancelled: bool = False
    streamed: str = ""


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
    """A part of an agent's history, in order. `is_last`: there is no more in the direction in which it was read."""

    entries: list[Entry]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Due:
    """An agent with work that can start now. Takeovers come first."""

    agent: str
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
_WAITING = "from event where agent = ? and turn is null and (due <= ? or not timed)"
# The time of the last waiting event that is due at once: the next is handled after it, even if the clock goes back.
LAST_AT_ONCE = (
    "select due from event where agent = ? and turn is null and not timed order by due desc limit 1"
)
_GO_ON = "update turn set attempt = attempt + 1, owner = ? where agent = ? and state = 'open'"
_BEGIN = (
    "insert into turn (id, agent, event, attempt, owner, started)"
    " select ?1, ?2, seq, 1, ?3, ?4 from event where agent = ?2 and turn is null and (due <= ?4 or not timed)"
    " and kind not in (select value from json_each(?5))"
    " and not exists (select 1 from turn where agent = ?2 and state = 'open') order by due, seq limit 1"
)
_TAKEN = (
    "update event set turn = t.seq from turn t"
    " where t.agent = ? and t.state = 'open' and event.seq = t.event and event.turn is null"
)
_CLAIMED = (
    "select t.id, t.attempt, t.n, t.state, t.cancelled, t.streamed, e.id, e.kind, e.payload"
    " from turn t join event e on e.seq = t.event where t.agent = ? and t.state = 'open'"
)
_INBOX = f"select count(*), ({LAST_AT_ONCE}) from event where agent = ? and turn is null"  # noqa: S608  (our own text)
_BEGINNING = ", ".join(f"'{kind}'" for kind in BEGINNING)
_PLACE = f"select e.kind, e.payload, e.n, t.id, e.at, e.seq, e.attempt = {IMPORTED} from"
_BETWEEN = (
    "turn t join entry e on e.seq between max(t.seq << 20, ?1) and (t.seq + 1 << 20) - 1"
    " where e.seq > ?1 and e.seq < ?2 and t.agent = ?3 and t.seq >= ?1 >> 20 and t.seq <= ?2 >> 20"
    " and (?4 or not t.hidden) and e.kind in (select value from json_each(?5))"
)
_SUMMARIES = f"{_PLACE} entry e join turn t on t.seq = e.turn where e.kind = 'summary' and t.agent = ? and e.seq > ?"


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
    def waiting(self, session: SqlSession, agent: str, thread: str | None = None) -> list[Inbound]:
        """Return the due events that no turn has taken, oldest first. `append(takes=…)` delivers them in mid-turn.

        With a `thread`, messages between agents in other threads are left out.
        """
        values: tuple[object, ...] = (agent, session.clock.now())
        among = ""
        if thread is not None:
            among = " and (kind not in (select value from json_each(?)) or json_extract(payload, '$.thread') = ?)"
            values += (dump([*BETWEEN]), thread)
        rows = session.all(f"select id, kind, payload {_WAITING}{among} order by due, seq", *values)
        return [Inbound(id, kind, parse_row(payload, dict)) for id, kind, payload in rows]

    @query
    def waiting_events(self, session: SqlSession, agent: str) -> list[tuple[str, str]]:
        """Return the id and the kind of each due event that no turn has taken, oldest first."""
        rows = session.all(
            f"select id, kind {_WAITING} order by due, seq", agent, session.clock.now()
        )
        return [(str(id), str(kind)) for id, kind in rows]

    @query
    def waiting_event(self, session: SqlSession, event: str) -> Inbound | None:
        """Return an event that no turn has taken yet; None if one has."""
        row = session.one(
            "select id, kind, payload, agent from event where id = ? and turn is null", event
        )
        if row is None:
            return None
        with rows_of(row[3]):
            return Inbound(row[0], row[1], parse_row(row[2], dict))

    @change
    def next(
        self, session: SqlSession, agent: str, owner: str, *, skip: Collection[str] = ()
    ) -> ClaimedTurn | None:
        """Claim the open turn (a takeover), or a new one for the oldest due event. Return None if nothing is due.

        `skip` has kinds of events that may not begin a turn now.
        """
        now = session.clock.now()
        *_, kept, rows = session.together(
            (_GO_ON, owner, agent),
            (_BEGIN, session.clock.new_id(), agent, owner, now, dump([*skip])),
            (_TAKEN, agent),
            self._ownership_query(agent),
            (_CLAIMED, agent),
        )
        if not kept:
            raise LostLease(agent)
        if not rows:
            return None
        id, attempt, n, state, cancelled, streamed, event, kind, payload = rows[0]
        began = Inbound(event, kind, parse_row(payload, dict))
        return ClaimedTurn(id, agent, attempt, n, state, began, bool(cancelled), streamed)

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
            " returning seq, cancelled, agent",
            *(end, turn, attempt, n),
        )
        if row is None:
            raise LostLease(turn)
        seq, cancelled, agent = row
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
        take = "update event set turn = ? where id = ? and agent = ? and turn is null returning seq"
        for event in takes:
            if not session.one(take, seq, event, agent):
                message = f"The event {event} does not wait for agent `{agent}`."
                raise StorageError(message, fix="Ask what is waiting again.")
        for item in posts:
            post_event(session, item)
        apply(session, writes)
        last = (seq << N_BITS | end) - 1 if entries else 0
        sql = f"select 1 {_WAITING} and kind not in ({_BEGINNING}) limit 1"
        waits = session.one(sql, agent, session.clock.now()) is not None
        return Appended(end, bool(cancelled), waits, last, shared_versions(session, agent))

    @query
    def keep_streamed(
        self, session: SqlSession, turn: str, attempt: int, n: int, text: str
    ) -> None:
        """Store the displayed part of a reply until the next append, without waiting for the disk.

        Nothing is stored if the turn is not at (`attempt`, `n`), or not open.
        """
        sql = (
            "update turn set streamed = ? where id = ? and attempt = ? and n = ? and state = 'open'"
        )
        with session.unsynced():
            session.all(sql, text, turn, attempt, n)

    @query
    def streamed(self, session: SqlSession, agent: str) -> list[Entry]:
        """Return the stored part of an unfinished reply: it is still streaming, or was cut off."""
        sql = "select streamed, n, id, started from turn where agent = ? and state = 'open' and streamed <> ''"
        return [Entry(STREAMED, {"text": text}, *place) for text, *place in session.all(sql, agent)]

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
        """Return agents with an open turn or a due event, the work list of a runner."""
        rows = session.all(
            "select agent, 1, 0.0 as since, seq from turn where state = 'open' union all"
            " select agent, 0, min(due), min(seq) from event where turn is null and (due <= ? or not timed)"
            " and agent not in (select agent from turn where state = 'open')"
            " group by agent order by 2 desc, 3, 4 limit ?",
            *(session.clock.now(), limit),
        )
        return [Due(agent, bool(takeover)) for agent, takeover, _, _ in rows]

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
    def history(
        self,
        session: SqlSession,
        agent: str,
        *,
        since: int = 0,
        before: int = LARGEST_NUMBER,
        kinds: Collection[str] = SAID,
        most: int = -1,
        with_removed: bool = False,
    ) -> list[Entry]:
        """Return the visible entries of the agent's turns between two numbers, in order, reading at most `most`.

        `most` limits the rows read, before other kinds are left out; below 0 there is no limit. Summaries alone are
        found by an index. `with_removed` includes turns that were removed from the context.
        """
        if set(kinds) == {SUMMARY}:
            sql = f"{_SUMMARIES} and e.seq < ? and not t.hidden order by e.seq"
            return _entries(session.all(sql, agent, since, before))
        rows = session.all(
            f"{_PLACE} turn t join entry e on e.seq between max(t.seq << 20, ?1) and (t.seq + 1 << 20) - 1"  # noqa: S608
            " where e.seq > ?1 and t.agent = ?2 and t.seq >= ?1 >> 20 and (?3 or not t.hidden) and e.seq < ?7"
            " and (?4 or e.kind in (select value from json_each(?5))) order by t.seq, e.seq limit ?6",
            *(
                since,
                agent,
                with_removed,
                most >= 0,
                dump([*kinds]),
                most if most >= 0 else EVERY,
                before,
            ),
        )
        return _entries([row for row in rows if row[0] in kinds])

    @query
    def history_page(  # noqa: PLR0913 each names a part of the history
        self,
        session: SqlSession,
        agent: str,
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
        place = (with_removed, dump([*kinds]))
        columns = "e.seq, octet_length(e.payload) from"
        sql = f"select {columns} {_BETWEEN} order by t.seq {order}, e.seq {order} limit ?6"
        sizes = session.all(sql, since, before, agent, *place, count + 1)
        chosen, left = list[int](), most_bytes
        for seq, size in sizes[:count]:
            left -= size
            if left < 0 and chosen:
                break
            chosen.append(seq)
        if not chosen:
            return HistoryPage([], is_last=True)
        first, last = min(chosen), max(chosen)
        sql = f"{_PLACE} {_BETWEEN} order by t.seq, e.seq limit ?6"
        rows = session.all(sql, first - 1, last + 1, agent, *place, len(chosen))
        return HistoryPage(_entries(rows), is_last=len(chosen) == len(sizes))

    @query
    def ended_turns(
        self,
        session: SqlSession,
        agent: str,
        since: int,
        *,
        before: int = LARGEST_NUMBER,
        most: int = EVERY,
    ) -> list[EndedTurn]:
        """Return the agent's first turns that have ended between two numbers, in order, including removed ones.

        A turn's end uses its highest possible number, which no entry has.
        """
        rows = session.all(
            "select id, state, (seq + 1 << 20) - 1, coalesce(ended, started) from turn"
            " where agent = ?1 and state <> 'open' and (seq + 1 << 20) - 1 > ?2 and (seq + 1 << 20) - 1 < ?3"
            " order by seq limit ?4",
            *(agent, since, before, most),
        )
        return [EndedTurn(*row) for row in rows]

    @query
    def turn_number(self, session: SqlSession, agent: str, turn: str) -> int | None:
        """Return the number before the first entry of an agent's turn; None if it has no such turn."""
        row = session.one(
            "select (seq << 20) - 1 from turn where agent = ? and id = ?", agent, turn
        )
        return int(row[0]) if row else None

    @query
    def turn_of(self, session: SqlSession, event: str, agent: str = "") -> str | None:
        """Return the id of the turn that took an event; None while it waits, or if the agent has no such event.

        For a turn that was cut off and is resumed, it is the resuming turn, or None until that begins.
        """
        sql = "select t.id, e.agent from event e join turn t on t.seq = e.turn where e.id = ?1 and ?2 in ('', e.agent)"
        turn, agent = session.one(sql, event, agent) or (None, "")
        sql = "select t.id from event e left join turn t on t.seq = e.turn where e.agent = ? and e.key = ?"
        while turn is not None and (after := session.one(sql, agent, f"{AGAIN}:{turn}")):
            turn = after[0]
        return None if turn is None else str(turn)

    @query
    def last_seq(self, session: SqlSession, agent: str) -> int:
        """Return the `seq` of the last entry or end of an agent's turns; 0 if there is none."""
        return last_number(session, agent)

    @change
    def hide_last_turn(self, session: SqlSession, agent: str) -> list[Entry]:
        """Remove the last finished turn from the history, never from the record. Return its entries."""
        row = session.one(
            "update turn set hidden = true where seq ="
            " (select max(seq) from turn where agent = ? and state <> 'open' and not hidden) returning id",
            agent,
        )
        _drop_resumption(session, agent)
        return _load(session, row[0]) if row else []

    @change
    def hide_turns(self, session: SqlSession, agent: str) -> int:
        """Remove every finished turn from the history, never from the record. Return their number."""
        sql = "update turn set hidden = true where agent = ? and state <> 'open' and not hidden returning 1"
        hidden = session.all(sql, agent)
        _drop_resumption(session, agent)
        return len(hidden)


def post_event(session: SqlSession, post: Post, *, is_limited: bool = True) -> str:
    """Return the id of the event, or of the first one with its key; without `is_limited`, a full inbox accepts it."""
    sql = "select id from event where agent = ? and key = ?"
    row = session.one(sql, post.agent, post.key) if post.key is not None else None
    if row:
        return str(row[0])
    waiting, last = session.all(_INBOX, post.agent, post.agent)[0]
    if is_limited and waiting >= INBOX_LIMIT:
        raise InboxFull(post.agent, INBOX_LIMIT)
    id, now = session.clock.new_id(), session.clock.now()
    is_timed = post.due is not None
    session.all(
        "insert into event (id, agent, key, kind, payload, due, timed, at) values (?, ?, ?, ?, ?, ?, ?, ?)",
        *(id, post.agent, post.key, post.kind, dump(post.payload)),
        *(post.due if is_timed else max(now, last or now), is_timed, now),
    )
    return id


def posted(session: SqlSession, event: str, agent: str) -> Posted:
    """Return an event with its payload, and the last number before it, or before the turn that took it."""
    payload, turn = session.one("select payload, turn from event where id = ?", event) or (
        "{}",
        None,
    )
    return Posted(event, last_number(session, agent, turn), parse_row(payload, dict))


def last_number(session: SqlSession, agent: str, before: int | None = None) -> int:
    """Return the number of the last entry or end of a turn, 0 if there is none; `before` limits it to earlier turns."""
    sql = "select seq, n, state from turn where agent = ? and seq < ? order by seq desc limit 1"
    row = session.one(sql, agent, (1 << 62) if before is None else before)
    seq, n, state = row or (0, 0, "open")
    return (
        int((seq << N_BITS) + n - 1 if state == "open" else (seq + 1 << N_BITS) - 1) if row else 0
    )


def _drop_resumption(session: SqlSession, agent: str) -> None:
    """Delete the event that would resume a turn that is hidden now, and notify the agent that asked for the turn."""
    rows = session.all(
        "delete from event where agent = ? and turn is null and kind = ?"
        " and exists (select 1 from turn t where t.hidden and t.id = substr(event.key, ?)) returning payload",
        *(agent, AGAIN, len(f"{AGAIN}:") + 1),
    )
    owed = [str(parse_row(payload, dict).get("owes") or "") for (payload,) in rows]
    apply(
        session,
        [AnswerAsk(ask, "The turn was removed by the user.", "failed") for ask in owed if ask],
    )


def _entries(rows: list[tuple[Any, ...]]) -> list[Entry]:  # Any: columns as SQLite types them
    return [
        Entry(kind, parse_row(payload, ENTRY.get(kind, dict)), n, turn, at, seq, bool(is_imported))
        for kind, payload, n, turn, at, seq, is_imported in rows
    ]


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


def entries_of(session: SqlSession, agent: str, upto: int, kinds: Collection[str]) -> list[Entry]:
    """Return the visible entries of an agent up to a number, in order."""
    rows = session.all(
        f"{_PLACE} turn t join entry e on e.seq between t.seq << 20 and min((t.seq + 1 << 20) - 1, ?)"
        " where t.agent = ? and not t.hidden order by e.seq",
        *(upto, agent),
    )
    return _entries([row for row in rows if row[0] in kinds])

"""The tables of turns: inbox, turns, entries.

The fence: a write to a turn must name its `attempt` and `n`. A claim raises `attempt`, so that writes of an earlier
owner that was thought dead are rejected from then on.
"""

from collections.abc import Collection, Sequence
from typing import Any

from agent_core.base.errors import LostLease, StorageError

from ..subject import ENTRY, InboxFull, Write, dump, parse_row
from ..thread_store import AGAIN, BEGINNING, BETWEEN, AnswerAsk
from ..turn_store import (
    SAID,
    STREAMED,
    SUMMARY,
    Appended,
    ClaimedTurn,
    Due,
    EndedTurn,
    Entry,
    Inbound,
    Post,
    Posted,
    WakeAsker,
)
from .block_tables import shared_versions
from .session import SqlSession
from .tables import Tables, apply, change, query

INBOX_LIMIT = 1_000
EVERY = 1 << 62  # rows: effectively no limit
IMPORTED = 0  # the attempt of imported entries: turns count theirs from 1
N_BITS = 20  # an entry's seq is turn.seq << N_BITS | n; see migrations/0001
_WAITING = "from event where agent = ? and turn is null and (due <= ? or not timed)"
# The time of the last waiting event that is due at once: the next is handled after it, even if the clock goes back.
LAST_AT_ONCE = "select due from event where agent = ? and turn is null and not timed order by due desc limit 1"
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
_SUMMARIES = f"{_PLACE} entry e join turn t on t.seq = e.turn where e.kind = 'summary' and t.agent = ? and e.seq > ?"


class TurnTables(Tables):
    """The inbox and the journal."""

    @query
    def waiting(self, session: SqlSession, agent: str, thread: str | None = None) -> list[Inbound]:
        """Return the due events that no turn has claimed."""
        values: tuple[object, ...] = (agent, session.clock.now())
        among = ""
        if thread is not None:
            among = " and (kind not in (select value from json_each(?)) or json_extract(payload, '$.thread') = ?)"
            values += (dump([*BETWEEN]), thread)
        rows = session.all(f"select id, kind, payload {_WAITING}{among} order by due, seq", *values)
        return [Inbound(id, kind, parse_row(payload, dict)) for id, kind, payload in rows]

    @change
    def next(self, session: SqlSession, agent: str, owner: str, *, skip: Collection[str] = ()) -> ClaimedTurn | None:
        """Return the open turn under a new attempt, or a new turn for the oldest due event."""
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
    def append(  # noqa: PLR0913 as in `TurnStore`
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
        """Write everything of a step, behind the fence."""
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
            raise StorageError(f"The turn {turn} has a million entries.", fix="End it and begin another.")
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
    def keep_streamed(self, session: SqlSession, turn: str, attempt: int, n: int, text: str) -> None:
        """Store the text in the row of the turn."""
        sql = "update turn set streamed = ? where id = ? and attempt = ? and n = ? and state = 'open'"
        with session.unsynced():
            session.all(sql, text, turn, attempt, n)

    @query
    def streamed(self, session: SqlSession, agent: str) -> list[Entry]:
        """Return the text as an entry of the open turn."""
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
        """Close a turn, behind the fence."""
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
        """Set the flag that the next append reports."""
        session.all("update turn set cancelled = true where id = ? and state = 'open'", turn)

    @query
    def due(self, session: SqlSession, limit: int = 100) -> list[Due]:
        """Return the open turns first, then the agents with a due event in their inbox, oldest first."""
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
        """Return all entries of one turn."""
        return _load(session, turn)

    @query
    def history(
        self,
        session: SqlSession,
        agent: str,
        *,
        since: int = 0,
        kinds: Collection[str] = SAID,
        most: int = -1,
        with_removed: bool = False,
    ) -> list[Entry]:
        """Return the visible entries after a position in the history; summaries alone are found by an index.

        `most` limits the rows read, before other kinds are left out; below 0 there is no limit.
        """
        if set(kinds) == {SUMMARY}:
            return _entries(session.all(f"{_SUMMARIES} and not t.hidden order by e.seq", agent, since))
        rows = session.all(
            f"{_PLACE} turn t join entry e on e.seq between max(t.seq << 20, ?1) and (t.seq + 1 << 20) - 1"  # noqa: S608
            " where e.seq > ?1 and t.agent = ?2 and t.seq >= ?1 >> 20 and (?3 or not t.hidden)"
            " and (?4 or e.kind in (select value from json_each(?5))) order by t.seq, e.seq limit ?6",
            *(since, agent, with_removed, most >= 0, dump([*kinds]), most if most >= 0 else EVERY),
        )
        return _entries([row for row in rows if row[0] in kinds])

    @query
    def ended_turns(self, session: SqlSession, agent: str, since: int) -> list[EndedTurn]:
        """Return the turns that have ended; a turn's end uses its highest possible number, which no entry has."""
        rows = session.all(
            "select id, state, (seq + 1 << 20) - 1 from turn"
            " where agent = ? and state <> 'open' and (seq + 1 << 20) - 1 > ? order by seq",
            *(agent, since),
        )
        return [EndedTurn(*row) for row in rows]

    @query
    def turn_of(self, session: SqlSession, event: str, agent: str = "") -> str | None:
        """Return the turn that took an event, or the turn that resumed it."""
        sql = "select t.id, e.agent from event e join turn t on t.seq = e.turn where e.id = ?1 and ?2 in ('', e.agent)"
        turn, agent = session.one(sql, event, agent) or (None, "")
        sql = "select t.id from event e left join turn t on t.seq = e.turn where e.agent = ? and e.key = ?"
        while turn is not None and (after := session.one(sql, agent, f"{AGAIN}:{turn}")):
            turn = after[0]
        return None if turn is None else str(turn)

    @query
    def last_seq(self, session: SqlSession, agent: str) -> int:
        """Return the last number of an entry or of the end of a turn."""
        return last_number(session, agent)

    @change
    def hide_last_turn(self, session: SqlSession, agent: str) -> list[Entry]:
        """Hide the last visible turn that has ended."""
        row = session.one(
            "update turn set hidden = true where seq ="
            " (select max(seq) from turn where agent = ? and state <> 'open' and not hidden) returning id",
            agent,
        )
        _drop_resumption(session, agent)
        return _load(session, row[0]) if row else []

    @change
    def hide_turns(self, session: SqlSession, agent: str) -> int:
        """Hide every visible turn that has ended."""
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
    payload, turn = session.one("select payload, turn from event where id = ?", event) or ("{}", None)
    return Posted(event, last_number(session, agent, turn), parse_row(payload, dict))


def last_number(session: SqlSession, agent: str, before: int | None = None) -> int:
    """Return the number of the last entry or end of a turn, 0 if there is none; `before` limits it to earlier turns."""
    sql = "select seq, n, state from turn where agent = ? and seq < ? order by seq desc limit 1"
    row = session.one(sql, agent, (1 << 62) if before is None else before)
    seq, n, state = row or (0, 0, "open")
    return int((seq << N_BITS) + n - 1 if state == "open" else (seq + 1 << N_BITS) - 1) if row else 0


def _drop_resumption(session: SqlSession, agent: str) -> None:
    """Delete the event that would resume a turn that is hidden now, and notify the agent that asked for the turn."""
    rows = session.all(
        "delete from event where agent = ? and turn is null and kind = ?"
        " and exists (select 1 from turn t where t.hidden and t.id = substr(event.key, ?)) returning payload",
        *(agent, AGAIN, len(f"{AGAIN}:") + 1),
    )
    owed = [str(parse_row(payload, dict).get("owes") or "") for (payload,) in rows]
    apply(session, [AnswerAsk(ask, "The turn was removed by the user.", "failed") for ask in owed if ask])


def _entries(rows: list[tuple[Any, ...]]) -> list[Entry]:  # Any: columns as SQLite types them
    return [
        Entry(kind, parse_row(payload, ENTRY.get(kind, dict)), n, turn, at, seq, bool(is_imported))
        for kind, payload, n, turn, at, seq, is_imported in rows
    ]


def _load(session: SqlSession, turn: str) -> list[Entry]:
    return _entries(
        session.all(
            f"{_PLACE} turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
            " where t.id = ? order by e.seq",
            turn,
        )
    )


def entries_of(session: SqlSession, agent: str, upto: int, kinds: Collection[str]) -> list[Entry]:
    """Return the visible entries of an agent up to a number, in order."""
    rows = session.all(
        f"{_PLACE} turn t join entry e on e.seq between t.seq << 20 and min((t.seq + 1 << 20) - 1, ?)"
        " where t.agent = ? and not t.hidden order by e.seq",
        *(upto, agent),
    )
    return _entries([row for row in rows if row[0] in kinds])

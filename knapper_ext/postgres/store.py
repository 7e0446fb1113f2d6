"""The store in a PostgreSQL database: all subjects combined, how it is opened, and which process owns an agent."""

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Final, final

import psycopg

from agent_core import __version__
from agent_core.base.errors import AgentBusy, StorageError
from agent_core.storage.folder import busy_agent, check_hold
from agent_core.storage.forget_store import Erasure, erase
from agent_core.storage.names import AgentName, agent_of
from agent_core.storage.store import LOST, Health, Hear, Store, WorkerRow
from agent_core.storage.subject import InboxFull, StoreClock, dump
from agent_core.storage.tables import SqlSession, change, query
from agent_core.storage.turn_store import INBOX_LIMIT, LAST_AT_ONCE, Post, Posted, name_by, posted

from .connection import SCHEMA, STATEMENT_S, Db, PostgresSession, connect, measure_skew
from .database import Database

# Ownership of agents in a database that several machines share.
# A live process keeps its agents until it releases them. Agents of a process without a sign of life for some seconds
# are available to any process: one statement takes an agent, so of two simultaneous attempts only one succeeds.
# The pulse of a process is a connection that sends a heartbeat every second and receives what others write. A process
# without recent heartbeats, or with a lost connection, loses its agents to any process that claims them. It may not
# know that yet: the fence of the turns rejects its writes.

BEAT_S: Final = 1.0
DEAD_S: Final = 3.0
_GONE_S: Final = 1.3  # a lost connection is normally restored by then
_RECONNECT_S: Final = 0.2
_FORGOTTEN: Final = "1 day"
CHANNEL: Final = "knapper"

IS_GONE: Final = "not exists (select 1 from pg_stat_activity a where a.pid = w.backend)"
# After a restart of the database, processes that were alive before it get this long to reconnect.
_FIRST_BACK: Final = (
    "coalesce((select min(a.backend_start) from pg_stat_activity a join worker o on o.backend = a.pid"
    " where o.beat > pg_postmaster_start_time()), clock_timestamp())"
)
IS_ALIVE: Final = (
    f"(w.beat > clock_timestamp() - interval '{DEAD_S} s'"
    f" and (w.beat > clock_timestamp() - interval '{_GONE_S} s' or not {IS_GONE})"
    f" or w.beat < pg_postmaster_start_time() and {_FIRST_BACK} > clock_timestamp() - interval '{_GONE_S} s')"
)
_BEAT: Final = (
    "insert into worker (id, name, version, skew, backend) values ($1, $2, $3, $4, pg_backend_pid())"
    " on conflict (id) do update set beat = clock_timestamp(), backend = excluded.backend, skew = excluded.skew"
)
_HELD: Final = "select line from lease where owner = $1"
_SWEEP: Final = (
    f"delete from worker w where w.beat < clock_timestamp() - interval '{_FORGOTTEN}'",  # noqa: S608  (our own text)
    f"delete from lease where owner is null and at < clock_timestamp() - interval '{_FORGOTTEN}'",  # noqa: S608
)
_FIRST_BEAT_S: Final = 30.0
_LEAVE_S: Final = 2.0
_DYING_S: Final = 2.0
_PAUSE_S: Final = 0.1

_TAKE: Final = (
    "with old as (select owner from lease where line = ?1)"  # noqa: S608  (our own text)
    " insert into lease (line, owner) values (?1, ?2)"
    " on conflict (line) do update set owner = excluded.owner, at = clock_timestamp()"
    f" where lease.owner = ?2 or not exists (select 1 from worker w where w.id = lease.owner and {IS_ALIVE})"
    " returning exists (select 1 from old where owner <> ?2)"
)
# The state of an agent that other processes may change without owning it.
_STAND: Final = (
    "concat_ws(' ', (select settings from agent where name = split_part(?1, '/', 1)),"
    " (select string_agg(function, ' ' order by function) from own_set where agent = split_part(?1, '/', 1)),"
    " (select string_agg(concat(b.id, ':', b.version), ' ' order by h.position, b.id)"
    " from holding h join block b on b.id = h.block where h.agent = split_part(?1, '/', 1)))"
)
_LEND: Final = (
    "update lease set owner = null, last = owner"  # noqa: S608  (our own text)
    f" where line = ?1 and owner = ?2 returning at::text, {_STAND}"
)
_TAKE_BACK: Final = (
    "update lease set owner = ?2, at = clock_timestamp()"  # noqa: S608  (our own text)
    f" where line = ?1 and owner is null and at = ?3::timestamptz returning {_STAND}"
)
_LET_GO: Final = "delete from lease where line = ?1 and coalesce(owner, last) = ?2"
_HOLDER: Final = (
    f"select w.name, extract(epoch from l.at)::double precision, {IS_GONE}"  # noqa: S608  (our own text)
    " from lease l join worker w on w.id = l.owner where l.line = ?"
)
_WORKERS: Final = (
    "select w.id, w.name, w.slots, extract(epoch from clock_timestamp() - w.beat)::double precision,"  # noqa: S608
    f" {IS_ALIVE}, coalesce((select string_agg(l.line, ' ' order by l.line) from lease l where l.owner = w.id), ''),"
    " w.version, w.skew"
    " from worker w order by w.beat desc"
)


class Pulse:
    """The thread with the connection. The first caller that needs it starts it; it reconnects by itself."""

    def __init__(self, conninfo: str, owner: str) -> None:
        self.owner = owner
        self.name = f"process {os.getpid()} on {socket.gethostname()}"
        self.held: set[str] = set()
        """The agents that this process holds, as far as it knows."""
        self.has_slots = False
        """True if this process runs the turns of all agents; each message wakes only one such process."""
        self._conninfo = conninfo
        self._skew = 0.0
        self._hearers: list[tuple[Hear, bool]] = []
        self._stopped = Event()
        self._beating = Event()
        self._starting = Lock()
        self._thread: Thread | None = None

    @property
    def is_started(self) -> bool:
        """True once it was started."""
        return self._thread is not None

    def start(self, patience_s: float = 0.0) -> None:
        """Start the thread, and wait for the first beat."""
        with self._starting:
            if self._thread is None and not self._stopped.is_set():
                self._thread = Thread(target=self._run, name="knapper-pulse", daemon=True)
                self._thread.start()
        self._beating.wait(patience_s)

    def subscribe(self, hear: Hear, *, to_run: bool) -> Callable[[], None]:
        """Call `hear` in the thread with each topic; the returned callable unsubscribes.

        With `to_run`, `hear` does not receive work for which another process was woken.
        """
        hearer = (hear, to_run)
        self._hearers.append(hearer)
        return lambda: self._hearers.remove(hearer)

    def stop(self) -> None:
        """End the thread at the next beat or notification."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped.is_set():
            with suppress(psycopg.Error), closing(connect(self._conninfo)) as db:
                db.execute(f"listen {CHANNEL}")
                for sweep in _SWEEP:
                    db.execute(sweep)
                self._skew = measure_skew(db)
                self._beat(db)
                self._tell("")  # news from before this connection was missed
                while not self._stopped.is_set():
                    # Handle notifications until the next beat.
                    for note in db.notifies(timeout=BEAT_S):
                        topic, _, whom = note.payload.partition(" ")
                        self._tell(
                            topic,
                            is_for_another=bool(whom) and self.has_slots and whom != self.owner,
                        )
                        if self._stopped.is_set():
                            break
                    self._beat(db)
            self._stopped.wait(random.uniform(_RECONNECT_S, 2 * _RECONNECT_S))  # noqa: S311  (a pause)

    def _beat(self, db: Db) -> None:
        if not self._stopped.is_set():
            db.execute(_BEAT, (self.owner, self.name, __version__, self._skew))
            self._beating.set()
            held = self.held.copy()
            if held and held & self.held - {
                agent for (agent,) in db.execute(_HELD, (self.owner,)).fetchall()
            }:
                self._tell(LOST)

    def _tell(self, topic: str, *, is_for_another: bool = False) -> None:
        for hear, to_run in tuple(self._hearers):
            if not (to_run and is_for_another):
                hear(topic)


def _agents_of(lines: str) -> tuple[AgentName, ...]:
    """Return the agents of lines: which conversations are open is nobody else's business."""
    return tuple(dict.fromkeys(map(agent_of, lines.split())))


class Leases(Database):
    """The part of the store that manages the processes at the database."""

    def __init__(self, conninfo: str, clock: StoreClock) -> None:
        super().__init__(conninfo, clock)
        self._pulse = Pulse(conninfo, clock.new_id())
        self._wanted: set[str] = set()  # held here, or about to be
        self._lent: dict[
            str, tuple[str, str]
        ] = {}  # the time of acquisition and the agent's state when it was lent
        self._taken = 0

    @property
    def is_shared(self) -> bool:
        """True: a database may have many users."""
        return True

    @property
    def owner(self) -> str:
        """The id of this process at the database."""
        return self._pulse.owner

    @property
    def leases_taken(self) -> int:
        """The number of leases that this process took from dead processes."""
        return self._taken

    @asynccontextmanager
    async def hold_line(
        self, folder: Path, line: str, *, may_wait: bool = False
    ) -> AsyncIterator[None]:
        """Keep the right to run a conversation."""
        check_hold(line)
        if line in self._wanted:
            raise busy_agent(line)
        self._wanted.add(line)
        try:
            await self._beating()
            try:
                await self._take(line)
                self._pulse.held.add(line)
            except AgentBusy:
                if not may_wait:
                    raise
            yield
        finally:
            self._lent.pop(line, None)
            self._pulse.held.discard(line)
            await self._let_go(_LET_GO, line, self.owner)
            self._wanted.discard(line)

    async def lend(self, line: str) -> None:
        """Let others have a conversation; its row stays, to show whether another process had it meanwhile."""
        self._pulse.held.discard(line)
        for since, stand in await self._run(lambda session: session.all(_LEND, line, self.owner)):
            self._lent[line] = since, stand

    async def take_back(self, line: str) -> bool:
        """Hold a conversation again; return whether no other process held or changed it meanwhile."""
        since, before = self._lent.get(line, (None, ""))
        rows = await self._run(lambda session: session.all(_TAKE_BACK, line, self.owner, since))
        if not rows:
            await self._take(line)
        self._lent.pop(line, None)
        self._pulse.held.add(line)
        return rows == [(before,)]

    def has(self, line: str) -> bool:
        """Return whether the lease is ours now."""
        return line in self._pulse.held

    @asynccontextmanager
    async def heard(self, hear: Hear, *, to_run: bool = False) -> AsyncIterator[None]:
        """Pass on the topics that the pulse thread receives to this loop."""
        loop = asyncio.get_running_loop()

        def tell(topic: str) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(hear, topic)

        end = self._pulse.subscribe(tell, to_run=to_run)
        self._pulse.start()
        try:
            yield
        finally:
            end()

    async def offer_slots(self, slots: int) -> None:
        """Record the number of slots in the row of this process."""
        await self._beating()
        self._pulse.has_slots = slots > 0
        await self._run(
            lambda session: session.all(
                "update worker set slots = ? where id = ?", slots, self.owner
            )
        )

    async def workers(self) -> list[WorkerRow]:
        """Return all rows, including those of dead processes."""
        rows = await self._run(lambda session: session.all(_WORKERS))
        return [
            WorkerRow(id, name, slots, silent_s, is_alive, _agents_of(lines), version, skew_s)
            for id, name, slots, silent_s, is_alive, lines, version, skew_s in rows
        ]

    async def health(self) -> Health:
        """Query the version, and measure the time."""
        sql = "select current_setting('server_version'), coalesce(max(number), 0) from migration"
        begun = monotonic()
        version, schema = (await self._run(lambda session: session.all(sql)))[0]
        return Health(
            f"PostgreSQL {version.split()[0]}", int(schema), round((monotonic() - begun) * 1000, 1)
        )

    async def functions_number(self) -> int:
        """Return the number of the last line in the history of functions."""
        return int(
            (
                await self._run(
                    lambda session: session.all("select coalesce(max(seq), 0) from change")
                )
            )[0][0]
        )

    async def close(self) -> None:
        """Remove this process from the list and close the connections."""
        if not self._is_closed and self._pulse.is_started:
            self._pulse.stop()
            await self._let_go(
                "delete from worker where id = ?", self.owner
            )  # the pulse receives this, too
            await asyncio.to_thread(self._pulse.join, _LEAVE_S)
        await super().close()

    def _ownership_query(self, line: str) -> tuple[object, ...]:
        """Return a query that yields a row unless another process has taken a conversation that this one held."""
        is_held = line in self._pulse.held
        return (
            ("select 1 from lease where line = ? and owner = ?", line, self.owner)
            if is_held
            else ("select 1",)
        )

    def _of_others(self) -> str:
        """Return a query for the lines that other live processes hold; the embedded id is our own."""
        return (
            "select l.line from lease l join worker w on w.id = l.owner"  # noqa: S608
            f" where l.owner <> '{self.owner}' and {IS_ALIVE}"
        )

    async def _beating(self) -> None:
        await asyncio.to_thread(self._pulse.start, _FIRST_BEAT_S)

    async def _take(self, line: str) -> None:
        """Take a conversation, waiting briefly if its process may have just died."""
        end = monotonic() + _DYING_S
        while not (row := await self._run(lambda session: session.one(_TAKE, line, self.owner))):
            holder = await self._run(lambda session: session.one(_HOLDER, line))
            if holder is not None:
                name, since, is_gone = holder
                if not is_gone or monotonic() > end:
                    raise busy_agent(
                        line, f"{name} (since {datetime.fromtimestamp(since):%Y-%m-%d %H:%M:%S})"
                    )
            elif monotonic() > end:
                raise AgentBusy(f"Agent `{line}` is in use by another process.", fix="Try again.")
            await asyncio.sleep(_PAUSE_S)
        self._taken += row[0]

    async def _let_go(self, sql: str, *values: str) -> None:
        """Release a row; an unavailable database will notice the missing heartbeat instead."""

        def work(session: PostgresSession) -> None:
            session.all(sql, *values)

        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self._run(work)


# One statement, outside of serializable transactions, because many agents post at the same moment. A repeated post, by
# its id after a lost connection or by its key, is the same event.
_LAST = LAST_AT_ONCE.replace("?", "?2")
_POST = (
    "with new as (insert into event (id, line, key, kind, payload, due, timed, at, origin)"  # noqa: S608  (our own text)
    f" select ?1, ?2, ?3, ?4, ?5, case when ?7 then ?6 else greatest(?6, ({_LAST})) end, ?7, ?8, ?10"
    " where (select count(*) from event where line = ?2 and turn is null) < ?9"
    " on conflict do nothing returning id) select id from new"
)
_POSTED = "select id from event where id = ?1 or (line = ?2 and key = ?3)"
_LOOSE = (
    "select 1 from entry e where not exists (select 1 from turn t where t.seq = e.turn) limit 1"
)


@final
class PostgresStore(Leases, Store):
    """`Store` on PostgreSQL."""

    @classmethod
    def open(cls, url: str, clock: StoreClock, workspace: str = "") -> "PostgresStore":
        """Open the store at this address, in libpq's format; missing tables are created.

        Raises:
            StorageError: the database cannot be used, belongs to another workspace, or has tables of a newer program.
        """
        store = cls(url, clock)
        store.prepare(workspace)
        return store

    @property
    def recovered(self) -> str | None:
        """None: a database is never set aside."""
        return None

    @change
    def claim(self, session: SqlSession, workspace: str) -> None:
        """Give the database to another workspace."""
        session.all("delete from home")
        session.all("insert into home values (?)", workspace)

    @change
    def join(self, session: SqlSession, workspace: str) -> None:
        """Add a workspace to the database."""
        if not session.one("select 1 from home where workspace = ?", workspace):
            session.all("insert into home values (?)", workspace)

    async def vacuum(self) -> None:
        """Rewrite every table."""
        await self._run(rewrite)

    async def now(self) -> float:
        """Return the time of the database's clock."""
        return self._clock.now() + self._skew

    async def post(self, post: Post) -> str:
        """Return the id of the event, or of the first one with its key."""
        id = self._clock.new_id()
        return await self._run(lambda session: _post(session, id, post))

    async def post_after(self, post: Post) -> Posted:
        """Post an event, and return its record."""
        event = await self.post(post)
        return await self._run(lambda session: posted(session, event, post.line))

    @query
    def check(self, session: SqlSession) -> str | None:
        """Return an inconsistency that no foreign key prevents."""
        return "a row of `entry` points at nothing" if session.one(_LOOSE) else None

    async def forget(self, erasure: Erasure) -> dict[str, int]:
        """Forget in a transaction, then rewrite the tables, so that nothing remains in their files."""
        counts = await self._write(lambda session: _forget(session, erasure))
        await self._run(rewrite)
        return counts


def _post(session: PostgresSession, id: str, post: Post) -> str:
    names = (id, post.line, post.key)
    now = session.clock.now()
    is_timed = post.due is not None
    found = session.one(_POSTED, *names) or session.one(
        _POST,
        *(
            *names,
            post.kind,
            dump(post.payload),
            post.due if is_timed else now,
            is_timed,
            now,
            INBOX_LIMIT,
            post.origin,
        ),
    )
    found = found or session.one(_POSTED, *names)  # another process was faster with the same key
    if found is None:
        raise InboxFull(agent_of(post.line), INBOX_LIMIT)
    name_by(session, post)
    return str(found[0])


def _forget(session: SqlSession, erasure: Erasure) -> dict[str, int]:
    session.all("set local idle_in_transaction_session_timeout = 0")
    counts = erase(session, erasure)
    session.index.rebuild(session)
    session.all(
        "update lane set rows = (select count(*) from vector where lane = id) where space <> ''"
    )
    session.all("update forgotten set times = times + 1")
    return counts


def rewrite(session: PostgresSession) -> None:
    """Rewrite every table; other processes wait for a table during that time."""
    session.all("set statement_timeout = 0")
    try:
        for (name,) in session.all("select tablename from pg_tables where schemaname = ?", SCHEMA):
            session.all(f'vacuum (full, analyze) {SCHEMA}."{name}"')
    finally:
        with suppress(psycopg.OperationalError):  # the connection is gone
            session.all(f"set statement_timeout = '{STATEMENT_S}s'")

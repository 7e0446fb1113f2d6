"""Ownership of agents in a database that several machines share.

A live process keeps its agents until it releases them. Agents of a process without a sign of life for some seconds are
available to any process: one statement takes an agent, so of two simultaneous attempts only one succeeds.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Final

from agent_core.base.errors import AgentBusy, StorageError

from ..folder import busy_agent, check_name
from ..subject import StoreClock
from ..worker_store import Health, Hear, WorkerRow
from .connection import PostgresSession
from .database import Database
from .pulse import IS_ALIVE, IS_GONE, Pulse

_FIRST_BEAT_S: Final = 30.0
_LEAVE_S: Final = 2.0
_DYING_S: Final = 2.0
_PAUSE_S: Final = 0.1

_TAKE: Final = (
    "with old as (select owner from lease where agent = ?1)"  # noqa: S608  (our own text)
    " insert into lease (agent, owner) values (?1, ?2)"
    " on conflict (agent) do update set owner = excluded.owner, at = clock_timestamp()"
    f" where lease.owner = ?2 or not exists (select 1 from worker w where w.id = lease.owner and {IS_ALIVE})"
    " returning exists (select 1 from old where owner <> ?2)"
)
# The state of an agent that other processes may change without owning it.
_STAND: Final = (
    "concat_ws(' ', (select settings from agent where name = ?1),"
    " (select string_agg(function, ' ' order by function) from pin where agent = ?1),"
    " (select string_agg(concat(b.id, ':', b.version), ' ' order by h.position, b.id)"
    " from holding h join block b on b.id = h.block where h.agent = ?1))"
)
_LEND: Final = (
    "update lease set owner = null, last = owner"  # noqa: S608  (our own text)
    f" where agent = ?1 and owner = ?2 returning at::text, {_STAND}"
)
_TAKE_BACK: Final = (
    "update lease set owner = ?2, at = clock_timestamp()"  # noqa: S608  (our own text)
    f" where agent = ?1 and owner is null and at = ?3::timestamptz returning {_STAND}"
)
_LET_GO: Final = "delete from lease where agent = ?1 and coalesce(owner, last) = ?2"
_HOLDER: Final = (
    f"select w.name, extract(epoch from l.at)::double precision, {IS_GONE}"  # noqa: S608  (our own text)
    " from lease l join worker w on w.id = l.owner where l.agent = ?"
)
_WORKERS: Final = (
    "select w.id, w.name, w.slots, extract(epoch from clock_timestamp() - w.beat)::double precision,"  # noqa: S608
    f" {IS_ALIVE}, coalesce((select string_agg(l.agent, ' ' order by l.agent) from lease l where l.owner = w.id), ''),"
    " w.version, w.skew"
    " from worker w order by w.beat desc"
)


class Leases(Database):
    """The part of the store that manages the processes at the database."""

    def __init__(self, conninfo: str, clock: StoreClock, keep_calls: int) -> None:
        super().__init__(conninfo, clock, keep_calls)
        self._pulse = Pulse(conninfo, clock.new_id())
        self._wanted: set[str] = set()  # held here, or about to be
        self._lent: dict[str, tuple[str, str]] = {}  # the time of acquisition and the agent's state when it was lent
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
    async def hold(self, folder: Path, agent: str) -> AsyncIterator[None]:
        """Keep the right to run an agent."""
        check_name(agent)
        if agent in self._wanted:
            raise busy_agent(agent)
        self._wanted.add(agent)
        try:
            await self._beating()
            await self._take(agent)
            self._pulse.held.add(agent)
            yield
        finally:
            self._lent.pop(agent, None)
            self._pulse.held.discard(agent)
            await self._let_go(_LET_GO, agent, self.owner)
            self._wanted.discard(agent)

    async def lend(self, agent: str) -> None:
        """Make an agent available to others; its row stays, to show whether another process had it meanwhile."""
        self._pulse.held.discard(agent)
        for since, stand in await self._run(lambda session: session.all(_LEND, agent, self.owner)):
            self._lent[agent] = since, stand

    async def take_back(self, agent: str) -> bool:
        """Hold an agent again; return whether no other process held or changed it meanwhile."""
        since, before = self._lent.pop(agent, (None, ""))
        rows = await self._run(lambda session: session.all(_TAKE_BACK, agent, self.owner, since))
        if rows:
            self._pulse.held.add(agent)
        return rows == [(before,)]

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
        await self._run(lambda session: session.all("update worker set slots = ? where id = ?", slots, self.owner))

    async def workers(self) -> list[WorkerRow]:
        """Return all rows, including those of dead processes."""
        rows = await self._run(lambda session: session.all(_WORKERS))
        return [
            WorkerRow(id, name, slots, silent_s, is_alive, tuple(agents.split()), version, skew_s)
            for id, name, slots, silent_s, is_alive, agents, version, skew_s in rows
        ]

    async def health(self) -> Health:
        """Query the version, and measure the time."""
        sql = "select current_setting('server_version'), coalesce(max(number), 0) from migration"
        begun = monotonic()
        version, schema = (await self._run(lambda session: session.all(sql)))[0]
        return Health(f"PostgreSQL {version.split()[0]}", int(schema), round((monotonic() - begun) * 1000, 1))

    async def functions_number(self) -> int:
        """Return the number of the last line in the history of functions."""
        return int((await self._run(lambda session: session.all("select coalesce(max(seq), 0) from change")))[0][0])

    async def close(self) -> None:
        """Remove this process from the list and close the connections."""
        if not self._is_closed and self._pulse.is_started:
            self._pulse.stop()
            await self._let_go("delete from worker where id = ?", self.owner)  # the pulse receives this, too
            await asyncio.to_thread(self._pulse.join, _LEAVE_S)
        await super().close()

    def _ownership_query(self, agent: str) -> tuple[object, ...]:
        """Return a query that yields a row unless another process has taken an agent that this one held."""
        is_held = agent in self._pulse.held
        return ("select 1 from lease where agent = ? and owner = ?", agent, self.owner) if is_held else ("select 1",)

    def _of_others(self) -> str:
        """Return a query for the agents that other live processes hold; the embedded id is our own."""
        return (
            "select l.agent from lease l join worker w on w.id = l.owner"  # noqa: S608
            f" where l.owner <> '{self.owner}' and {IS_ALIVE}"
        )

    async def _beating(self) -> None:
        await asyncio.to_thread(self._pulse.start, _FIRST_BEAT_S)

    async def _take(self, agent: str) -> None:
        """Take an agent, waiting briefly if its process may have just died."""
        end = monotonic() + _DYING_S
        while not (row := await self._run(lambda session: session.one(_TAKE, agent, self.owner))):
            holder = await self._run(lambda session: session.one(_HOLDER, agent))
            if holder is not None:
                name, since, is_gone = holder
                if not is_gone or monotonic() > end:
                    raise busy_agent(agent, f"{name} (since {datetime.fromtimestamp(since):%Y-%m-%d %H:%M:%S})")
            elif monotonic() > end:
                raise AgentBusy(f"Agent `{agent}` is in use by another process.", fix="Try again.")
            await asyncio.sleep(_PAUSE_S)
        self._taken += row[0]

    async def _let_go(self, sql: str, *values: str) -> None:
        """Release a row; an unavailable database will notice the missing heartbeat instead."""

        def work(session: PostgresSession) -> None:
            session.all(sql, *values)

        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self._run(work)

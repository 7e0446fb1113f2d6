"""The store in a PostgreSQL database: all subjects combined, and how it is opened."""

from contextlib import suppress
from typing import final

import psycopg

from ..call_store import KEEP_CALLS
from ..forget_store import Erasure, erase
from ..store import Store
from ..subject import InboxFull, StoreClock, dump
from ..tables import SqlSession, change, query
from ..turn_store import INBOX_LIMIT, LAST_AT_ONCE, Post, Posted, posted
from .connection import SCHEMA, STATEMENT_S, PostgresSession
from .leases import Leases

# One statement, outside of serializable transactions, because many agents post at the same moment. A repeated post, by
# its id after a lost connection or by its key, is the same event.
_LAST = LAST_AT_ONCE.replace("?", "?2")
_POST = (
    "with new as (insert into event (id, agent, key, kind, payload, due, timed, at)"  # noqa: S608  (our own text)
    f" select ?1, ?2, ?3, ?4, ?5, case when ?7 then ?6 else greatest(?6, ({_LAST})) end, ?7, ?8"
    " where (select count(*) from event where agent = ?2 and turn is null) < ?9"
    " on conflict do nothing returning id) select id from new"
)
_POSTED = "select id from event where id = ?1 or (agent = ?2 and key = ?3)"
_LOOSE = "select 1 from entry e where not exists (select 1 from turn t where t.seq = e.turn) limit 1"


@final
class PostgresStore(Leases, Store):
    """`Store` on PostgreSQL."""

    @classmethod
    def open(cls, url: str, clock: StoreClock, keep_calls: int = KEEP_CALLS, workspace: str = "") -> "PostgresStore":
        """Open the store at this address, in libpq's format; missing tables are created.

        Raises:
            StorageError: the database cannot be used, belongs to another workspace, or has tables of a newer program.
        """
        store = cls(url, clock, keep_calls)
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
        return await self._run(lambda session: posted(session, event, post.agent))

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
    names, now = (id, post.agent, post.key), session.clock.now()
    is_timed = post.due is not None
    found = session.one(_POSTED, *names) or session.one(
        _POST,
        *(*names, post.kind, dump(post.payload), post.due if is_timed else now, is_timed, now, INBOX_LIMIT),
    )
    found = found or session.one(_POSTED, *names)  # another process was faster with the same key
    if found is None:
        raise InboxFull(post.agent, INBOX_LIMIT)
    return str(found[0])


def _forget(session: SqlSession, erasure: Erasure) -> dict[str, int]:
    session.all("set local idle_in_transaction_session_timeout = 0")
    counts = erase(session, erasure)
    session.postings.rebuild(session)
    session.all("update lane set rows = (select count(*) from vector where lane = id) where space <> ''")
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

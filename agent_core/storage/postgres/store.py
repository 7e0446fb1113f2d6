"""The store in a PostgreSQL database: the sum of its tables, and how it is opened."""

from collections.abc import Sequence
from types import TracebackType

from ..call_store import KEEP_CALLS
from ..forget_store import Erasure
from ..subject import StoreClock, Write
from ..tables.agent_tables import AgentTables
from ..tables.approval_tables import ApprovalTables
from ..tables.block_tables import BlockTables
from ..tables.call_tables import CallTables
from ..tables.forget_tables import ForgetTables, erased
from ..tables.function_tables import FunctionTables
from ..tables.passage_tables import PassageTables
from ..tables.session import SqlSession
from ..tables.tables import apply, change, query
from ..tables.thread_tables import ThreadTables
from ..tables.token_tables import TokenTables
from ..tables.turn_tables import TurnTables
from .connection import SCHEMA, PostgresSession
from .database import Database

_LOOSE = "select 1 from entry e where not exists (select 1 from turn t where t.seq = e.turn) limit 1"


class PostgresStore(
    Database,
    TurnTables,
    ThreadTables,
    FunctionTables,
    CallTables,
    ApprovalTables,
    BlockTables,
    PassageTables,
    AgentTables,
    ForgetTables,
    TokenTables,
):
    """`Store` on PostgreSQL: the sum of its tables."""

    @classmethod
    def open(cls, url: str, clock: StoreClock, keep_calls: int = KEEP_CALLS, workspace: str = "") -> "PostgresStore":
        """Open the store at this address, which libpq reads; its tables are made if they are missing.

        Raises:
            StorageError: the database cannot be used, belongs to another workspace, or has tables of a newer program.
        """
        store = cls(url, clock, keep_calls)
        store.prepare(workspace)
        return store

    @property
    def recovered(self) -> str | None:
        """Nothing: a database is never put aside."""
        return None

    @change
    def claim(self, session: SqlSession, workspace: str) -> None:
        """Give the database to another workspace."""
        session.all("delete from home")
        session.all("insert into home values (?)", workspace)

    async def vacuum(self) -> None:
        """Write every table anew."""
        await self._run(rewrite)

    async def now(self) -> float:
        """Return the time of the database's clock."""
        return self._clock.now() + self._skew

    @change
    def apply(self, session: SqlSession, writes: Sequence[Write]) -> None:
        """Apply all of these writes, or none."""
        apply(session, writes)

    @query
    def check(self, session: SqlSession) -> str | None:
        """Return what does not fit together, as far as no foreign key keeps it so."""
        return "a row of `entry` points at nothing" if session.one(_LOOSE) else None

    async def forget(self, erasure: Erasure) -> dict[str, int]:
        """Do it in a transaction, and write the tables anew, so that nothing is left in their files."""
        counts = await self._write(lambda session: _forget(session, erasure))
        await self._run(rewrite)
        return counts

    async def __aenter__(self) -> "PostgresStore":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _forget(session: SqlSession, erasure: Erasure) -> dict[str, int]:
    session.all("set local idle_in_transaction_session_timeout = 0")
    counts = erased(session, erasure)
    session.postings.rebuild(session)
    session.all("update lane set rows = (select count(*) from vector where lane = id) where space <> ''")
    session.all("update forgotten set times = times + 1")
    return counts


def rewrite(session: PostgresSession) -> None:
    """Write every table anew; others wait for a table as long as that takes."""
    session.all("set statement_timeout = 0")
    for (name,) in session.all("select tablename from pg_tables where schemaname = ?", SCHEMA):
        session.all(f'vacuum (full, analyze) {SCHEMA}."{name}"')
    session.all("reset statement_timeout")

"""The database in use: its connections, and what is done when one breaks or somebody else was faster.

A method that met a conflict is run again. So is one whose connection broke: nothing of it was written, or, if it broke
at the commit, the database is asked. While it restarts, methods wait, with longer and longer pauses.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from time import monotonic
from typing import Final, TypeVar

import psycopg

from agent_core.base.errors import StorageError
from agent_core.base.seal import Sealer

from ..subject import Misfit, StoreClock
from ..tables.session import SqlSession
from ..tables.tables import Tables
from ..work_threads import WorkThreads
from . import vectors, words
from .connection import CommitLost, DatabaseClock, Db, PostgresSession, connect, measure_skew
from .failures import UNSAVED, explain, is_passing, place_of
from .migrate import check_server, migrate, settle

T = TypeVar("T")
THREADS: Final = 4
PATIENCE_S: Final = 30.0
_SHORT_S, _LONG_S = 0.005, 2.0
_CANCEL_S: Final = 2.0
_CONFLICTS: Final = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
# A row of a post, which is not serializable, may come between a look for its key and an insert.
_SURPRISES: Final = 3
_BREAKS: Final = (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout)
_UNKNOWN: Final = "Whether the change in progress is saved is not known; everything before it is."


@dataclass(slots=True)
class _Running:
    """One piece of work, so that it can be interrupted alone: `db` is its connection while it has one."""

    stopped: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    db: Db | None = None
    was_connected: bool = False

    def interrupt(self) -> None:
        """End the statement, and the wait for the database."""
        self.stopped.set()
        with self.lock:
            if self.db is not None:
                with suppress(psycopg.Error):
                    self.db.cancel_safe(timeout=_CANCEL_S)

    def use(self, db: Db | None) -> None:
        """Take a connection, or let it go: what others do on it then is not interrupted."""
        with self.lock:
            self.db = db
        self.was_connected |= db is not None


class Database(Tables):
    """A database and its tables: work runs in a few threads, with a connection for each."""

    def __init__(self, conninfo: str, clock: StoreClock, keep_calls: int) -> None:
        self._conninfo = conninfo
        self._place = place_of(conninfo)
        self._clock, self._keep_calls = clock, keep_calls
        self._sealer = Sealer(None)
        self._sealer.require()
        self._threads = WorkThreads(THREADS)
        self._idle: list[Db] = []
        self._lock = Lock()
        self._is_closed = False
        self._skew = 0.0

    @property
    def place(self) -> str:
        """The address of the database, without a password."""
        return self._place

    def prepare(self, workspace: str) -> None:
        """Connect for the first time, upgrade the schema, and see that the database is this workspace's.

        Raises:
            StorageError: the database cannot be used.
        """
        try:
            with self._connected(_Running()) as db:
                check_server(db, self.place)
                migrate(db, self.place)
                settle(db, self.place, workspace)
        except BaseException as error:
            self._close_idle()
            self._threads.close()
            if isinstance(error, psycopg.Error):
                raise explain(error, self.place, "") from error
            raise

    async def close(self) -> None:
        """Finish running work and close the connections. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            await self._threads.run(self._close_idle)
            self._threads.close()

    async def _write(self, work: Callable[[SqlSession], T]) -> T:
        running = _Running()
        return await self._run(partial(self._in_transaction, work, running), running)

    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(work)

    async def _run(self, work: Callable[[PostgresSession], T], running: _Running | None = None) -> T:
        if self._is_closed:
            raise StorageError(f"The database {self.place} is closed already.")
        running = running or _Running()
        return await self._threads.run(partial(self._until_done, work, running), running.interrupt)

    def _in_transaction(self, work: Callable[[SqlSession], T], running: _Running, session: PostgresSession) -> T:
        result: list[T] = []
        try:
            with session.transaction():
                result.append(work(session))
        except CommitLost as lost:
            if not self._was_committed(lost.transaction, running):
                raise psycopg.OperationalError("the connection is lost") from lost
        return result[0]

    def _until_done(self, work: Callable[[PostgresSession], T], running: _Running) -> T:
        """Run work until it is done, or the patience is over; every failure says what, where and how to fix it."""
        end, tries, surprises = monotonic() + PATIENCE_S, 0, 0
        while True:
            try:
                return self._once(work, running)
            except psycopg.Error as error:
                is_surprise = isinstance(error, psycopg.errors.UniqueViolation) and surprises < _SURPRISES
                surprises += is_surprise
                is_conflict = is_surprise or isinstance(error, _CONFLICTS)
                is_break = isinstance(error, _BREAKS) and is_passing(error, is_connected=running.was_connected)
                if not (is_conflict or is_break) or monotonic() > end:
                    raise self._explained(error) from error
                tries += 1
                shortest = _SHORT_S if is_conflict else _SHORT_S * 20
                pause = min(_LONG_S, shortest * 1.5**tries) * random.uniform(0.5, 1.0)  # noqa: S311  (a pause)
                if running.stopped.wait(pause):
                    raise explain(error, self.place) from error

    def _once(self, work: Callable[[PostgresSession], T], running: _Running) -> T:
        running.was_connected = False
        try:
            with self._connected(running) as db:
                return work(self._session(db))
        except CommitLost as lost:  # of a transaction that a query began, which may run twice
            raise psycopg.OperationalError("the connection is lost") from lost
        except Misfit as error:
            raise StorageError(str(error).replace("state file", "database"), fix="Restore it from a backup.") from error
        except UnicodeEncodeError as error:
            message = f"A text cannot be stored: {error.reason} at character {error.start}."
            raise StorageError(message, fix="Leave out what is not Unicode text.") from error

    def _explained(self, error: psycopg.Error) -> Exception:
        """Return the error for the caller; a statement that is wrong is a bug and stays what it is."""
        return (
            error
            if isinstance(error, psycopg.ProgrammingError) and error.sqlstate != "42501"
            else (explain(error, self.place))
        )

    def _session(self, db: Db) -> PostgresSession:
        clock = DatabaseClock(self._clock, self._skew)
        return PostgresSession(db, clock, self._keep_calls, self._sealer, words, vectors)

    def _was_committed(self, transaction: str, running: _Running) -> bool:
        """Ask the database about a transaction, waiting for the database, and for the end of the transaction.

        Raises:
            StorageError: it did not say in time.
        """

        def status(session: PostgresSession) -> str:
            try:
                return str(session.all("select pg_xact_status(?::xid8)", transaction)[0][0])
            except psycopg.errors.InvalidParameterValue:  # it crashed before it heard of it
                return "aborted"

        end, asking = monotonic() + PATIENCE_S, _Running(stopped=running.stopped)
        try:
            while (state := self._until_done(status, asking)) == "in progress":
                if monotonic() > end or running.stopped.wait(_SHORT_S * 20):
                    break
        except StorageError as error:
            raise StorageError(str(error).replace(UNSAVED, _UNKNOWN), fix=error.fix) from error
        if state == "in progress":
            raise StorageError(f"The database {self.place} has not ended a transaction. {_UNKNOWN}")
        return state == "committed"

    @contextmanager
    def _connected(self, running: _Running) -> Iterator[Db]:
        with self._lock:
            db = self._idle.pop() if self._idle else None
        if db is None:
            db = connect(self._conninfo)
            self._skew = measure_skew(db)
        running.use(db)
        try:
            yield db
        finally:
            running.use(None)
            is_whole = not db.closed and db.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            with self._lock:
                if is_whole and not self._is_closed:
                    self._idle.append(db)
                    db = None
            if db is not None:
                db.close()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

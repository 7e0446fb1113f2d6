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
from ..tables.threads import WorkThreads
from . import vectors, words
from .connection import CommitLost, DatabaseClock, Db, PostgresSession, connect, measure_skew
from .failures import explain, is_passing, place_of
from .migrate import check_server, migrate, settle

T = TypeVar("T")
THREADS: Final = 4
PATIENCE_S: Final = 30.0
_SHORT_S, _LONG_S = 0.005, 2.0
_CANCEL_S: Final = 2.0
_CONFLICTS: Final = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)


@dataclass(slots=True)
class _Running:
    """One piece of work, so that it can be interrupted alone."""

    stopped: Event = field(default_factory=Event)
    db: Db | None = None

    def interrupt(self) -> None:
        """End the statement, and the wait for the database."""
        self.stopped.set()
        if (db := self.db) is not None:
            with suppress(psycopg.Error):
                db.cancel_safe(timeout=_CANCEL_S)


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
        return await self._run(partial(self._in_transaction, work))

    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(work)

    async def _run(self, work: Callable[[PostgresSession], T]) -> T:
        if self._is_closed:
            raise StorageError(f"The database {self.place} is closed already.")
        running = _Running()
        return await self._threads.run(partial(self._until_done, work, running), running.interrupt)

    def _in_transaction(self, work: Callable[[SqlSession], T], session: PostgresSession) -> T:
        result: list[T] = []
        try:
            with session.transaction():
                result.append(work(session))
        except CommitLost as lost:
            if not self._was_committed(lost.transaction):
                raise psycopg.OperationalError("the connection is lost") from lost
        return result[0]

    def _until_done(self, work: Callable[[PostgresSession], T], running: _Running) -> T:
        """Run work until it is done, or the patience is over; every failure says what, where and how to fix it."""
        end, tries = monotonic() + PATIENCE_S, 0
        while True:
            try:
                return self._once(work, running)
            except psycopg.Error as error:
                passes = isinstance(error, _CONFLICTS) or (
                    isinstance(error, psycopg.OperationalError)
                    and is_passing(error, is_connected=running.db is not None)
                )
                if not passes or monotonic() > end:
                    raise self._explained(error) from error
                tries += 1
                shortest = _SHORT_S if isinstance(error, _CONFLICTS) else _SHORT_S * 20
                pause = min(_LONG_S, shortest * 1.5**tries) * random.uniform(0.5, 1.0)  # noqa: S311  (a pause)
                if running.stopped.wait(pause):
                    raise explain(error, self.place) from error

    def _once(self, work: Callable[[PostgresSession], T], running: _Running) -> T:
        running.db = None
        try:
            with self._connected(running) as db:
                return work(self._session(db))
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

    def _was_committed(self, transaction: str) -> bool:
        """Ask the database about a transaction, waiting for the database."""

        def status(session: PostgresSession) -> str:
            try:
                return str(session.all("select pg_xact_status(?::xid8)", transaction)[0][0])
            except psycopg.errors.InvalidParameterValue:  # it crashed before it heard of it
                return "aborted"

        while (found := self._until_done(status, _Running())) == "in progress":
            pass
        return found == "committed"

    @contextmanager
    def _connected(self, running: _Running) -> Iterator[Db]:
        with self._lock:
            db = self._idle.pop() if self._idle else None
        if db is None:
            db = connect(self._conninfo)
            self._skew = measure_skew(db)
        running.db = db
        try:
            yield db
        finally:
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

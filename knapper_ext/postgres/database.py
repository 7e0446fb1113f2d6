"""The database in use: its connections, and the handling of lost connections and conflicts.

A method with a conflict runs again. So does one with a lost connection: nothing of it was written or, if the connection
was lost during the commit, the database is asked. While the database restarts, methods wait, with growing pauses.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from agent_core.base.errors import StorageError
from agent_core.base.offload import WorkThreads
from agent_core.base.own_installation import origin
from agent_core.base.records import dataclass, field
from agent_core.base.seal import Sealer
from agent_core.storage.subject import FIX, Misfit, StoreClock
from agent_core.storage.tables import SqlSession, Tables

from . import search_index
from .connection import (
    SCHEMA,
    CommitLost,
    DatabaseClock,
    Db,
    PostgresSession,
    connect,
    measure_skew,
)

T = TypeVar("T")
THREADS: Final = 4
PATIENCE_S: Final = 30.0
_SHORT_S, _LONG_S = 0.005, 2.0
_CANCEL_S: Final = 2.0
_CONFLICTS: Final = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
# A row of `post`, which is not serializable, may appear between the search for its key and the insert.
_SURPRISES: Final = 3
_BREAKS: Final = (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout)
_UNKNOWN: Final = "Whether the change in progress is saved is not known; everything before it is."


@dataclass(slots=True)
class _Running:
    """One unit of work that can be interrupted individually: `db` is its connection while it has one."""

    stopped: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    db: Db | None = None
    was_connected: bool = False

    def interrupt(self) -> None:
        """End the current statement, or the wait for the database."""
        self.stopped.set()
        with self.lock:
            if self.db is not None:
                with suppress(psycopg.Error):
                    self.db.cancel_safe(timeout=_CANCEL_S)

    def use(self, db: Db | None) -> None:
        """Set or release the connection; after a release, other work on it is not interrupted."""
        with self.lock:
            self.db = db
        self.was_connected |= db is not None


class Database(Tables):
    """A database and its tables: work runs in a few threads, each with its own connection."""

    def __init__(self, conninfo: str, clock: StoreClock) -> None:
        self._conninfo = conninfo
        self._place = place_of(conninfo)
        self._clock = clock
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
        """Connect for the first time, upgrade the schema, and check that the database belongs to this workspace.

        Raises:
            StorageError: the database cannot be used.
        """
        try:
            with self._connection(_Running()) as db:
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

    async def _run(
        self, work: Callable[[PostgresSession], T], running: _Running | None = None
    ) -> T:
        if self._is_closed:
            raise StorageError(f"The database {self.place} is closed already.")
        running = running or _Running()
        return await self._threads.run(partial(self._until_done, work, running), running.interrupt)

    def _in_transaction(
        self, work: Callable[[SqlSession], T], running: _Running, session: PostgresSession
    ) -> T:
        result: list[T] = []
        try:
            with session.transaction():
                result.append(work(session))
        except CommitLost as lost:
            if not self._was_committed(lost.transaction, running):
                raise psycopg.OperationalError("the connection is lost") from lost
        return result[0]

    def _until_done(self, work: Callable[[PostgresSession], T], running: _Running) -> T:
        """Run work until it succeeds or the time is over; every failure says what, where and how to fix it."""
        end, tries, surprises = monotonic() + PATIENCE_S, 0, 0
        while True:
            try:
                return self._once(work, running)
            except psycopg.Error as error:
                is_surprise = (
                    isinstance(error, psycopg.errors.UniqueViolation) and surprises < _SURPRISES
                )
                surprises += is_surprise
                is_conflict = is_surprise or isinstance(error, _CONFLICTS)
                is_break = isinstance(error, _BREAKS) and is_passing(
                    error, is_connected=running.was_connected
                )
                if not (is_conflict or is_break) or monotonic() > end:
                    # A wrong statement is a bug, and its error is raised unchanged.
                    is_bug = (
                        isinstance(error, psycopg.ProgrammingError) and error.sqlstate != "42501"
                    )
                    raise (error if is_bug else explain(error, self.place)) from error
                tries += 1
                shortest = _SHORT_S if is_conflict else _SHORT_S * 20
                pause = min(_LONG_S, shortest * 1.5**tries) * random.uniform(0.5, 1.0)  # noqa: S311  (a pause)
                if running.stopped.wait(pause):
                    raise explain(error, self.place) from error

    def _once(self, work: Callable[[PostgresSession], T], running: _Running) -> T:
        running.was_connected = False
        try:
            with self._connection(running) as db:
                clock = DatabaseClock(self._clock, self._skew)
                return work(PostgresSession(db, clock, self._sealer, search_index))
        except (
            CommitLost
        ) as lost:  # of a transaction that a query began, which may safely run twice
            raise psycopg.OperationalError("the connection is lost") from lost
        except Misfit as error:
            fix = "Restore it from a backup." if error.fix == FIX else error.fix
            raise Misfit(error.message.replace("state file", "database"), fix=fix) from error

    def _was_committed(self, transaction: str, running: _Running) -> bool:
        """Ask the database about a transaction, waiting until the database is available and the transaction has ended.

        Raises:
            StorageError: there was no answer in time.
        """

        def status(session: PostgresSession) -> str:
            try:
                return str(session.all("select pg_xact_status(?::xid8)", transaction)[0][0])
            except (
                psycopg.errors.InvalidParameterValue
            ):  # it crashed before it knew of the transaction
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
    def _connection(self, running: _Running) -> Iterator[Db]:
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
            is_whole = (
                not db.closed and db.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            )
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


# The errors of the database as sentences: what is wrong, where, and how to fix it.

UNSAVED: Final = "The change in progress is not saved; everything before it is."
RESTARTING: Final = frozenset({"57P01", "57P02", "57P03", "25P03"})
"""SQLSTATEs after which a new connection may succeed: shut down, crashed, starting up, idle too long."""
_TOO_MANY: Final = (
    "53300",
    "too many clients",
    "remaining connection slots",
    "too many connections",
)
_REFUSED: Final = (
    "28P01",
    "28000",
    "authentication failed",
    "no pg_hba.conf entry",
    "no password supplied",
    'role "',
)
_MISSING: Final = ("3D000", "does not exist")
_NOBODY: Final = (
    "Connection refused",
    '" failed: No such file or directory',
)  # the second is for sockets
_CERTIFICATE: Final = ("certificate file", "private key file")
_UNKNOWN_HOST: Final = ("resolve host", "translate host name")
_UNREADABLE: Final = (
    "invalid connection option",
    "invalid integer value",
    "invalid port number",
    "invalid sslmode value",
    "Servname not supported",
)
_PASSING: Final = ("starting up", "shutting down", "in recovery mode", "not yet accepting")


_CAUSES: Final = (
    (
        _TOO_MANY,
        "has as many connections as it takes.",
        "End a process that uses it, or raise its max_connections: a process of Knapper takes up to six.",
    ),
    (
        _REFUSED,
        "does not let this user in ({short}).",
        "Check the user and the password: in the URL, in ~/.pgpass, or in PGPASSWORD.",
    ),
    (
        _CERTIFICATE,
        "needs a certificate that cannot be read ({short}).",
        "Correct sslcert, sslkey or sslrootcert in the URL.",
    ),
    (
        _MISSING,
        "is not there ({short}).",
        "Make it with `createdb`, or correct `url` in [storage] of knapper.toml.",
    ),
    (
        _UNREADABLE,
        "has an address that cannot be read ({short}).",
        "Correct the URL: postgresql://USER@HOST:PORT/NAME",
    ),
    (
        _NOBODY,
        "is not there: no server listens ({short}).",
        "Start the server, or correct the host and the port in the URL.",
    ),
    (
        _UNKNOWN_HOST,
        "cannot be found: nobody knows its host ({short}).",
        "Correct the host in the URL, or see that this machine is in the network.",
    ),
    (("25006",), "is read-only: a replica, or set so.", "Give the address of the primary server."),
    (
        ("42501",),
        "lacks a right for this user ({short}).",
        "Its owner types: grant create on database NAME to USER",
    ),
    (("53100", "53200"), "has no room ({short}).", "Free some space on its machine and try again."),
    (("54",), "cannot keep something as large as this ({short}).", "Make it shorter."),
    (
        ("57014",),
        "took longer than a minute to answer, or was interrupted.",
        "Type: knapper doctor",
    ),
    (
        ("22", "23"),
        "has rows that do not let this be saved ({short}).",
        "Type: knapper storage check",
    ),
)


def place_of(conninfo: str) -> str:
    """Return the address of a database, without a password."""
    parts = conninfo_to_dict(conninfo)
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def is_passing(error: psycopg.Error, *, is_connected: bool) -> bool:
    """Return whether another attempt may succeed; nothing of this one was written.

    Before a connection exists, an explicit refusal by the database is final: a wrong password or name.
    """
    if error.sqlstate is not None:
        return (
            error.sqlstate in RESTARTING or error.sqlstate.startswith("08") or _is(error, _TOO_MANY)
        )
    text = str(error)
    return (
        is_connected or "FATAL" not in text or any(part in text for part in (*_PASSING, *_TOO_MANY))
    )


def explain(error: psycopg.Error, place: str, outcome: str = UNSAVED) -> StorageError:
    """Return the error for the caller of the store; `outcome` says whether the work was saved."""
    short = str(error).strip().partition("\n")[0].strip() or type(error).__name__
    message, fix = next(
        ((message, fix) for signs, message, fix in _CAUSES if _is(error, signs)),
        (
            "does not answer ({short}).",
            "Check that it runs, and that this machine reaches it; then try again.",
        ),
    )
    return StorageError(
        f"The database {place} {message.format(short=short)} {outcome}".strip(), fix=fix
    )


def _is(error: psycopg.Error, signs: tuple[str, ...]) -> bool:
    """Check for an SQLSTATE or a class of them; an error of a new connection has only a text."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(signs)
    return any(sign in str(error) for sign in signs if not sign.isalnum())


# The numbered migrations of a database: each file runs once, in order, and a table records its number. The first one is
# the whole schema of its number: what earlier programs left is brought there by a program between the two.
# Several processes may start at once: an advisory lock lets one of them migrate. All tables are in a separate schema.

FOLDER: Final = Path(__file__).with_name("migrations")
OLDEST: Final = 13
_LOCK: Final = 0x546F6F6C  # "Tool"
_NO_EXTENSION: Final = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.UndefinedFile,
    psycopg.errors.InvalidSchemaName,
)


def check_server(db: Db, place: str) -> None:
    """Reject a server that the store cannot use.

    Raises:
        StorageError: it is too old, a replica, or uses another encoding than UTF-8.
    """
    if db.info.server_version < OLDEST * 10_000:
        message = f"The database {place} is PostgreSQL {db.info.server_version // 10_000}; {OLDEST} is the oldest"
        raise StorageError(f"{message} that works.", fix="Upgrade the server.")
    if db.execute("select pg_is_in_recovery()").fetchall()[0][0]:
        raise StorageError(
            f"The database {place} is a read-only replica.", fix="Give the address of the primary."
        )
    encoding = db.execute("show server_encoding").fetchall()[0][0]
    if encoding != "UTF8":
        fix = "Make one with: createdb --encoding=UTF8 --template=template0 NAME"
        raise StorageError(f"The database {place} keeps texts as {encoding}.", fix=fix)


def migrate(db: Db, place: str) -> None:
    """Upgrade the schema to the version that this program knows.

    Raises:
        StorageError: a newer program created it, or one that is too old.
    """
    paths = sorted(FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    files = {int(file.name[:4]): file for file in paths}
    latest = max(files)
    if schema(db) == latest:
        return
    db.execute("select pg_advisory_lock($1)", (_LOCK,))
    try:
        current = schema(db)
        if current > latest:
            message = f"The database {place} has schema {current}, and this program knows schemas up to {latest}."
            raise StorageError(message, fix=f"Upgrade the program; this copy came from {origin()}.")
        if current and current not in files:
            message = f"The database {place} has schema {current}, and this program knows schemas from {min(files)} on."
            fix = "Open it once with an earlier version of the program, which upgrades it."
            raise StorageError(message, fix=fix)
        for number in [number for number in files if number > current]:
            with db.transaction():
                if number == min(files):
                    db.execute(f"create schema if not exists {SCHEMA}")
                    db.execute(
                        "create table migration (number bigint primary key, at timestamptz not null default now())"
                    )
                db.execute(files[number].read_text(encoding="utf-8").encode())
                db.execute("insert into migration (number) values ($1)", (number,))
        with suppress(*_NO_EXTENSION):  # searches report that it is missing
            db.execute("create extension if not exists vector with schema public")
    finally:
        if not db.closed:
            db.execute("select pg_advisory_unlock($1)", (_LOCK,))


def settle(db: Db, place: str, workspace: str) -> None:
    """Record the workspace that owns the database, if none does yet: versions of functions belong to one folder.

    Raises:
        StorageError: it belongs to another workspace.
    """
    if not workspace:
        return
    with db.transaction():
        db.execute(
            "lock table home in exclusive mode"
        )  # of two workspaces at the same moment, one must be first
        db.execute(
            "insert into home select $1::text where not exists (select 1 from home)", (workspace,)
        )
    if (workspace,) not in db.execute("select workspace from home").fetchall():
        message = f"The database {place} has the functions of another folder than this workspace's."
        raise StorageError(
            message, fix="Work in that folder, or let this one share them: knapper storage join"
        )


def schema(db: Db) -> int:
    """Return the number of the last migration that ran; writes nothing."""
    if not _is_there(db, f"{SCHEMA}.migration"):
        return 0
    return int(db.execute("select coalesce(max(number), 0) from migration").fetchall()[0][0])


def _is_there(db: Db, table: str) -> bool:
    return db.execute("select to_regclass($1)", (table,)).fetchall()[0][0] is not None

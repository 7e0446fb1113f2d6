"""One connection to the database, and the operations of the store on it.

Transactions are serializable: if data that a method read changes before it commits, the method runs again. So the
tables need neither explicit locks nor an order of locking.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from time import time
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import RawCursor
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

from agent_core.base.own_environment import environment
from agent_core.base.records import dataclass
from agent_core.base.seal import Sealer
from agent_core.storage.subject import StoreClock, storable
from agent_core.storage.tables import Row, SearchIndex

SCHEMA: Final = "knapper"
CONNECT_S: Final = 5
STATEMENT_S: Final = 60
IDLE_S: Final = 5
_FLOATS_OID: Final = 1021  # real[]
_SAME_CLOCK_S: Final = 0.5
_ROLLBACKS: Final = count()
Db: TypeAlias = psycopg.Connection[Any]  # Any: rows of any columns

# A suspended process must not hold its locks, and a lost network must be noticed.
_OPTIONS: Final = {
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "knapper",
}
_SECRETS: Final = {"PGPASSWORD": "password", "PGPASSFILE": "passfile"}
_SETTINGS: Final = (
    f"set search_path = {SCHEMA}",  # not public: on an old server, any user may create functions there
    f"set idle_in_transaction_session_timeout = '{IDLE_S}s'",
    f"set statement_timeout = '{STATEMENT_S}s'",
    "set client_encoding = 'UTF8'",
    "set extra_float_digits = 1",
    "set timezone = 'UTC'",
)


class CommitLost(Exception):
    """The connection was lost during a commit: only the database knows whether the transaction succeeded."""

    def __init__(self, transaction: str) -> None:
        super().__init__(transaction)
        self.transaction = transaction


class _FloatsLoader(Loader):
    """Loads a `real[]` as little-endian float32, the store's form of vectors."""

    def load(self, data: Buffer) -> bytes:
        return array("f", map(float, bytes(data)[1:-1].split(b","))).tobytes()


def connect(conninfo: str) -> Db:
    """Return a connection in autocommit mode.

    Raises:
        psycopg.OperationalError: no connection is possible.
    """
    # What libpq would read from the environment if the program had not removed it.
    given = {option: environment().get(name, "") for name, option in _SECRETS.items()}
    parts = conninfo_to_dict(conninfo)
    options = {
        **_OPTIONS,
        **{option: value for option, value in given.items() if value and not parts.get(option)},
    }
    db: Db = psycopg.connect(conninfo, autocommit=True, cursor_factory=RawCursor, **options)  # type: ignore[arg-type]
    try:
        db.adapters.register_loader(_FLOATS_OID, _FloatsLoader)
        for setting in _SETTINGS:
            db.execute(setting)
    except BaseException:
        db.close()
        raise
    return db


@dataclass(frozen=True, slots=True)
class DatabaseClock:
    """The program's clock, corrected to the database's if this machine's differs, because due times are compared."""

    clock: StoreClock
    skew: float

    def now(self) -> float:
        """Return the database's time, in seconds since the epoch."""
        return self.clock.now() + self.skew

    def new_id(self) -> str:
        """Return a new UUIDv7."""
        return self.clock.new_id()


def measure_skew(db: Db) -> float:
    """Return how many seconds the database is ahead of this machine; less than half a second counts as 0."""
    before = time()
    there = db.execute("select extract(epoch from clock_timestamp())::double precision").fetchall()[
        0
    ][0]
    after = time()
    skew = float(there) - (before + after) / 2
    return skew if abs(skew) > (after - before) / 2 + _SAME_CLOCK_S else 0.0


@dataclass(frozen=True, slots=True)
class PostgresSession:
    """A connection as the tables use it."""

    db: Db
    clock: StoreClock
    sealer: Sealer
    index: SearchIndex

    def all(self, sql: str, *values: object) -> list[Row]:
        """Return every row."""
        cursor = self.db.execute(translate(sql), [escape(value) for value in values] or None)
        return _rows(cursor.fetchall()) if cursor.description else []

    def one(self, sql: str, *values: object) -> Row | None:
        """Return the first row."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> list[Row]:
        """Run a statement for each row of values, in few packets, and return the resulting rows."""
        values = [[escape(value) for value in row] for row in rows]
        if not values:
            return []
        found: list[Row] = []
        with self.db.cursor() as cursor:
            cursor.executemany(translate(sql), values, returning=True)
            while cursor.description:
                found += _rows(cursor.fetchall())
                if not cursor.nextset():
                    break
        return found

    def tables(self) -> list[str]:
        """Return the names of all tables."""
        found = "select tablename from pg_tables where schemaname = current_schema()"
        return [name for (name,) in self.all(found)]

    def together(self, *statements: tuple[object, ...]) -> list[list[Row]]:
        """Run statements, each a text and its values, in one round trip; return the rows of each."""
        with self.db.pipeline():
            cursors = [
                self.db.execute(translate(str(sql)), [escape(value) for value in values] or None)
                for sql, *values in statements
            ]
        return [_rows(cursor.fetchall()) if cursor.description else [] for cursor in cursors]

    def number_on(self, table: str, column: str) -> None:
        """Set the sequence of a column to its highest number."""
        highest = f"(select max({column}) from {SCHEMA}.{table})"  # noqa: S608  (our own names)
        self.all(
            f"select setval(pg_get_serial_sequence(?, ?), coalesce({highest}, 1))",
            f"{SCHEMA}.{table}",
            column,
        )

    def generation(self) -> str:
        """Return the number of times that something was forgotten."""
        return str(self.all("select times from forgotten"))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything in this block from one consistent snapshot."""
        self.db.execute("begin isolation level repeatable read read only")
        try:
            self.db.execute(
                f"set local idle_in_transaction_session_timeout = '{STATEMENT_S}s'"
            )  # it blocks nobody
            yield
        finally:
            self._undo()

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """Roll back everything that this block writes."""
        self.db.execute("begin isolation level repeatable read")
        try:
            self.db.execute("set local idle_in_transaction_session_timeout = 0")
            yield
        finally:
            self._undo()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit this block as a whole or not at all, isolated from other writers.

        Raises:
            CommitLost: the connection was lost during the commit.
            psycopg.errors.SerializationFailure: a conflicting write by another process; nothing was written.
        """
        begun = self.db.execute(
            "begin isolation level serializable; select pg_current_xact_id()::text"
        )
        begun.nextset()
        number = str(begun.fetchall()[0][0])
        try:
            yield
        except BaseException:
            self._undo()
            raise
        try:
            self.db.execute("commit")
        except psycopg.Error as error:
            if self.db.closed:
                raise CommitLost(number) from error
            raise

    @contextmanager
    def unsynced(self) -> Iterator[None]:
        """Commit this block without waiting for the disk."""
        self.db.execute("begin; set local synchronous_commit = off")
        try:
            yield
            self.db.execute("commit")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        """Roll back, with a different text each time.

        psycopg forgets its prepared statements at a rollback only if it has not seen the text before. It must forget
        them after a failed pipeline: some may never have reached the database.
        """
        with suppress(psycopg.Error):  # a lost connection rolls back by itself
            self.db.execute(f"rollback -- {next(_ROLLBACKS)}".encode())


def _rows(rows: list[Row]) -> list[Row]:
    return [tuple([unescape(value) for value in row]) for row in rows]


# Translation of SQL and text values for PostgreSQL.
# The tables use SQL that both databases read; the few functions that only SQLite has are defined in migration 0001.
# PostgreSQL cannot store a NUL in a text, so it is replaced by two characters; the first of them is escaped the same
# way.

_MARK: Final = re.compile(r"\?(\d*)")
_ESCAPE, _ITSELF, _NUL = "\ufdd0", "\ufdd0\ufdd1", "\ufdd0\ufdd2"


@lru_cache(maxsize=512)
def translate(sql: str) -> str:
    """Return a statement with PostgreSQL's placeholders and its name for 64-bit integers."""
    highest = 0

    def place(mark: re.Match[str]) -> str:
        nonlocal highest
        number = int(mark[1]) if mark[1] else highest + 1
        highest = max(highest, number)
        return f"${number}"

    return _MARK.sub(place, sql.replace("as integer)", "as bigint)"))


def escape(value: object) -> object:
    """Return a value as the database stores it."""
    value = storable(value)
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return value.replace(_ESCAPE, _ITSELF).replace("\0", _NUL)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [escape(text) for text in value]
    return value


def unescape(value: object) -> object:
    """Return the original value."""
    if isinstance(value, str) and _ESCAPE in value:
        return value.replace(_NUL, "\0").replace(_ITSELF, _ESCAPE)
    return value

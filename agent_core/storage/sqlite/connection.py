"""One connection to the state file: its schema, the operations of the store on it, and its errors as sentences.

Changes go to a write-ahead log and are synced on commit. A session is used by one thread at a time: the store's own.
Only errors from the environment are translated: a wrong statement is a bug, and its error stays unchanged.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from time import monotonic

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import origin
from agent_core.base.records import dataclass, field
from agent_core.base.seal import Sealer

from ..subject import StoreClock, storable
from ..tables import Row, SearchIndex

BUSY_MS = 10_000
PATIENCE_S = (
    60.0  # for one method of the store: a malicious file may make any statement run forever
)
LARGEST = 1 << 27  # bytes per row
_STEPS = 50_000  # virtual machine instructions between two checks of the clock: some milliseconds
# Features that this program does not use, but that a foreign file could exploit.
_SWITCHES = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
)
# apsw runs a text of several statements lazily and stops at the first row, so each pragma runs alone and is read fully.
PRAGMAS = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma trusted_schema = off",  # the file may come from a stranger's folder
    "pragma cell_size_check = on",
    "pragma journal_size_limit = 67108864",
    "pragma cache_size = -16000",  # KiB: a search of vectors reads a thousand rows across the file
)

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
SURROUNDINGS = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.AuthError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ProtocolError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.ConstraintError,
    apsw.TooBigError,
)
UNSAVED = "The change in progress is not saved; everything before it is."


@dataclass(frozen=True, slots=True)
class SqliteSession:
    """A connection, and the clock that provides times and ids."""

    db: apsw.Connection
    clock: StoreClock
    sealer: Sealer = field(default_factory=lambda: Sealer(None))
    index: SearchIndex = field(kw_only=True)

    def all(self, sql: str, *values: object) -> list[Row]:
        """Return every row."""
        return list(self.db.execute(sql, [*map(storable, values)]))

    def one(self, sql: str, *values: object) -> Row | None:
        """Return the first row."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> list[Row]:
        """Run a statement for each row of values, and return the resulting rows."""
        return list(self.db.executemany(sql, ([*map(storable, row)] for row in rows)))

    def together(self, *statements: tuple[object, ...]) -> list[list[Row]]:
        """Run statements, each a text and its values, one after another; return the rows of each."""
        return [self.all(str(sql), *values) for sql, *values in statements]

    def number_on(self, table: str, column: str) -> None:
        """Do nothing: SQLite tracks every number that is written."""

    def generation(self) -> str:
        """Return the version of the schema: forgetting ends with a VACUUM, which increments it."""
        return str(self.db.pragma("schema_version"))

    @contextmanager
    def snapshot(self, begin: str = "begin") -> Iterator[None]:
        """Read everything in this block from one consistent snapshot."""
        self.all(begin)
        try:
            yield
        finally:
            self._undo()

    def rehearsal(self) -> AbstractContextManager[None]:
        """Hold the write lock, and roll back everything that this block writes.

        A transaction that starts as a reader cannot write after another writer committed, so the lock must come first.
        """
        return self.snapshot("begin immediate")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock, so that nothing read in this block is stale; commit all of it or nothing."""
        self.all("begin immediate")
        try:
            yield
            self.all("commit")
        except BaseException:
            self._undo()
            raise

    @contextmanager
    def unsynced(self) -> Iterator[None]:
        """Commit this block without waiting for the disk."""
        self.all("pragma synchronous = normal")
        try:
            with self.transaction():
                yield
        finally:
            self.all("pragma synchronous = full")

    def _undo(self) -> None:
        # Some errors, such as a full disk, have already rolled back.
        if not self.db.get_autocommit():
            self.all("rollback")


def connect(path: Path) -> apsw.Connection:
    """Return an open state file with the schema of this program, created if missing."""
    db = apsw.Connection(str(path), statementcachesize=200)
    if db.readonly("main"):  # before the first statement, which would leave a log beside it
        abandon(db)
        raise apsw.ReadOnlyError("the file is write-protected")
    try:
        db.set_busy_timeout(BUSY_MS)
        for switch, value in _SWITCHES:
            db.config(switch, value)
        db.limit(apsw.SQLITE_LIMIT_LENGTH, LARGEST)
        with bounded(db):
            schema(db)  # before the first pragma that would write to a foreign file
            for pragma in PRAGMAS:
                list(db.execute(pragma))
            check_schema(db)
            migrate(db)
    except BaseException:
        abandon(db)
        raise
    return db


@contextmanager
def bounded(db: apsw.Connection, within_s: float | None = None) -> Iterator[None]:
    """End each statement in this block with `apsw.InterruptError` when the time is over."""
    end = monotonic() + (PATIENCE_S if within_s is None else within_s)
    db.set_progress_handler(lambda: monotonic() > end, _STEPS)
    try:
        yield
    finally:
        db.set_progress_handler(None)


def abandon(db: apsw.Connection) -> None:
    """Close without touching the files: a damaged file stays as it was found."""
    with suppress(apsw.ConnectionClosedError):
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.close(True)


def explain(error: apsw.Error, path: Path) -> StorageError:
    """Return the error for the caller of the store."""
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            message = f"The state file `{path}` is kept locked by another process."
            fix = "End the process that holds it, and try again."
        case (
            apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError()
        ):
            message = f"The state file `{path}` cannot be opened for writing ({error})."
            fix = "Make its folder writable for you, or work in another folder."
        case apsw.FullError():
            message = f"The disk of the state file `{path}` is full. {UNSAVED}"
            fix = "Free some space and try again."
        case apsw.InterruptError():
            message = f"The state file `{path}` took longer than a minute to answer, or was interrupted. {UNSAVED}"
            fix = "Type: knapper doctor"
        case apsw.ConstraintError():
            message = f"The state file `{path}` already has what this would add, or has lost what it needs ({error})."
            message = f"{message} {UNSAVED}"
            fix = "Another window may have saved the same: look, and try again. If it stays so: knapper storage check"
        case apsw.TooBigError():
            message = f"This is too large for the state file `{path}` ({error}). {UNSAVED}"
            fix = "Save it in smaller parts, or keep it in a file of its own."
        case _:
            try:
                space = f"{shutil.disk_usage(path.parent).free // 2**20} MiB free"
            except OSError:
                space = "its folder cannot be read"
            message = (
                f"The state file `{path}` cannot be read or written ({error}; {space}). {UNSAVED}"
            )
            fix = "Check the disk, its space and your limits on file size, and try again."
    return StorageError(message, fix=fix)


def explain_os(error: OSError, path: Path) -> StorageError:
    """Return the error for files around the state file that cannot be created or moved."""
    message = f"The state file `{path}` cannot be opened for writing ({error.strerror})."
    return StorageError(message, fix="Make its folder writable for you, or work in another folder.")


# The numbered migrations: each file runs once, in order, and the state file records its number. The first one is the
# whole schema of its number: what earlier programs left is brought there by a program between the two.
# Two processes may start at once: the number is read again under the write lock. A file with a schema unlike these
# files counts as damaged: its author may have replaced a table with anything.

MIGRATIONS = Path(__file__).with_name("migrations")
APPLICATION_ID = 0x546F6F6C  # "Tool": distinguishes our file from any other database
# The digest of the newest schema: saves creating one for comparison at each start.
NEWEST = "0a0a40fa72da202a4d017b3809cb14b5fe8facb9c15a88b1b1a06d258efe9425"
# Tables of sqlite-vec are created and dropped at run time; `search_index.py` checks them before use.
_ALWAYS = "not (tbl_name glob 'bits_[0-9]*' and type in ('table', 'index'))"


def migrate(db: apsw.Connection, folder: Path = MIGRATIONS) -> None:
    """Upgrade the schema to the version that this program knows.

    Raises:
        StorageError: a newer program created the file, or one that is too old.
    """
    files = _migration_files(folder)
    if schema(db) == max(files, default=0):
        return
    list(db.execute("begin immediate"))
    try:
        _run_migrations(db, _missing(schema(db), files, db.filename))
        list(db.execute(f"pragma application_id = {APPLICATION_ID}"))
        list(db.execute("commit"))
    except BaseException:
        if not db.get_autocommit():
            list(db.execute("rollback"))
        raise


def _missing(current: int, files: dict[int, Path], path: str) -> dict[int, Path]:
    latest = max(files)
    if current > latest:
        raise StorageError(
            f"The state file `{path}` has schema {current}, and this program knows schemas up to {latest}.",
            fix=f"Upgrade the program; this copy came from {origin()}.",
        )
    if current and current not in files:
        raise StorageError(
            f"The state file `{path}` has schema {current}, and this program knows schemas from {min(files)} on.",
            fix="Open it once with an earlier version of the program, which upgrades it.",
        )
    return {number: file for number, file in files.items() if number > current}


@cache
def blank() -> bytes:
    """Return the bytes of a new state file, created once in memory, where that is fastest."""
    db = apsw.Connection(":memory:")
    migrate(db)
    return db.serialize("main")


def schema(db: apsw.Connection) -> int:
    """Return the number of the last migration that ran; writes nothing.

    Raises:
        apsw.NotADBError: the file is not a state file of ours.
    """
    number = int(db.pragma("user_version") or 0)
    if (number and db.pragma("application_id") != APPLICATION_ID) or number < 0:
        raise apsw.NotADBError("another program's database")
    return number


def check_schema(db: apsw.Connection) -> None:
    """Compare the schema with the one that the migrations create, up to the number in the file.

    Raises:
        apsw.CorruptError: it differs.
    """
    digest = schema_digest(db)
    number = schema(db)
    files = _migration_files(MIGRATIONS)
    if digest == NEWEST and number == max(files):
        return
    if number and number not in files:
        return  # `migrate` says why it cannot be used
    fresh = apsw.Connection(":memory:")
    _run_migrations(fresh, {known: file for known, file in files.items() if known <= number})
    if digest != schema_digest(fresh):
        raise apsw.CorruptError("its tables are not those of this program")


def schema_digest(db: apsw.Connection) -> str:
    """Return the hash of all triggers and views, and of the permanent tables and indexes."""
    rows = sorted(
        map(
            repr,
            db.execute(f"select type, name, tbl_name, sql from sqlite_schema where {_ALWAYS}"),  # noqa: S608  (our own text)
        )
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def drop_unread(db: apsw.Connection, names: str) -> None:
    """Drop virtual tables, by a pattern for their names and parts, without running their modules.

    The modules would process whatever a stranger wrote into those parts.
    """
    ours = f"type = 'table' and name glob '{names}'"
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        list(db.execute("pragma writable_schema = on"))
        list(
            db.execute(
                f"delete from sqlite_schema where {ours} and sql like 'create virtual table%'"  # noqa: S608  (our own text)
            )
        )
        list(db.execute("pragma writable_schema = reset"))
    finally:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    for (name,) in list(db.execute(f"select name from sqlite_schema where {ours}")):  # noqa: S608  (our own text)
        list(db.execute(f'drop table "{name}"'))


def _migration_files(folder: Path) -> dict[int, Path]:
    """Return the files by their numbers, in order."""
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return {int(file.name[:4]): file for file in files}


def _run_migrations(db: apsw.Connection, files: dict[int, Path]) -> None:
    for number, file in files.items():
        list(db.execute(file.read_text(encoding="utf-8")))
        list(db.execute(f"pragma user_version = {number}"))

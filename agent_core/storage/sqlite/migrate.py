"""The numbered migrations: each file runs once, in order, and the state file records its number.

Two processes may start at once: the number is read again under the write lock. A file with a schema unlike these
files counts as damaged: its author may have replaced a table with anything.
"""

import hashlib
from functools import cache
from pathlib import Path

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import origin

FOLDER = Path(__file__).with_name("migrations")
APPLICATION_ID = 0x546F6F6C  # "Tool": distinguishes our file from any other database
# The digest of the newest schema: saves creating one for comparison at each start.
NEWEST = "10712604be790c0d22d89dd2581a26a3e4330f5f32b4b46de7f72b5425ae0c84"
# Tables of sqlite-vec are created and dropped at run time; `vector_index.py` checks them before use.
_ALWAYS = "not (tbl_name glob 'bits_[0-9]*' and type in ('table', 'index'))"


def migrate(db: apsw.Connection, folder: Path = FOLDER) -> None:
    """Upgrade the schema to the version that this program knows.

    Raises:
        StorageError: a newer program created the file.
    """
    latest = max(_files(folder), default=0)
    if schema(db) == latest:
        return
    list(db.execute("begin immediate"))
    try:
        _run(db, _missing(schema(db), latest, db.filename), folder)
        list(db.execute(f"pragma application_id = {APPLICATION_ID}"))
        list(db.execute("commit"))
    except BaseException:
        if not db.get_autocommit():
            list(db.execute("rollback"))
        raise


@cache
def blank() -> bytes:
    """Return the bytes of a new state file, created once in memory, where that is fastest."""
    db = apsw.Connection(":memory:")
    migrate(db)
    return db.serialize("main")


def _missing(current: int, latest: int, path: str) -> range:
    if current > latest:
        raise StorageError(
            f"The state file `{path}` has schema {current}, and this program knows schemas up to {latest}.",
            fix=f"Upgrade the program; this copy came from {origin()}.",
        )
    return range(current + 1, latest + 1)


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
    if digest == NEWEST and schema(db) == _latest():
        return
    fresh = apsw.Connection(":memory:")
    _run(fresh, range(1, min(schema(db), _latest()) + 1), FOLDER)
    if schema(db) <= _latest() and digest != schema_digest(fresh):
        raise apsw.CorruptError("its tables are not those of this program")


def schema_digest(db: apsw.Connection) -> str:
    """Return the hash of all triggers and views, and of the permanent tables and indexes."""
    rows = sorted(map(repr, db.execute(f"select type, name, tbl_name, sql from sqlite_schema where {_ALWAYS}")))  # noqa: S608  (our own text)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def drop_unread(db: apsw.Connection, names: str) -> None:
    """Drop virtual tables, by a pattern for their names and parts, without running their modules.

    The modules would process whatever a stranger wrote into those parts.
    """
    ours = f"type = 'table' and name glob '{names}'"
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        list(db.execute("pragma writable_schema = on"))
        list(db.execute(f"delete from sqlite_schema where {ours} and sql like 'create virtual table%'"))  # noqa: S608  (our own text)
        list(db.execute("pragma writable_schema = reset"))
    finally:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    for (name,) in list(db.execute(f"select name from sqlite_schema where {ours}")):  # noqa: S608  (our own text)
        list(db.execute(f'drop table "{name}"'))


def _latest() -> int:
    return max(_files(FOLDER), default=0)


def _files(folder: Path) -> dict[int, Path]:
    return {int(file.name[:4]): file for file in folder.glob("[0-9][0-9][0-9][0-9]_*.sql")}


def _run(db: apsw.Connection, numbers: range, folder: Path) -> None:
    files = _files(folder)
    for number in numbers:
        list(db.execute(files[number].read_text(encoding="utf-8")))
        list(db.execute(f"pragma user_version = {number}"))

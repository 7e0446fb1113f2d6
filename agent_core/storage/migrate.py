"""The numbered migrations: each file runs once, in order, and the state file remembers its number.

Two processes may start at once: the number is read again under the write lock.
"""

from pathlib import Path

import apsw

from ..errors import StorageError

FOLDER = Path(__file__).with_name("migrations")
APPLICATION_ID = 0x546F6F6C  # "Tool": tells our file from any other database


def migrate(db: apsw.Connection, folder: Path = FOLDER) -> None:
    """Bring the schema up to what this program knows.

    Raises:
        StorageError: a newer program has made the file.
    """
    files = {int(file.name[:4]): file for file in folder.glob("[0-9][0-9][0-9][0-9]_*.sql")}
    latest = max(files, default=0)
    if schema(db) == latest:
        return
    list(db.execute("begin immediate"))
    try:
        for number in _missing(schema(db), latest, db.filename):
            list(db.execute(files[number].read_text(encoding="utf-8")))
            list(db.execute(f"pragma user_version = {number}"))
        list(db.execute(f"pragma application_id = {APPLICATION_ID}"))
        list(db.execute("commit"))
    except BaseException:
        if not db.get_autocommit():
            list(db.execute("rollback"))
        raise


def _missing(found: int, latest: int, path: str) -> range:
    if found > latest:
        raise StorageError(
            f"The state file `{path}` has schema {found}, and this program knows schemas up to {latest}.",
            mend="Upgrade with `pip install --upgrade toolwright`.",
        )
    return range(found + 1, latest + 1)


def schema(db: apsw.Connection) -> int:
    """The number of the last migration that ran; nothing is written.

    Raises:
        apsw.NotADBError: the file is no state file of ours.
    """
    number = db.pragma("user_version")
    if number and db.pragma("application_id") != APPLICATION_ID:
        raise apsw.NotADBError("another program's database")
    return int(number or 0)

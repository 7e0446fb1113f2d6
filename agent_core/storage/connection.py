"""One connection to the state file, and what a method of the store does with it.

Everything is written ahead to a log and synced on commit. A session is used by one thread at a
time: the store's own.
"""

import json
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import apsw

from sandbox.foreign import DEEPEST_ROW, LOOSE, read_json

from ..errors import StorageError
from .migrate import migrate, schema

BUSY_MS = 10_000
KEEP_CALLS = 100
_LONGEST_ROW = 1 << 30  # characters, as SQLite has it
# apsw runs a text of several statements lazily and stops at the first row, so each pragma goes alone and is read out.
PRAGMAS = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma trusted_schema = off",  # the file may come from somebody else's folder
    "pragma cell_size_check = on",
    "pragma journal_size_limit = 67108864",
)


class Clock(Protocol):
    """What the store needs of `agent_core.clock.Clock`, so that tests may hand in less."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def new_id(self) -> str:
        """A fresh uuid7."""


@dataclass(frozen=True, slots=True)
class Session:
    """A connection, the clock that gives names and times, and how many calls of a function are kept one by one.

    `kept` holds what searches keep of the file in memory.
    """

    db: apsw.Connection
    clock: Clock
    keep_calls: int = KEEP_CALLS
    kept: dict[Hashable, object] = field(default_factory=dict)

    def all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:  # Any: columns as SQLite types them
        """Every row."""
        return list(self.db.execute(sql, values))

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:  # Any: columns as SQLite types them
        """The first row."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything that is read in here is of one moment."""
        self.all("begin")
        try:
            yield
        finally:
            self._undo()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The write lock first, so that nothing read in here can be stale; all is kept or nothing."""
        self.all("begin immediate")
        try:
            yield
            self.all("commit")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        # Some errors, a full disk among them, have rolled back already.
        if not self.db.get_autocommit():
            self.all("rollback")


def connect(path: Path) -> apsw.Connection:
    """An open state file at the schema of this program; a new one where there was none."""
    db = apsw.Connection(str(path), statementcachesize=200)
    try:
        db.set_busy_timeout(BUSY_MS)
        schema(db)  # before the first pragma that would write into somebody else's file
        for pragma in PRAGMAS:
            list(db.execute(pragma))
        migrate(db)
    except BaseException:
        abandon(db)
        raise
    return db


def abandon(db: apsw.Connection) -> None:
    """Close without touching the files: what is damaged is kept as it was found."""
    with suppress(apsw.ConnectionClosedError):
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.close(True)


def parse_row(text: str) -> Any:  # Any: JSON
    """Return the value of a row, which somebody else may have written.

    Raises:
        Malformed: the row holds none; for the store that is damage.
    """
    return read_json(text, LOOSE, most=_LONGEST_ROW, deepest=DEEPEST_ROW)


def dump(value: object) -> str:
    """JSON as short as it gets; text that UTF-8 cannot hold (a lone surrogate) is escaped.

    Raises:
        StorageError: the value has no JSON form.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"A {type(value).__name__} cannot be stored as JSON: {error}.") from error
    return text

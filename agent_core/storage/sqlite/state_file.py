"""The state file in use: one thread that touches it, one transaction per change.

A file that is found damaged while it is in use is put aside, and a new one begun: what was under way is refused.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from agent_core.base.errors import StorageError

from ..subject import Misfit
from ..tables.session import SqlSession
from ..tables.tables import Tables
from ..work_threads import WorkThreads
from . import fts
from .connection import DAMAGE, SURROUNDINGS, SqliteSession, abandon, bounded, explain
from .recovery import StatePlace, replace

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Share(Generic[T]):
    """A small change that may be committed together with others; `result` has what it returned, once it is on disk."""

    work: Callable[[SqlSession], T]
    result: list[T] = field(default_factory=list)
    was_tried: bool = False


class StateFile(Tables):
    """A state file and its tables: their work runs in one thread, and what fails says what, where and how to fix it."""

    def __init__(self, path: Path, session: SqliteSession, recovered: str | None) -> None:
        self.path = path
        self._session = session
        self._recovered = recovered
        self._inode = _inode(path)
        self._writer = WorkThreads()
        self._shares: deque[_Share[Any]] = deque()  # Any: each returns its own
        self._is_closed = False

    async def close(self) -> None:
        """Finish running work and close the file. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            await self._writer.run(self._session.db.close)
            self._writer.close()

    async def _write(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(partial(self._in_transaction, work))

    async def _write_together(self, work: Callable[[SqlSession], T]) -> T:
        """Run a small change in a transaction with all such changes that wait by then: the disk is asked once."""
        self._must_be_open()
        share = _Share(work)
        self._shares.append(share)
        return await self._writer.run(partial(self._shared, share), self._interrupt)

    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(lambda: work(self._session))

    async def _run(self, work: Callable[[], T]) -> T:
        self._must_be_open()
        return await self._writer.run(partial(self._guarded, work), self._interrupt)

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise StorageError(f"The state file `{self.path}` is closed already.")

    def _interrupt(self) -> None:
        with suppress(apsw.ConnectionClosedError):
            self._session.db.interrupt()

    def _in_transaction(self, work: Callable[[SqlSession], T]) -> T:
        with self._session.transaction():
            return work(self._session)

    def _shared(self, share: _Share[T]) -> T:
        """Return what a change returned; of changes that were tried together, and one of which failed, each is done
        alone.
        """
        if not share.was_tried:
            shares = []
            while self._shares:
                shares.append(self._shares.popleft())
                shares[-1].was_tried = True
            self._guarded(partial(self._try_together, shares))
        return share.result[0] if share.result else self._guarded(partial(self._in_transaction, share.work))

    def _try_together(self, together: list[_Share[Any]]) -> None:  # Any: as above
        with suppress(Exception):  # each is done alone then, and raises its own
            results = self._in_transaction(lambda session: [share.work(session) for share in together])
            for share, result in zip(together, results, strict=True):
                share.result.append(result)

    def _guarded(self, work: Callable[[], T]) -> T:
        """Run work in the store's thread and turn every failure into an error with what, where and how to fix it."""
        try:
            if self._is_gone():
                raise self._reopen("was taken away or replaced while it was in use")
            with bounded(self._session.db):
                return self._with_index(work)
        except (*DAMAGE, Misfit) as error:
            raise self._reopen("is damaged") from error
        except SURROUNDINGS as error:
            raise explain(error, self.path) from error
        except OverflowError as error:
            message = (
                f"A number is too large for `{self.path}`, which holds whole numbers up to 9,223,372,036,854,775,807."
            )
            raise StorageError(f"{message} Nothing was changed.", fix="Give a smaller one.") from error
        except UnicodeEncodeError as error:
            message = f"A text cannot be stored: {error.reason} at character {error.start}."
            raise StorageError(message, fix="Leave out what is not Unicode text.") from error

    def _with_index(self, work: Callable[[], T]) -> T:
        """Do the work; where the index of words is damaged, which is derived, it is dropped and the work done anew."""
        try:
            return work()
        except (apsw.CorruptError, apsw.SQLError) as error:
            if not fts.is_damage(error):
                raise
            with self._session.transaction():
                fts.forget(self._session.db)
            return work()

    def _is_gone(self) -> bool:
        # A file that is moved or deleted goes on taking writes, which nobody would ever find again.
        try:
            return _inode(self.path) != self._inode
        except OSError:
            return True

    def _reopen(self, reason: str) -> StorageError:
        abandon(self._session.db)
        inode = self._inode
        try:
            place = StatePlace(self.path, self._session.clock, self._session.sealer)
            db, self._recovered = replace(place, is_damaged=lambda: self.path.exists() and _inode(self.path) == inode)
        except SURROUNDINGS as error:
            return explain(error, self.path)
        except OSError as error:
            return StorageError(f"The state file `{self.path}` {reason}, and none can be made: {error.strerror}.")
        self._session = replace_fields(self._session, db=db)
        self._inode = _inode(self.path)
        return StorageError(
            f"The state file `{self.path}` {reason}. {self._recovered}",
            fix="Send it again: the change in progress was not saved.",
        )


def _inode(path: Path) -> int:
    return os.stat(path).st_ino  # noqa: PTH116 a tenth of Path.stat's time, on every write

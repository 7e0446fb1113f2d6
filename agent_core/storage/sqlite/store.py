"""The store in one SQLite file: one thread that touches it, one transaction per method.

Several processes may use one file. A file that is found damaged, at start or later, is put aside
and a new one begun: `recovered` then says so, and what was under way is refused.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.seal import Sealer

from ..call_store import KEEP_CALLS
from ..rows import FIX, Misfit
from ..subject import StoreClock, Write
from . import word_index
from .agent_tables import AgentTables
from .approval_tables import ApprovalTables
from .block_tables import BlockTables
from .call_tables import CallTables
from .connection import DAMAGE, SURROUNDINGS, SqlSession, abandon, bounded, explain, explain_os
from .function_tables import FunctionTables
from .passage_tables import PassageTables
from .recovery import StatePlace, open_or_replace, replace
from .tables import apply, change, query
from .turn_tables import TurnTables

T = TypeVar("T")
OLDEST_SQLITE: Final = (3, 54)  # the first that deletes nothing at the word of a journal
GRACE_S: Final = 2.0


class WriterThread:
    """The one thread that touches the connection: work runs in the order of submission, to its end."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="toolwright-storage")

    async def run(self, work: Callable[[], T], interrupt: Callable[[], None] = lambda: None) -> T:
        """Return the result of the work. A cancelled waiter leaves when the work is done, so nothing runs unobserved.

        Work that takes long then is interrupted.
        """
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not (await asyncio.wait([future], timeout=GRACE_S))[0]:
                interrupt()
                await asyncio.wait([future])
            raise

    def close(self) -> None:
        """End the thread when its work is done."""
        self._executor.shutdown(wait=False)


class SqliteStore(TurnTables, FunctionTables, CallTables, ApprovalTables, BlockTables, PassageTables, AgentTables):
    """`Store` on SQLite: the sum of its tables."""

    def __init__(self, path: Path, session: SqlSession, recovered: str | None) -> None:
        self.path = path
        self._session = session
        self._recovered = recovered
        self._inode = _inode(path)
        self._writer = WriterThread()
        self._is_closed = False

    @classmethod
    def open(cls, path: Path, clock: StoreClock, keep_calls: int = KEEP_CALLS) -> "SqliteStore":
        """Open the store in this file, a new one if there is none.

        Raises:
            StorageError: the file cannot be opened, or a newer program has made it.
        """
        try:
            _check_library()
            sealer = Sealer(None)
            db, recovered = open_or_replace(StatePlace(path, clock, sealer))
        except SURROUNDINGS as error:
            raise explain(error, path) from error
        except OSError as error:
            raise explain_os(error, path) from error
        return cls(path, SqlSession(db, clock, keep_calls, sealer=sealer), recovered)

    @property
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be put aside."""
        return self._recovered

    async def now(self) -> float:
        """Return the time of this machine's clock."""
        return self._session.clock.now()

    @change
    def apply(self, session: SqlSession, writes: Sequence[Write]) -> None:
        """Apply all of these writes, or none."""
        apply(session, writes)

    @query
    def check(self, session: SqlSession) -> str | None:
        """Return the first finding of SQLite's own check, or of the foreign keys."""
        result = session.all("pragma quick_check(1)")[0][0]
        if result != "ok":
            return str(result)
        loose = session.one("pragma foreign_key_check")
        # Entries have no foreign key to their turn: see migrations/0006.
        loose = loose or session.one("select 'entry' from entry where turn not in (select seq from turn) limit 1")
        return f"a row of `{loose[0]}` points at nothing" if loose else None

    async def close(self) -> None:
        """Finish running work and close the file. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            await self._writer.run(self._session.db.close)
            self._writer.close()

    async def __aenter__(self) -> "SqliteStore":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _write(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(partial(self._in_transaction, work))

    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(lambda: work(self._session))

    async def _run(self, work: Callable[[], T]) -> T:
        if self._is_closed:
            raise StorageError(f"The state file `{self.path}` is closed already.")
        return await self._writer.run(partial(self._guarded, work), self._interrupt)

    def _interrupt(self) -> None:
        with suppress(apsw.ConnectionClosedError):
            self._session.db.interrupt()

    def _in_transaction(self, work: Callable[[SqlSession], T]) -> T:
        with self._session.transaction():
            return work(self._session)

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
            message = f"A number in the state file `{self.path}` is larger than this program writes: {error}."
            raise StorageError(message, fix=FIX) from error
        except UnicodeEncodeError as error:
            message = f"A text cannot be stored: {error.reason} at character {error.start}."
            raise StorageError(message, fix="Leave out what is not Unicode text.") from error

    def _with_index(self, work: Callable[[], T]) -> T:
        """Do the work; where the index of words is damaged, which is derived, it is dropped and the work done anew."""
        try:
            return work()
        except (apsw.CorruptError, apsw.SQLError) as error:
            if not word_index.is_damage(error):
                raise
            with self._session.transaction():
                word_index.forget(self._session.db)
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
        self._session = SqlSession(db, place.clock, self._session.keep_calls, sealer=place.sealer)
        self._inode = _inode(self.path)
        return StorageError(
            f"The state file `{self.path}` {reason}. {self._recovered}",
            fix="Send it again: the change in progress was not saved.",
        )


def _check_library() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        message = f"SQLite {version} is too old to open files that others may have made: {needed} is needed."
        raise StorageError(message, fix="Type: python -m pip install --upgrade apsw")


def _inode(path: Path) -> int:
    return os.stat(path).st_ino  # noqa: PTH116 a tenth of Path.stat's time, on every write

"""The store in one SQLite file: all subjects combined, and how it is opened.

Several processes may use one file. A file that is found damaged, at start or later, is set aside and a new one created;
`recovered` then has a message.
"""

import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace as replace_fields
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, final

import apsw

from agent_core.base.errors import AgentBusy, StorageError
from agent_core.base.offload import WorkThreads
from agent_core.base.own_installation import reinstall
from agent_core.base.records import dataclass, field
from agent_core.base.seal import Sealer

from ..folder import busy_agent, lock_agent
from ..forget_store import Erasure, erase
from ..names import agent_of, is_main
from ..store import Store
from ..subject import StoreClock
from ..tables import SqlSession, Tables, query
from ..turn_store import Post, Posted, post_event, posted
from . import search_index
from .connection import DAMAGE, SURROUNDINGS, SqliteSession, abandon, bounded, explain, explain_os
from .recovery import StatePlace, open_or_replace, replace

# The state file in use: one thread accesses it, with one transaction per change.
# If it is found damaged during use, it is set aside and a new one created; the change in progress fails.

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Share(Generic[T]):
    """A small change that may be committed together with others; `result` has its result once it is on disk."""

    work: Callable[[SqlSession], T]
    result: list[T] = field(default_factory=list)
    was_tried: bool = False


class StateFile(Tables):
    """A state file and its tables: work runs in one thread, and every failure says what, where and how to fix it."""

    def __init__(self, path: Path, session: SqliteSession, recovered: str | None) -> None:
        self.path = path
        self._session = session
        self._recovered = recovered
        self._inode = _inode(path)
        self._writer = WorkThreads()
        self._shares: deque[_Share[Any]] = deque()  # Any: each has its own result
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
        """Run a small change in one transaction with all such changes that are waiting, so the disk syncs once."""
        self._must_be_open()
        share = _Share(work)
        self._shares.append(share)
        return await self._writer.run(partial(self._result_of, share), self._interrupt)

    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        return await self._run(lambda: work(self._session))

    async def _run(self, work: Callable[[], T]) -> T:
        self._must_be_open()
        return await self._writer.run(partial(self._guard, work), self._interrupt)

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise StorageError(f"The state file `{self.path}` is closed already.")

    def _interrupt(self) -> None:
        with suppress(apsw.ConnectionClosedError):
            self._session.db.interrupt()

    def _in_transaction(self, work: Callable[[SqlSession], T]) -> T:
        with self._session.transaction():
            return work(self._session)

    def _result_of(self, share: _Share[T]) -> T:
        """Return the result of a change; if a combined transaction failed, each of its changes runs alone."""
        if not share.was_tried:
            shares = []
            while self._shares:
                shares.append(self._shares.popleft())
                shares[-1].was_tried = True
            self._guard(partial(self._try_together, shares))
        return (
            share.result[0]
            if share.result
            else self._guard(partial(self._in_transaction, share.work))
        )

    def _try_together(self, together: list[_Share[Any]]) -> None:  # Any: as above
        with suppress(Exception):  # each runs alone then and raises its own error
            results = self._in_transaction(
                lambda session: [share.work(session) for share in together]
            )
            for share, result in zip(together, results, strict=True):
                share.result.append(result)

    def _guard(self, work: Callable[[], T]) -> T:
        """Run work in the store's thread and turn every failure into an error with what, where and how to fix it."""
        try:
            if self._is_gone():
                raise self._reopen("was taken away or replaced while it was in use")
            with bounded(self._session.db):
                return self._with_index(work)
        except DAMAGE as error:
            raise self._reopen("is damaged") from error
        except SURROUNDINGS as error:
            raise explain(error, self.path) from error
        except OverflowError as error:
            message = (
                f"A number is too large for `{self.path}`, which holds whole numbers up to "
                f"9,223,372,036,854,775,807."
            )
            raise StorageError(
                f"{message} Nothing was changed.", fix="Give a smaller one."
            ) from error

    def _with_index(self, work: Callable[[], T]) -> T:
        """Run work; if the word index is damaged, drop it, since it is derived, and run the work again."""
        try:
            return work()
        except (apsw.CorruptError, apsw.SQLError) as error:
            if not search_index.is_damage(error):
                raise
            with self._session.transaction():
                search_index.forget_words(self._session.db)
            return work()

    def _is_gone(self) -> bool:
        # A file that was moved or deleted still accepts writes, but nobody would find them again.
        try:
            return _inode(self.path) != self._inode
        except OSError:
            return True

    def _reopen(self, reason: str) -> StorageError:
        abandon(self._session.db)
        inode = self._inode
        try:
            place = StatePlace(self.path, self._session.clock, self._session.sealer)
            db, self._recovered = replace(
                place, is_damaged=lambda: self.path.exists() and _inode(self.path) == inode
            )
        except SURROUNDINGS as error:
            return explain(error, self.path)
        except OSError as error:
            return StorageError(
                f"The state file `{self.path}` {reason}, and none can be made: {error.strerror}."
            )
        self._session = replace_fields(self._session, db=db)
        self._inode = _inode(self.path)
        return StorageError(
            f"The state file `{self.path}` {reason}. {self._recovered}",
            fix="Send it again: the change in progress was not saved.",
        )


def _inode(path: Path) -> int:
    return os.stat(path).st_ino  # noqa: PTH116 a tenth of Path.stat's time, on every write


OLDEST_SQLITE: Final = (3, 54)  # the first that deletes no file named in a journal


@dataclass(eq=False, slots=True)
class _Lock:
    """The right to run a conversation: its locked file, None while it is lent; `stand` is the store's, when it was."""

    folder: Path
    file: FileIO | None = None
    stand: tuple[int, int] | None = None

    def release(self) -> None:
        """Let another process have it."""
        if self.file is not None:
            self.file.close()
            self.file = None


@final
class SqliteStore(StateFile, Store):
    """`Store` on SQLite."""

    def __init__(self, path: Path, session: SqliteSession, recovered: str | None) -> None:
        super().__init__(path, session, recovered)
        self._locks: dict[str, _Lock] = {}

    @classmethod
    def open(cls, path: Path, clock: StoreClock) -> "SqliteStore":
        """Open the store in this file, a new one if there is none.

        Raises:
            StorageError: the file cannot be opened, or a newer program created it.
        """
        try:
            version = apsw.sqlite_lib_version()
            if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
                needed = ".".join(map(str, OLDEST_SQLITE))
                message = f"SQLite {version} is too old to open files that others may have made: {needed} is needed."
                raise StorageError(message, fix=f"Type: {reinstall('apsw')}")
            sealer = Sealer(None)
            db, recovered = open_or_replace(StatePlace(path, clock, sealer))
            scrub_if_due(db, path)
        except SURROUNDINGS as error:
            raise explain(error, path) from error
        except OSError as error:
            raise explain_os(error, path) from error
        session = SqliteSession(db, clock, sealer, index=search_index)
        return cls(path, session, recovered)

    @property
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be set aside."""
        return self._recovered

    @property
    def place(self) -> str:
        """The address of the file."""
        return f"sqlite:///{self.path}"

    @query
    def vacuum(self, session: Any) -> None:  # Any: its own session
        """Rewrite the file."""
        scrub(session.db, self.path)

    @property
    def owner(self) -> str:
        """The name of this process."""
        return f"process {os.getpid()}"

    @asynccontextmanager
    async def hold_line(
        self, folder: Path, line: str, *, may_wait: bool = False
    ) -> AsyncIterator[None]:
        """Hold a lock in the state folder."""
        if line in self._locks:
            raise busy_agent(line)
        lock = self._locks[line] = _Lock(folder)
        try:
            try:
                lock.file = lock_agent(folder, line)
            except AgentBusy:
                if not may_wait:
                    raise
            yield
        finally:
            lock.release()
            del self._locks[line]

    async def lend(self, line: str) -> None:
        """Release the lock, and remember what the file was then."""
        lock = self._locks[line]
        if lock.file is not None:
            lock.stand = None
            try:
                lock.stand = await self._stand()
            finally:
                lock.release()

    async def take_back(self, line: str) -> bool:
        """Lock it again; return whether nobody else has written to the file meanwhile."""
        lock = self._locks[line]
        # Who deletes an agent looks through its conversations behind the gate.
        passing = nullcontext() if is_main(line) else self.gate(lock.folder, agent_of(line))
        async with passing:
            lock.file = lock_agent(lock.folder, line)
        try:
            return lock.stand == await self._stand()
        except BaseException:
            lock.release()
            raise

    def has(self, line: str) -> bool:
        """Return whether its lock is ours now."""
        return line in self._locks and self._locks[line].file is not None

    async def _stand(self) -> tuple[int, int]:
        """Return what changes when another process writes, or when the file is replaced."""
        return await self._read(
            lambda session: (self._inode, session.all("pragma data_version")[0][0])
        )

    async def now(self) -> float:
        """Return the time of this machine's clock."""
        return self._session.clock.now()

    async def post(self, post: Post) -> str:
        """Return the id of the event, or of the first one with its key."""
        return await self._write_together(lambda session: post_event(session, post))

    async def post_after(self, post: Post) -> Posted:
        """Post an event, and return its record."""
        return await self._write_together(
            lambda session: posted(session, post_event(session, post), post.line)
        )

    @query
    def check(self, session: SqlSession) -> str | None:
        """Return the first finding of SQLite's own check, or of the foreign keys."""
        result = session.all("pragma quick_check(1)")[0][0]
        if result != "ok":
            return str(result)
        loose = session.one("pragma foreign_key_check")
        # Entries have no foreign key to their turn: see `entry` in migrations/0023.
        loose = loose or session.one(
            "select 'entry' from entry where turn not in (select seq from turn) limit 1"
        )
        return f"a row of `{loose[0]}` points at nothing" if loose else None

    @query
    def forget(self, session: Any, erasure: Erasure) -> dict[str, int]:  # Any: its own session
        """Forget in a transaction, then scrub the file.

        Raises:
            StorageError: it is forgotten, but another process's use of the file prevents scrubbing.
        """
        Path(f"{self.path}{SCRUB}").touch(mode=0o600)
        session.all("pragma secure_delete = on")
        with session.transaction():
            counts = erase(session, erasure)
            search_index.forget_words(session.db)
            search_index.forget_signs(session.db)
        try:
            scrub(session.db, self.path)
        except (apsw.BusyError, apsw.LockedError) as error:
            message = f"It is forgotten, but its bytes are still in `{self.path}`, which another process reads."
            raise StorageError(
                message, fix="End that process: the next command here writes the file anew."
            ) from error
        return counts


# Rewriting of a state file after forgetting, so that none of the forgotten data remains in it.
# A deleted row leaves its bytes in the file until the space is reused. So deleted data is overwritten, the file is
# vacuumed, and its log emptied. A mark next to the file says that this is in progress: if the program ends in between,
# the next opening does it.

SCRUB: Final = ".scrub"
_SCRUB_S: Final = 3_600.0


def scrub(db: apsw.Connection, path: Path) -> None:
    """Rewrite the file, so that no bytes of deleted rows remain in it, and empty its log.

    Wait up to `BUSY_MS` for readers: while one reads an earlier state, the log keeps the forgotten data.

    Raises:
        apsw.BusyError: a process still reads or writes; the mark stays.
    """
    with bounded(db, _SCRUB_S):
        list(db.execute("vacuum"))
        # A reader is reported in this row, not by an error.
        ((is_busy, _, _),) = db.execute("pragma wal_checkpoint(truncate)")
    if is_busy:
        raise apsw.BusyError("the log is read")
    Path(f"{path}{SCRUB}").unlink(missing_ok=True)


def scrub_if_due(db: apsw.Connection, path: Path) -> None:
    """Scrub a file if that was begun but not completed; if others use it, leave it for later."""
    if Path(f"{path}{SCRUB}").exists():
        with suppress(apsw.BusyError, apsw.LockedError):
            scrub(db, path)

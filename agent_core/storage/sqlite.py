"""The embedded store: one SQLite file, one thread that touches it, one transaction per method.

Several processes may use one file. A file that is found damaged, at start or later, is put aside
and a new one begun: `recovered` then says so, and what was under way is refused.
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.seal import Sealer

from . import journal, ledger, lookups, word_index
from .connection import KEEP_CALLS, SqlSession, StoreClock, abandon, bounded
from .faults import DAMAGE, SURROUNDINGS, explain, explain_os
from .memory_store import MemoryStore
from .questions import Questions
from .recorded import Recorded
from .recovery import StatePlace, open_or_replace, replace
from .rows import FIX, Misfit
from .sqlite_memory import SqliteMemory
from .store import (
    SAID,
    AgentRow,
    Appended,
    ClaimedTurn,
    Due,
    Entry,
    Inbound,
    OpenWrite,
    Post,
    ReadingRow,
    VersionRow,
    YesRow,
)
from .tallies import CallRow, KindRow, Stats
from .thread import WriterThread
from .writes import Write

T = TypeVar("T")
OLDEST_SQLITE: Final = (3, 54)  # the first that deletes nothing at the word of a journal


def open_store(path: Path, *, clock: StoreClock, keep_calls: int = KEEP_CALLS) -> "SqliteStore":
    """Open the store in this file, a new one if there is none. `keep_calls` calls of a function are kept one by one.

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
    return SqliteStore(path, SqlSession(db, clock, keep_calls, sealer=sealer), recovered)


def _check_library() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        message = f"SQLite {version} is too old to open files that others may have made: {needed} is needed."
        raise StorageError(message, fix="Type: python -m pip install --upgrade apsw")


class SqliteStore:
    """`Store` on SQLite, created by `open_store`."""

    def __init__(self, path: Path, session: SqlSession, recovered: str | None) -> None:
        self.path = path
        self._session = session
        self._recovered = recovered
        self._inode = _inode(path)
        self._writer = WriterThread()
        self._is_closed = False

    @property
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be put aside."""
        return self._recovered

    @property
    def recorded(self) -> Recorded:
        """Calls that can be made again."""
        return Recorded(self._read)

    @property
    def questions(self) -> Questions:
        """Questions to the user that are pending."""
        return Questions(self._read, self._write)

    @property
    def memory(self) -> MemoryStore:
        """The queries of memory."""
        return SqliteMemory(self._read)

    async def now(self) -> float:
        """Return the time of this machine's clock."""
        return self._session.clock.now()

    async def post(self, post: Post) -> str:
        """Return the event's id, or that of the first event with its key."""
        return await self._write(journal.post, post)

    async def waiting(self, agent: str) -> list[Inbound]:
        """Return due events that nobody has taken."""
        return await self._read(journal.waiting, agent)

    async def next(self, agent: str, owner: str) -> ClaimedTurn | None:
        """Claim the open turn, or a new one for the oldest due event."""
        return await self._write(journal.claim, agent, owner)

    async def load(self, turn: str) -> list[Entry]:
        """Return all entries of one turn."""
        return await self._read(journal.load, turn)

    async def append(  # noqa: PLR0913 as in `Store`
        self,
        turn: str,
        attempt: int,
        n: int,
        entries: Sequence[Entry],
        *,
        posts: Sequence[Post] = (),
        writes: Sequence[Write] = (),
        takes: Sequence[str] = (),
    ) -> Appended:
        """Write everything of a step, or nothing of it."""
        return await self._write(journal.append, journal.JournalStep(turn, attempt, n, entries, posts, writes, takes))

    async def finish(self, turn: str, attempt: int, state: str = "done", *, posts: Sequence[Post] = ()) -> None:
        """Close the turn."""
        await self._write(journal.finish, turn, attempt, state, posts)

    async def cancel(self, turn: str) -> None:
        """Ask the turn's owner to end it."""
        await self._write(journal.cancel, turn)

    async def due(self, limit: int = 100) -> list[Due]:
        """Return agents with work that can start now."""
        return await self._read(journal.due, limit)

    async def history(
        self, agent: str, *, since: int = 0, kinds: Collection[str] = SAID, most: int = -1
    ) -> list[Entry]:
        """Return every visible entry after `since`."""
        return await self._read(journal.history, agent, since, kinds, most)

    async def hide_last_turn(self, agent: str) -> list[Entry]:
        """Remove the last finished turn from the history."""
        return await self._write(journal.hide_last, agent)

    async def hide_turns(self, agent: str) -> int:
        """Remove every finished turn from the history."""
        return await self._write(journal.hide_all, agent)

    async def agents(self) -> list[AgentRow]:
        """Return the agents that have had a turn."""
        return await self._read(journal.agents)

    async def apply(self, writes: Sequence[Write]) -> None:
        """Apply all of these writes, or none."""
        await self._write(ledger.apply, writes)

    async def text(self, hash: str) -> str | None:
        """Return a text by its content hash."""
        return await self._read(lookups.text, hash)

    async def manifest(self) -> dict[str, str]:
        """Return the version that each module is at."""
        return await self._read(lookups.manifest)

    async def version(self, version: str) -> VersionRow | None:
        """Return the source with that hash."""
        return await self._read(lookups.version, version)

    async def module_history(self, module: str) -> list[VersionRow]:
        """Return every version and removal of a module."""
        return await self._read(lookups.module_history, module)

    async def function_history(self, function: str) -> list[VersionRow]:
        """Return the histories of all modules that ever defined a function of this name."""
        return await self._read(lookups.function_history, function)

    async def verdict(self, version: str, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the gate's verdict."""
        return await self._read(lookups.verdict, version, function)

    async def pending(self, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the rejected candidate that was kept."""
        return await self._read(lookups.pending, function)

    async def all_pending(self) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return every rejected candidate that was kept."""
        return await self._read(lookups.all_pending)

    async def open_writes(self) -> list[OpenWrite]:
        """Return writes into files that were begun and not ended."""
        return await self._read(lookups.open_writes)

    async def readings(self) -> dict[str, ReadingRow]:
        """Return the stored reading of each file."""
        return await self._read(lookups.readings)

    async def sketches(self, keys: Sequence[str]) -> dict[str, str]:
        """Return data derived from the texts of functions."""
        return await self._read(lookups.sketches, keys)

    async def call_stats(self, function: str = "") -> list[Stats]:
        """Return the statistics of the calls of each version."""
        return await self._read(lookups.call_stats, function)

    async def call_kinds(self, function: str) -> list[KindRow]:
        """Return the kinds of outcomes of calls that did not return."""
        return await self._read(lookups.call_kinds, function)

    async def recent_calls(self, function: str) -> list[CallRow]:
        """Return the calls that are kept one by one."""
        return await self._read(lookups.recent_calls, function)

    async def failing(self, failures: int) -> frozenset[tuple[str, str]]:
        """Return the versions that failed so often in a row."""
        return await self._read(lookups.failing, failures)

    async def releases(self, function: str) -> list[tuple[str, float]]:
        """Return the versions that the user released, with the times."""
        return await self._read(lookups.releases, function)

    async def judged_at(self) -> dict[tuple[str, str], float]:
        """Return the time when each version was judged."""
        return await self._read(lookups.judged_at)

    async def pinned(self) -> set[str]:
        """Return the functions that any agent has pinned."""
        return await self._read(lookups.pinned)

    async def pins(self, agent: str) -> set[str]:
        """Return the functions that are always shown to this agent."""
        return await self._read(lookups.pins, agent)

    async def yeses(self) -> list[YesRow]:
        """Return every approval of what a function may reach."""
        return await self._read(lookups.yeses)

    async def check(self) -> str | None:
        """Read the whole state file and return a description of what is wrong with it."""
        return await self._read(lookups.check)

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

    async def _write(self, work: Callable[..., T], *values: object) -> T:
        return await self._run(partial(self._in_transaction, work, *values))

    async def _read(self, work: Callable[..., T], *values: object) -> T:
        return await self._run(lambda: work(self._session, *values))

    async def _run(self, work: Callable[[], T]) -> T:
        if self._is_closed:
            raise StorageError(f"The state file `{self.path}` is closed already.")
        return await self._writer.run(partial(self._guarded, work), self._interrupt)

    def _interrupt(self) -> None:
        with suppress(apsw.ConnectionClosedError):
            self._session.db.interrupt()

    def _in_transaction(self, work: Callable[..., T], *values: object) -> T:
        session = self._session
        with session.transaction():
            return work(session, *values)

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


def _inode(path: Path) -> int:
    return os.stat(path).st_ino  # noqa: PTH116 a tenth of Path.stat's time, on every write

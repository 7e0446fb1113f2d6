"""The store in one SQLite file: the sum of its tables, and how it is opened.

Several processes may use one file. A file that is found damaged, at start or later, is put aside
and a new one begun: `recovered` then says so.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import reinstall
from agent_core.base.seal import Sealer

from ..call_store import KEEP_CALLS
from ..folder import lock_agent
from ..forget_store import Erasure
from ..subject import StoreClock
from ..tables.forget_tables import erased
from ..tables.session import SqlSession
from ..tables.store_tables import StoreTables
from ..tables.tables import query
from ..tables.turn_tables import post_event, posted
from ..turn_store import Post, Posted
from ..worker_store import Hear, WorkerRow
from . import fts, vector_index
from .connection import SURROUNDINGS, SqliteSession, explain, explain_os
from .recovery import StatePlace, open_or_replace
from .scrub import SCRUB, scrub, scrub_if_due
from .state_file import StateFile

OLDEST_SQLITE: Final = (3, 54)  # the first that deletes nothing at the word of a journal


class SqliteStore(StateFile, StoreTables):
    """`Store` on SQLite: the sum of its tables."""

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
            scrub_if_due(db, path)
        except SURROUNDINGS as error:
            raise explain(error, path) from error
        except OSError as error:
            raise explain_os(error, path) from error
        return cls(path, _session(db, clock, keep_calls, sealer), recovered)

    @property
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be put aside."""
        return self._recovered

    @property
    def place(self) -> str:
        """The address of the file."""
        return f"sqlite:///{self.path}"

    async def claim(self, workspace: str) -> None:
        """Do nothing: the file is in the folder of its workspace."""

    async def join(self, workspace: str) -> None:
        """Do nothing, for the same reason."""

    @query
    def vacuum(self, session: Any) -> None:  # Any: its own session
        """Write the file anew."""
        scrub(session.db, self.path)

    @property
    def is_shared(self) -> bool:
        """False: the file is in the folder of its workspace, on one machine."""
        return False

    @property
    def owner(self) -> str:
        """The name of this process."""
        return f"process {os.getpid()}"

    @property
    def leases_taken(self) -> int:
        """0: a lock ends with its process."""
        return 0

    @asynccontextmanager
    async def hold(self, folder: Path, agent: str) -> AsyncIterator[None]:
        """Hold a lock in the state folder."""
        with lock_agent(folder, agent):
            yield

    async def lend(self, agent: str) -> None:
        """Do nothing: the lock stays."""

    async def take_back(self, agent: str) -> bool:
        """Do nothing: nobody else could have it."""
        return True

    @asynccontextmanager
    async def heard(self, hear: Hear, *, to_run: bool = False) -> AsyncIterator[None]:
        """Pass on nothing: the file has no way to tell."""
        yield

    async def offer_slots(self, slots: int) -> None:
        """Do nothing: nobody asks."""

    async def workers(self) -> list[WorkerRow]:
        """Return none: the locks know."""
        return []

    async def health(self) -> None:
        """Say nothing: it is a file."""

    async def functions_number(self) -> int:
        """Return 0: the folder is the one that counts."""
        return 0

    async def now(self) -> float:
        """Return the time of this machine's clock."""
        return self._session.clock.now()

    async def post(self, post: Post) -> str:
        """Return the id of the event, or of the first one with its key."""
        return await self._write_together(lambda session: post_event(session, post))

    async def post_after(self, post: Post) -> Posted:
        """Post an event, and return what is told of it."""
        return await self._write_together(lambda session: posted(session, post_event(session, post), post.agent))

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

    @query
    def forget(self, session: Any, erasure: Erasure) -> dict[str, int]:  # Any: its own session
        """Do it in a transaction, and scrub the file.

        Raises:
            StorageError: it is done, and somebody else's use of the file keeps it from being scrubbed.
        """
        Path(f"{self.path}{SCRUB}").touch(mode=0o600)
        session.all("pragma secure_delete = on")
        with session.transaction():
            counts = erased(session, erasure)
            fts.forget(session.db)
            vector_index.forget(session.db)
        try:
            scrub(session.db, self.path)
        except (apsw.BusyError, apsw.LockedError) as error:
            message = f"It is forgotten, but its bytes are still in `{self.path}`, which another process reads."
            raise StorageError(message, fix="End that process: the next command here writes the file anew.") from error
        return counts


def _session(db: apsw.Connection, clock: StoreClock, keep_calls: int, sealer: Sealer) -> SqliteSession:
    return SqliteSession(db, clock, keep_calls, sealer, postings=fts, vectors=vector_index)


def _check_library() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        message = f"SQLite {version} is too old to open files that others may have made: {needed} is needed."
        raise StorageError(message, fix=f"Type: {reinstall('apsw')}")

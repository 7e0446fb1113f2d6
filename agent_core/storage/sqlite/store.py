"""The store in one SQLite file: the sum of its tables, and how it is opened.

Several processes may use one file. A file that is found damaged, at start or later, is put aside
and a new one begun: `recovered` then says so.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.seal import Sealer

from ..call_store import KEEP_CALLS
from ..subject import StoreClock, Write
from .agent_tables import AgentTables
from .approval_tables import ApprovalTables
from .block_tables import BlockTables
from .call_tables import CallTables
from .connection import SURROUNDINGS, SqlSession, explain, explain_os
from .forget_tables import ForgetTables, scrub_if_due
from .function_tables import FunctionTables
from .passage_tables import PassageTables
from .recovery import StatePlace, open_or_replace
from .tables import apply, change, query
from .thread_tables import ThreadTables
from .token_tables import TokenTables
from .turn_tables import TurnTables

OLDEST_SQLITE: Final = (3, 54)  # the first that deletes nothing at the word of a journal


class SqliteStore(
    TurnTables,
    ThreadTables,
    FunctionTables,
    CallTables,
    ApprovalTables,
    BlockTables,
    PassageTables,
    AgentTables,
    ForgetTables,
    TokenTables,
):
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

    async def __aenter__(self) -> "SqliteStore":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _check_library() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        message = f"SQLite {version} is too old to open files that others may have made: {needed} is needed."
        raise StorageError(message, fix="Type: python -m pip install --upgrade apsw")

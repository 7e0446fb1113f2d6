"""All tables of a store, whatever its database: a new subject is added here."""

from abc import abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ..subject import Write
from .agent_tables import AgentTables
from .approval_tables import ApprovalTables
from .block_tables import BlockTables
from .call_tables import CallTables
from .forget_tables import ForgetTables
from .function_tables import FunctionTables
from .journal_check import JournalCheck
from .passage_tables import PassageTables
from .session import SqlSession
from .tables import apply, change
from .thread_tables import ThreadTables
from .token_tables import TokenTables
from .turn_tables import TurnTables


class StoreTables(
    TurnTables,
    JournalCheck,
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
    """The sum of the tables; a store adds a database, which is closed at the end of its block."""

    @abstractmethod
    async def close(self) -> None:
        """Finish running work and close the database. A second call does nothing."""

    @change
    def apply(self, session: SqlSession, writes: Sequence[Write]) -> None:
        """Apply all of these writes, or none."""
        apply(session, writes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

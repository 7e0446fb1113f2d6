"""All tables of a store, and the one transaction that writes to any of them: what is the same in every database."""

from collections.abc import Sequence

from ..subject import Write
from .agent_tables import AgentTables
from .approval_tables import ApprovalTables
from .block_tables import BlockTables
from .call_tables import CallTables
from .forget_tables import ForgetTables
from .function_tables import FunctionTables
from .passage_tables import PassageTables
from .session import SqlSession
from .tables import apply, change
from .thread_tables import ThreadTables
from .token_tables import TokenTables
from .turn_tables import TurnTables


class StateTables(
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
    """The sum of the tables."""

    @change
    def apply(self, session: SqlSession, writes: Sequence[Write]) -> None:
        """Apply all of these writes, or none."""
        apply(session, writes)

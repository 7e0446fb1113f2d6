"""The history of a function, and rollback."""

from agent_core import Agent, PlannedChange
from agent_core.context import presentation


async def function_history(self: Agent, function_name: str) -> str:
    """Show the versions of a function, also of a deleted one: when, by whom, why, and what changed.

    Args:
        function_name: The function.
    """
    return presentation.history(await self.workshop.past.history(function_name))


async def rollback_function(self: Agent, function_name: str, version: str = "") -> PlannedChange:
    """Put an earlier version of a function back, or bring a deleted function back. It passes the gate as any change.

    Args:
        function_name: The function.
        version: The number of a version or the beginning of its hash; empty for the one before the current one.
    """
    return await self.workshop.past.rollback(function_name, version, self.author)

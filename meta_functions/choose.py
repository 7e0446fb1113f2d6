"""The functions that this agent is always shown."""

from agent_core import Agent


async def add_function(self: Agent, function_name: str) -> str:
    """Put a function into your own set: it is always shown to you.

    Args:
        function_name: The function to keep at hand.
    """
    await self.keep(function_name)
    return f"`{function_name}` is in your own set now: it will always be shown to you."


async def remove_function(self: Agent, function_name: str) -> str:
    """Take a function out of your own set. Its file stays, and it can still be found and called.

    Args:
        function_name: The function that need not be at hand.
    """
    await self.release(function_name)
    return f"`{function_name}` is out of your own set. It still exists: list_functions finds it."

"""Tests that a function does what it should."""

from typing import Any  # whatever the function's own schema takes

from agent_core import Agent
from agent_core.context import presentation


async def test_function(self: Agent, function_name: str, arguments: dict[str, Any] | None = None) -> str:  # noqa: PT028 - no test of pytest
    """Run a function's examples, or one call of it, and show results, output and times.

    Args:
        function_name: The function to test.
        arguments: The arguments of one call; leave out to run the examples.
    """
    return presentation.tested(await self.workshop.test(function_name, arguments))

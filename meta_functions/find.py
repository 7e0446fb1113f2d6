"""Listing and introspection of functions."""

from agent_core import Agent
from agent_core.context import presentation


async def list_functions(self: Agent, pattern: str = "", module: str = "", standing: str = "", page: int = 1) -> str:
    """List the functions of the workspace with one line each, a page at a time.

    Args:
        pattern: Part of a name or description, or a shell pattern such as `count_*`; empty for all.
        module: Only functions of this module.
        standing: Only functions of this standing: draft, trial, trusted or quarantined.
        page: Which page, from 1.
    """
    return presentation.listing(await self.workshop.list(pattern, module, standing), page)


async def introspect_function(self: Agent, function_name: str) -> str:
    """Show a function's source with line numbers, its schema, examples, standing, statistics, callers and callees.

    Args:
        function_name: The function to look into; a rejected candidate is shown too.
    """
    pending = await self.workshop.pending(function_name)
    if pending is not None and function_name not in self.workshop.names():
        return presentation.pending(function_name, pending)
    self.author.unread.read(function_name)
    return presentation.introspection(await self.workshop.introspect(function_name))

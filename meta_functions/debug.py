"""Debugging of functions: breakpoints that record, and traces of one call."""

from typing import Any  # whatever the function's own schema takes

from agent_core import Agent
from agent_core.context import presentation
from agent_core.functions.debug import Breakpoint


async def debugger(  # noqa: PLR0913, PLR0917 - what a breakpoint has
    self: Agent,
    function_name: str,
    line: int = 0,
    condition: str = "",
    expressions: list[str] | None = None,
    after: int = 0,
    every: int = 1,
    *,
    once: bool = False,
) -> str:
    """Set a breakpoint. Each later call that passes it answers with the values of its locals there.

    Args:
        function_name: The function.
        line: A line of its source, with the numbers of introspect_function; 0 for its first.
        condition: A Python expression; it counts only where this is true, such as `i > 10`.
        expressions: More Python expressions to evaluate there.
        after: Pass so many hits of each call over first.
        every: Then only each so-many-th hit counts.
        once: Only the first hit that counts, then it is gone.
    """
    request = Breakpoint(0, function_name, "", 0, condition, tuple(expressions or ()), after, every, once, "agent")
    workshop = self.workshop
    placed = workshop.calls.debugging.breakpoints.arm(request, line, workshop.registry.snapshot())
    sentences = [f"Breakpoint {placed.text} is set.", placed.moved]
    return f"{' '.join(filter(None, sentences))} Call `{function_name}` now: the answer says what it saw."


async def clear_debugger(self: Agent, function_name: str = "", line: int = 0) -> str:
    """Take breakpoints away.

    Args:
        function_name: Those of this function; empty for all.
        line: Only the one at this line; 0 for all of the function.
    """
    workshop = self.workshop
    cleared = workshop.calls.debugging.breakpoints.clear(function_name, line, workshop.registry.snapshot())
    return "\n".join(
        ["Taken away:", *(point.text for point in cleared)] if cleared else ["There is no such breakpoint."]
    )


async def trace_function(self: Agent, function_name: str, arguments: dict[str, Any]) -> str:
    """Call a function once, and show each line that ran, how often, and which locals it changed to what.

    Args:
        function_name: The function to call.
        arguments: The arguments of the call.
    """
    trace = await self.workshop.trace(function_name, arguments)
    return f"{presentation.tested({**trace, 'examples': []})}\n{trace['text']}"

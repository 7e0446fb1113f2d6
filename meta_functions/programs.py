"""Programs: lines of Python that call the agent's functions."""

from agent_core import Agent
from agent_core.runtime.call_record import PlannedProgram


async def run_program(self: Agent, code: str) -> PlannedProgram:
    """Run Python that calls functions by name: loops, sums in one step.

    Args:
        code: It gives its last value; each(f, rows) calls f for each.
    """
    return PlannedProgram(code)

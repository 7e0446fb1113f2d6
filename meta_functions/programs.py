"""Programs: lines of Python that call the agent's functions."""

from agent_core import Agent
from agent_core.runtime.call_record import PlannedProgram


async def run_program(self: Agent, code: str) -> PlannedProgram:
    """Run lines of Python in which your functions can be called by name, without import or await.

    Use it for several calls, loops, filters and sums in one step. `each(function, rows)` calls it once for each row
    and returns the results, failures as values. You get the last expression or assignment, and what was printed.

    Args:
        code: The program. Names at its top level that hold JSON are there in your next program.
    """
    return PlannedProgram(code)

"""Programs: lines of Python that call the agent's functions."""

from agent_core import Agent
from agent_core.access.grants.book import checked
from agent_core.base.untrusted import one_line
from agent_core.runtime.call_record import PlannedProgram


async def expect_reach(
    self: Agent,
    network: list[str] | None = None,
    read: list[str] | None = None,
    write: list[str] | None = None,
    packages: list[str] | None = None,
    secrets: list[str] | None = None,
    why: str = "",
) -> str:
    """Name all that a task will have to reach, so that the user is asked once.

    Args:
        network: Hosts, such as `api.example.org`.
        read: Files and folders; a folder ends in a slash.
        write: Files and folders to be written.
        packages: Python packages.
        secrets: Names of secrets.
        why: What it is for.
    """
    kinds = {"network": network, "read": read, "write": write}
    kinds |= {"packages": packages, "secrets": secrets}
    named = {kind: items for kind, items in kinds.items() if items}
    return self.expect_reach(checked(named), one_line(why, 300))


async def run_program(self: Agent, code: str) -> PlannedProgram:
    """Run Python that calls functions by name: loops, sums in one step.

    Args:
        code: It gives its last value; each(f, rows) calls f for each.
    """
    return PlannedProgram(code)

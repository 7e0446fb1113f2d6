"""A recorded call made again; in the debugger, where that is wanted, it stops where it raised or at its first line."""

from typing import Any

from agent_core.assemble import Workspace
from agent_core.debugging import Breakpoint, Debugger

from .debugging_plainly import PlainHuman
from .question import say, typed_line


def human_at_terminal() -> Debugger:
    """The human who types the command, a line each."""
    return PlainHuman(say, typed_line, lambda mark: typed_line(mark, is_fresh=True))


async def replayed(workspace: Workspace, call: int, version: str, *, is_debugged: bool) -> dict[str, Any]:  # Any: JSON
    """The `replay` shape; with the debugger, whoever sits at it is asked.

    Raises:
        UsageError: the call, or the version, is not kept.
    """
    replays, breakpoints = workspace.workshop.replays, workspace.debugging.breakpoints
    if not is_debugged:
        return await replays.replay(call, version)
    then = await replays.show(call)
    if then["outcome"]["outcome"] == "raised":
        return await replays.replay(call, version, looks_back=True)
    snapshot = workspace.workshop.registry.snapshot()
    placed = breakpoints.arm(Breakpoint(0, then["function"], "", 0, once=True), 0, snapshot)
    try:
        return await replays.replay(call, version)
    finally:
        breakpoints.clear(id=placed.breakpoint.id)

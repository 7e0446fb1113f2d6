"""Replay of a recorded call; in the debugger, if requested, it stops where it raised or at its first line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent_core.functions.debug import Breakpoint, Debugger
from agent_core.workspace.workspace import Workspace

from .debugging_plainly import PlainHuman
from .question import say, typed_line


def human_at_terminal() -> Debugger:
    """Return a debugger for the user who types the command, with plain lines."""
    return PlainHuman(say, typed_line, lambda mark: typed_line(mark, is_fresh=True))


@contextmanager
def stopping_first(workspace: Workspace, function: str) -> Iterator[None]:
    """Make a function stop at its first line while the block runs, even if the user has a breakpoint there.

    Raises:
        UsageError: there is no such function.
    """
    breakpoints, snapshot = workspace.debugging.breakpoints, workspace.workshop.registry.snapshot()
    before = {entry.breakpoint.id for entry in breakpoints.placed(snapshot)}
    placed = breakpoints.arm(Breakpoint(0, function, "", 0, once=True), 0, snapshot)
    try:
        yield
    finally:
        if placed.breakpoint.id not in before:
            breakpoints.clear(id=placed.breakpoint.id)


async def replayed(workspace: Workspace, call: int, version: str, *, is_debugged: bool) -> dict[str, Any]:  # Any: JSON
    """Replay a call and return the `replay` shape. With the debugger, its user is asked.

    Raises:
        UsageError: the call, or the version, is not recorded.
    """
    replays = workspace.workshop.replays
    if not is_debugged:
        return await replays.replay(call, version)
    then = await replays.show(call)
    if then["outcome"]["outcome"] == "raised":
        return await replays.replay(call, version, looks_back=True)
    with stopping_first(workspace, then["function"]):
        return await replays.replay(call, version)

"""A recorded call made again; in the debugger, where that is wanted, it stops where it raised or at its first line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent_core.assemble import Workspace
from agent_core.debugging import Breakpoint, Debugger

from .debugging_plainly import PlainHuman
from .question import say, typed_line


def human_at_terminal() -> Debugger:
    """The human who types the command, a line each."""
    return PlainHuman(say, typed_line, lambda mark: typed_line(mark, is_fresh=True))


@contextmanager
def stopping_first(workspace: Workspace, function: str) -> Iterator[None]:
    """While this lasts a function stops at its first line, whatever breakpoint of one's own stands there.

    Raises:
        UsageError: there is no such function.
    """
    breakpoints, snapshot = workspace.debugging.breakpoints, workspace.workshop.registry.snapshot()
    before = {one.breakpoint.id for one in breakpoints.placed(snapshot)}
    placed = breakpoints.arm(Breakpoint(0, function, "", 0, once=True), 0, snapshot)
    try:
        yield
    finally:
        if placed.breakpoint.id not in before:
            breakpoints.clear(id=placed.breakpoint.id)


async def replayed(workspace: Workspace, call: int, version: str, *, is_debugged: bool) -> dict[str, Any]:  # Any: JSON
    """The `replay` shape; with the debugger, whoever sits at it is asked.

    Raises:
        UsageError: the call, or the version, is not kept.
    """
    replays = workspace.workshop.replays
    if not is_debugged:
        return await replays.replay(call, version)
    then = await replays.show(call)
    if then["outcome"]["outcome"] == "raised":
        return await replays.replay(call, version, looks_back=True)
    with stopping_first(workspace, then["function"]):
        return await replays.replay(call, version)

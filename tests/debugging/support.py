"""A function to debug, and a human who types the commands of a list."""

from agent_core.functions.debug import Breakpoint, Command, Debugging, DebugStop, Placed
from agent_core.workspace.workspace import Workspace

SUMMING = '''\
import random


def sum_up(numbers: list[int]) -> int:
    """Add numbers up.

    Args:
        numbers: What to add.

    >>> sum_up([1, 2])
    3
    """
    result = 0
    for index, number in enumerate(numbers):
        result += number
    if result < 0:
        return 0
    return result


async def count_slowly(steps: int) -> int:
    """Count.

    >>> count_slowly(2)
    2
    """
    import asyncio

    done = 0
    for step in range(steps):
        await asyncio.sleep(0)
        done += 1
    return done


def outer(numbers: list[int]) -> int:
    """Call another one."""
    total = sum_up(numbers)
    return total * 2


def divide(numerator: int, denominator: int) -> float:
    """Divide."""
    return numerator / denominator


def busy(turns: int) -> int:
    """Turn for long."""
    left = turns
    while left > 0:
        left -= 1
    return left


def halting(number: int) -> int:
    """Stop by itself."""
    breakpoint()
    doubled = number * 2
    return doubled
'''
LOOP = 15  # the line of `result += number`


class Typist:
    """A human at the debugger."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.stops: list[DebugStop] = []

    async def stopped(self, stop: DebugStop) -> Command:
        """Return the next command; continue if none is left."""
        self.stops.append(stop)
        return Command.parse(self.lines.pop(0)) if self.lines else Command("continue")

    @property
    def said(self) -> list[str]:
        """Return the answers to commands."""
        return [stop.message for stop in self.stops if stop.message]


def room_of(workspace: Workspace) -> Debugging:
    """Return the debugger of a workspace."""
    return workspace.functions.calls.debugging


def arm(workspace: Workspace, line: int = LOOP, condition: str = "", name: str = "sum_up", **more: object) -> Placed:
    """Arm a breakpoint."""
    wanted = Breakpoint(0, name, "", 0, condition, **more)  # type: ignore[arg-type] # as the class declares them
    return room_of(workspace).breakpoints.arm(wanted, line, workspace.functions.registry.snapshot())

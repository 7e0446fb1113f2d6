"""A function to debug, and a human who types the commands of a list."""

from agent_core.functions.debug import Breakpoint, Command, Debugging, DebugStop, Placed
from agent_core.workspace.workspace import Workspace
from tests.kit.sources import function_text

SUMMING = "\n\n".join(
    [
        "import random\n",
        function_text(
            "sum_up(numbers: list[int]) -> int",
            "Add numbers up.\n\nArgs:\n    numbers: What to add.",
            "result = 0\nfor index, number in enumerate(numbers):\n    result += number\nif result < 0:\n    "
            "return 0\nreturn result",
            "sum_up([1, 2]) → 3",
        ),
        function_text(
            "async count_slowly(steps: int) -> int",
            "Count.",
            "import asyncio\n\ndone = 0\nfor step in range(steps):\n    await asyncio.sleep(0)\n    done += 1\n"
            "return done",
            "count_slowly(2) → 2",
        ),
        function_text(
            "outer(numbers: list[int]) -> int",
            "Call another one.",
            "total = sum_up(numbers)\nreturn total * 2",
        ),
        function_text(
            "divide(numerator: int, denominator: int) -> float",
            "Divide.",
            "return numerator / denominator",
        ),
        function_text(
            "busy(turns: int) -> int",
            "Turn for long.",
            "left = turns\nwhile left > 0:\n    left -= 1\nreturn left",
        ),
        function_text(
            "halting(number: int) -> int",
            "Stop by itself.",
            "breakpoint()\ndoubled = number * 2\nreturn doubled",
        ),
    ]
)
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


def arm(
    workspace: Workspace,
    line: int = LOOP,
    condition: str = "",
    name: str = "sum_up",
    **more: object,
) -> Placed:
    """Arm a breakpoint, a person's unless `by` says otherwise."""
    wanted = Breakpoint(0, name, "", 0, condition, **{"by": "human", **more})  # type: ignore[arg-type] # as the class declares them
    return room_of(workspace).breakpoints.arm(wanted, line, workspace.functions.registry.snapshot())

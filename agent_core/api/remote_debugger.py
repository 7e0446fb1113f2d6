"""A debugger for whoever asks over HTTP: a call that stands at a breakpoint, until somebody says how it goes on."""

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass
from agent_core.functions.debug import Command, DebugStop

from .identity import ApiRefusal

if TYPE_CHECKING:
    from agent_core.functions.debug import Breakpoint, Debugging, Placed
    from agent_core.registry.registry import Snapshot

_LED: Final = frozenset({"next", "step", "return", "until"})
_ENDING: Final = frozenset({"continue", "quit"})
_MOVE_S: Final = 2.0  # in which a call usually stops again


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that stands at a stop. Each command that is answered there makes another `number` of it."""

    number: int
    since: float
    stop: DebugStop


class RemoteDebugger:
    """The debugger of a server's workspace, in place as long as there is a breakpoint that was set through it.

    Calls stop at a person's breakpoints, and where a person stepped. All else goes on at once: nobody may be looking.
    """

    def __init__(self, debugging: "Debugging") -> None:
        self._debugging = debugging
        self._number = 0
        self._held: HeldCall | None = None
        self._order: asyncio.Future[Command] | None = None
        self._moved = asyncio.Event()
        self._is_led = False

    @property
    def held(self) -> HeldCall | None:
        """The call that stands at a stop now; others that have to stop wait for it."""
        return self._held

    def arm(self, breakpoint_: "Breakpoint", line: int, snapshot: "Snapshot") -> "Placed":
        """Set a breakpoint, at which calls stop from now on.

        Raises:
            UsageError: there is no such line, or somebody else has the debugger of this workspace.
        """
        slot = self._debugging.slot
        if slot.debugger not in (None, self):
            raise UsageError(
                "The debugger of this workspace is at the program that runs the server.",
                fix="Set the breakpoint there.",
            )
        placed = self._debugging.breakpoints.arm(breakpoint_, line, snapshot)
        slot.debugger = self
        return placed

    def clear(self, id: int) -> None:
        """Remove a breakpoint.

        Raises:
            UsageError: there is none with this ID.
        """
        if id not in self._debugging.breakpoints.held:
            raise UsageError(
                f"There is no breakpoint {id}.", fix="The list of them has the numbers."
            )
        self._debugging.breakpoints.clear(id=id)
        self._is_led = self._is_led and self._held is not None
        self._leave()

    async def stopped(self, stop: DebugStop) -> Command:
        """Return what the first one says who answers; it is called again until the call goes on."""
        if not self._is_awaited(stop):
            return Command("continue")
        before = self._held
        self._number += 1
        since = before.since if before is not None and stop.message else time.time()
        self._held = HeldCall(self._number, since, stop)
        self._order = asyncio.get_running_loop().create_future()
        self._moved.set()
        is_over = True
        try:
            command = await self._order
            is_over = command.do in _ENDING | _LED
            self._is_led = command.do in _LED
            return command
        finally:
            self._order = None
            if is_over:
                self._held = None
                self._leave()

    async def order(self, number: int, command: Command) -> None:
        """Give a command at a stop, and wait a moment for what comes of it.

        Raises:
            ApiRefusal: the call does not stand there any more.
        """
        if self._order is None or self._order.done() or number != self._number:
            raise ApiRefusal(
                409,
                "moved",
                "The call does not stand there any more.",
                "Look where it is now; another window may have said how it goes on.",
            )
        self._moved.clear()
        self._order.set_result(command)
        if command.do in _ENDING:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOVE_S):
                await self._moved.wait()

    def close(self) -> None:
        """End the call that stands at a stop: nobody can be asked any more."""
        self._debugging.breakpoints.clear()
        if self._order is not None and not self._order.done():
            self._order.set_result(Command("quit"))

    def _is_awaited(self, stop: DebugStop) -> bool:
        """Return whether a person wanted this stop, or has just been answered at it."""
        if stop.message or (self._is_led and not stop.is_first):
            return True
        self._is_led = False
        name, _, number = stop.why.partition(",")[0].partition(" ")
        if name != "breakpoint" or not number.isdecimal():
            return False
        point = self._debugging.breakpoints.held.get(int(number))
        return point is None or point.by == "human"  # one that stops once is gone by now

    def _leave(self) -> None:
        """Leave the debugger's place, if no breakpoint of a person is left and no call stands."""
        points = self._debugging.breakpoints.held.values()
        is_wanted = self._held is not None or self._is_led
        if not is_wanted and not any(point.by == "human" for point in points):
            self._debugging.slot.debugger = None

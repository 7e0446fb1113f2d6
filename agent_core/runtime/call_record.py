"""One call between its start and its answer: its input, what is recorded, and who is notified."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.messages import Call
from agent_core.base.problem import Problem
from agent_core.context import beginning, first_page
from agent_core.functions.service import PlannedChange
from agent_core.memory.function_api import FunctionMemoryApi
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.function import Function
from agent_core.storage import SaveBlock, Write

from .turn import Turn, result


class CallRecord:
    """One call between its start and its answer."""

    def __init__(self, call: Call, turn: Turn, clock: Clock, answer_chars: int) -> None:
        self._answer_chars = answer_chars
        self.call = call
        self.turn = turn
        self.step = turn.step
        self.plan: PlannedChange | None = None
        self.memory: FunctionMemoryApi | None = None  # holds what it edits until its answer is stored
        self.heartbeat = False
        self._clock = clock
        self._began = clock.monotonic()
        self.stood = 0.0  # seconds in which it stood at the debugger
        self._announced = False

    def read(self, function: Function) -> dict[str, Any] | tuple[Problem, ...]:
        """Return the arguments without the request for another step, which is kept; or the problems with them."""
        style, parameters = self.turn.style, function.parameters
        arguments = read_arguments(self.call.arguments, style.reading(parameters))
        if isinstance(arguments, dict):
            self.heartbeat = style.take_heartbeat(arguments, parameters)
        return arguments

    def restart_clock(self) -> None:
        """Restart the clock, so that the time before the start does not count."""
        self._began = self._clock.monotonic()

    def seconds(self) -> float:
        """Return how long it has run, without the time for which the user paused it."""
        return max(0.0, self._clock.monotonic() - self._began - self.stood)

    def announce(self) -> None:
        """Announce the start of the call."""
        self._announced = True
        call = self.call
        self.turn.emit(
            events.CallStarted(
                turn=self.turn.id, step=self.step, call_id=call.id, name=call.name, arguments=call.arguments
            )
        )

    async def record(self, text: str, word: str, detail: dict[str, Any], writes: Sequence[Write]) -> str:
        """Store the answer together with the writes that belong to it; return the text that is shown at once.

        For a longer one, the whole text is stored in addition to its beginning, for `read_on`.
        """
        payload, whole = first_page(text, self._answer_chars)
        entry = result(self.call, text, word, self.seconds(), detail)
        await self.turn.append([replace(entry, payload={**entry.payload, **payload})], writes=(*writes, *whole))
        return beginning(text, self._answer_chars)

    def tell_progress(self, done: float, total: float | None, note: str) -> None:
        """Report the progress."""
        self.turn.emit(
            events.Progress(
                turn=self.turn.id,
                step=self.step,
                call_id=self.call.id,
                name=self.call.name,
                done=done,
                total=total,
                note=note,
            )
        )

    def tell_printed(self, text: str) -> None:
        """Report a piece of the printed output."""
        call = self.call
        self.turn.emit(events.Printed(turn=self.turn.id, step=self.step, call_id=call.id, name=call.name, text=text))

    def note_plan(self, plan: PlannedChange) -> None:
        """Keep what was created and what was rejected for the turn's end."""
        if plan.completed_change is not None:
            self.turn.note_made(plan.completed_change[0], plan.completed_change[1])
        if plan.refused is not None:
            self.turn.refused[plan.refused] = plan.text

    def tell_remembered(self, writes: Sequence[Write]) -> None:
        """Report which memory blocks have changed."""
        for write in writes:
            if isinstance(write, SaveBlock):
                self.turn.note_made("remembered", write.block.label)
                self.turn.emit(
                    events.MemoryChanged(turn=self.turn.id, step=self.step, block=write.block.label, what=write.action)
                )

    def tell(self, text: str, word: str, detail: dict[str, Any]) -> None:
        """Report the answer."""
        if not self._announced:
            self.announce()
        self.turn.emit(
            events.CallAnswered(
                turn=self.turn.id,
                step=self.step,
                call_id=self.call.id,
                name=self.call.name,
                text=text,
                outcome=word,
                seconds=self.seconds(),
                detail=detail,
            )
        )

"""One call between its start and its answer: what it was given, what is written down and who is told."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import events
from .clock import Clock
from .context import beginning, kept
from .messages import Call
from .problem import Problem
from .registry.arguments import read as read_arguments
from .registry.function import Function
from .storage import SaveBlock, Write
from .turn import Turn, result
from .workshop import Plan


class Running:
    """One call between its start and its answer."""

    def __init__(self, call: Call, turn: Turn, clock: Clock, answer_chars: int) -> None:
        self._answer_chars = answer_chars
        self.call = call
        self.turn = turn
        self.step = turn.step
        self.plan: Plan | None = None
        self.heartbeat = False
        self._clock = clock
        self._began = clock.monotonic()
        self.stood = 0.0  # seconds in which it stood at the debugger
        self._announced = False

    def read(self, function: Function) -> dict[str, Any] | tuple[Problem, ...]:
        """The arguments without the wish for another step, which is kept; or what is wrong with them."""
        style, parameters = self.turn.style, function.parameters
        arguments = read_arguments(self.call.arguments, style.reading(parameters))
        if isinstance(arguments, dict):
            self.heartbeat = style.take_heartbeat(arguments, parameters)
        return arguments

    def restart_clock(self) -> None:
        """The time before it started does not count."""
        self._began = self._clock.monotonic()

    def seconds(self) -> float:
        """How long it has run, without the time for which a human had it stand still."""
        return max(0.0, self._clock.monotonic() - self._began - self.stood)

    def announce(self) -> None:
        """Tell that it starts."""
        self._announced = True
        call = self.call
        self.turn.emit(
            events.CallStarted(
                turn=self.turn.id, step=self.step, call_id=call.id, name=call.name, arguments=call.arguments
            )
        )

    async def record(self, text: str, word: str, detail: dict[str, Any], writes: Sequence[Write]) -> str:
        """Put the answer on disk, with what must be true together with it; what is told of it at once.

        A longer one is kept whole beside its beginning, for `read_on`.
        """
        said, whole = kept(text, self._answer_chars)
        entry = result(self.call, text, word, self.seconds(), detail)
        await self.turn.append([replace(entry, payload={**entry.payload, **said})], writes=(*writes, *whole))
        return beginning(text, self._answer_chars)

    def tell_progress(self, done: float, total: float | None, note: str) -> None:
        """Tell how far it is."""
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
        """Tell a piece of what it prints."""
        call = self.call
        self.turn.emit(events.Printed(turn=self.turn.id, step=self.step, call_id=call.id, name=call.name, text=text))

    def note_plan(self, plan: Plan) -> None:
        """Keep for the turn's end what was made, and what stands refused."""
        if plan.made is not None:
            self.turn.note_made(plan.made[0], plan.made[1])
        if plan.refused is not None:
            self.turn.refused[plan.refused] = plan.text

    def tell_remembered(self, writes: Sequence[Write]) -> None:
        """Say which blocks of memory are another now."""
        for write in writes:
            if isinstance(write, SaveBlock):
                self.turn.note_made("remembered", write.block.label)
                self.turn.emit(
                    events.MemoryChanged(turn=self.turn.id, step=self.step, block=write.block.label, what=write.what)
                )

    def tell(self, text: str, word: str, detail: dict[str, Any]) -> None:
        """Tell the answer."""
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

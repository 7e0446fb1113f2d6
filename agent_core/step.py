"""One step: what came meanwhile, the model's reply, the calls it asked for, and whether the turn goes on.

Each phase leaves the conversation valid on disk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from . import events
from .asking import Asker
from .course import Course, Ended, GoOn
from .dispatch import Dispatcher, Done
from .errors import ModelError
from .interruption import Interrupted
from .messages import SEND, Assistant
from .model.reply import Reply
from .pacing import ByFunction
from .registry.snapshot import Snapshot
from .storage import FAILURES
from .turn import Turn, assistant, heartbeat, notice
from .workshop import Workshop, quarantine

FIRST = "Begin with a thought of your own, and call send_message in the same reply."


class Remembering(Protocol):
    """Memory that others may change."""

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """What another hand changed since it was asked last, as sentences; `versions` are those of shared blocks."""


class Stepper:
    """Takes the steps of one agent's turns."""

    def __init__(
        self,
        asker: Asker,
        dispatcher: Dispatcher,
        workshop: Workshop,
        max_steps: int,
        memory: Remembering | None = None,
    ) -> None:
        self.asker = asker
        self.own_set: frozenset[str] = frozenset()
        self._dispatcher = dispatcher
        self._workshop = workshop
        self._max_steps = max_steps
        self._memory = memory
        self._changes: list[events.FunctionsChanged] = []
        self._forget = workshop.on_change(self._changes.append)

    async def aclose(self) -> None:
        """Let the model go."""
        self._forget()
        await self.asker.aclose()

    async def run(self, turn: Turn) -> Ended:
        """Step until the model answers without a call, or something ends the turn.

        Raises:
            Interrupted: the user asked for the end.
            ModelError: the model gives no usable answer.
        """
        async with turn.interruption:
            turn.model = (await self.asker.model()).name
        await self._workshop.quarantine.refresh()  # another process may have released a function
        course = Course()
        try:
            for number in range(1, self._max_steps + 1):
                turn.step = number
                await self._take_up(turn)
                snapshot = self._workshop.registry.snapshot()
                reply = await self._ask(turn, snapshot, course.excluded)
                course = self._course(turn, course)
                follows = await self._act(turn, reply, snapshot, course)
                await self._tell(follows, turn)
                if isinstance(follows, Ended):
                    return follows
        except (Interrupted, ModelError):
            course.let_out()
            raise
        course.let_out()
        return Ended("steps", warning=f"The turn was ended after {self._max_steps} steps; “go on” takes it up again.")

    def _course(self, turn: Turn, course: Course) -> Course:
        """The course of the turn; another one where it turned out meanwhile how calls travel."""
        by_function = turn.style.by_function(self.asker.mode)
        if by_function is isinstance(course, ByFunction):
            return course
        return ByFunction(turn=turn) if by_function else Course()

    async def _tell(self, follows: GoOn | Ended, turn: Turn) -> None:
        entries = [notice(follows.advice)] if follows.advice else []
        if isinstance(follows, GoOn) and follows.heartbeat:
            entries.append(heartbeat(follows.heartbeat, turn.style, turn.clock.now()))
        if entries:
            await turn.append(entries)

    async def _ask(self, turn: Turn, snapshot: Snapshot, excluded: frozenset[str]) -> Reply:
        """One reply; an agent's first one again, until it has a thought and a message, or often enough."""
        reply = await self.asker.ask(turn, snapshot, self.own_set, excluded)
        if not (turn.verify and turn.step == 1):
            return reply
        for attempt in range(turn.style.attempts):
            if not turn.style.by_function(self.asker.mode) or _is_first_message(reply):
                return reply
            if not attempt:
                await turn.append([notice(FIRST)])
            reply = await self.asker.ask(turn, snapshot, self.own_set, excluded)
        return reply

    async def _take_up(self, turn: Turn) -> None:
        """What came meanwhile: messages and other events, memory and functions that changed by another hand."""
        waiting = await turn.store.waiting(turn.agent) if turn.waits else []
        entries = [turn.taken_up(each) for each in waiting]
        turn.is_asked |= any(each.kind == "message" for each in waiting)
        if self._memory is not None:
            entries += [notice(each) for each in await self._memory.changed_elsewhere(turn.shared)]
        changes, self._changes[:] = list(self._changes), []
        if changes:
            entries.append(notice(self._workshop.tell_changes(changes)))
            for change in changes:
                turn.emit(_of_turn(change, turn))
        if entries:
            await turn.append(entries, takes=[each.id for each in waiting])

    async def _act(self, turn: Turn, reply: Reply, snapshot: Snapshot, course: Course) -> GoOn | Ended:
        """Put the reply on disk, carry out what it asks for, and say what follows."""
        if reply.text or reply.calls:
            message = Assistant(reply.text, reply.calls, reply.thought)
            starting = self._dispatcher.started_at_once(reply.calls, snapshot)
            shown, texts = self.asker.request_record(snapshot)
            await turn.append([*shown, assistant(message), *starting], writes=texts)
        if reply.note:
            turn.warn(reply.note)
        if not reply.calls:
            more_waits = bool(await turn.store.waiting(turn.agent))
            made = {name for names in turn.made.values() for name in names}
            return course.after_reply(reply, list(turn.refused), made, more_waits=more_waits)
        done = await self._dispatcher.run(reply.calls, snapshot, turn)
        await self._tell_quarantined(done, turn)
        for each in done:
            self.asker.shown.use(each.call.name)
        if turn.interruption.requested:
            raise Interrupted
        return await self._after_calls(turn, course.after_calls(done, reply.cut))

    async def _after_calls(self, turn: Turn, follows: GoOn | Ended) -> GoOn | Ended:
        """A turn that handed back after its calls goes on if somebody spoke meanwhile."""
        is_over = isinstance(follows, Ended) and follows.reason == "replied"
        return GoOn() if is_over and await turn.store.waiting(turn.agent) else follows

    async def _tell_quarantined(self, done: Sequence[Done], turn: Turn) -> None:
        """A function that kept failing leaves the model's sight: the human is told at once, and the model why."""
        failed = {each.call.name for each in done if each.outcome in FAILURES}
        for news in await self._workshop.quarantine.entered(failed) if failed else ():
            turn.emit(replace(news, turn=turn.id, step=turn.step))
            await turn.append([notice(quarantine.told(news))])


def _of_turn(change: events.FunctionsChanged, turn: Turn) -> events.FunctionsChanged:
    return replace(change, turn=turn.id, step=turn.step)


def _is_first_message(reply: Reply) -> bool:
    """Whether a reply has a thought and a message."""
    return bool((reply.text + reply.thought).strip()) and any(call.name == SEND for call in reply.calls)

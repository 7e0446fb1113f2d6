"""One step: what came meanwhile, the model's reply, the calls it asked for, and whether the turn goes on.

Each phase leaves the conversation valid on disk.
"""

from collections.abc import Sequence
from dataclasses import replace

from . import events
from .asking import Asker
from .course import Course, Ended, GoOn
from .dispatch import Dispatcher, Done
from .interruption import Interrupted
from .messages import Assistant
from .model.reply import Reply
from .registry.snapshot import Snapshot
from .storage import FAILURES
from .turn import Turn, assistant, notice, user
from .workshop import Workshop, quarantine


class Stepper:
    """Takes the steps of one agent's turns."""

    def __init__(self, asker: Asker, dispatcher: Dispatcher, workshop: Workshop, max_steps: int) -> None:
        self.asker = asker
        self.own_set: frozenset[str] = frozenset()
        self._dispatcher = dispatcher
        self._workshop = workshop
        self._max_steps = max_steps
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
        for number in range(1, self._max_steps + 1):
            turn.step = number
            await self._take_up(turn)
            snapshot = self._workshop.registry.snapshot()
            reply = await self.asker.ask(turn, snapshot, self.own_set, course.excluded)
            follows = await self._act(turn, reply, snapshot, course)
            if follows.advice:
                await turn.append([notice(follows.advice)])
            if isinstance(follows, Ended):
                return follows
        return Ended("steps", warning=f"The turn was ended after {self._max_steps} steps; “go on” takes it up again.")

    async def _take_up(self, turn: Turn) -> None:
        """What came meanwhile: messages of the user, and functions that changed by another hand."""
        waiting = await turn.store.waiting(turn.agent) if turn.waits else []
        entries = [user(str(each.payload.get("text", ""))) for each in waiting]
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
        return course.after_calls(done, reply.cut)

    async def _tell_quarantined(self, done: Sequence[Done], turn: Turn) -> None:
        """A function that kept failing leaves the model's sight: the human is told at once, and the model why."""
        failed = {each.call.name for each in done if each.outcome in FAILURES}
        for news in await self._workshop.quarantine.entered(failed) if failed else ():
            turn.emit(replace(news, turn=turn.id, step=turn.step))
            await turn.append([notice(quarantine.told(news))])


def _of_turn(change: events.FunctionsChanged, turn: Turn) -> events.FunctionsChanged:
    return replace(change, turn=turn.id, step=turn.step)

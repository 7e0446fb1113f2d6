"""The loop of a turn: in each step what arrived, the model's reply, and the calls that it asked for.

Each phase leaves the conversation valid on disk. `turn_policy.py` decides when the turn ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agent_core.base import events
from agent_core.base.errors import ModelError
from agent_core.base.interruption import Interrupted
from agent_core.base.messages import SEND, Assistant
from agent_core.functions.service import FunctionService, quarantine
from agent_core.model.reply import Reply
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import FAILURES

from .call_record import Done
from .dispatch import Dispatcher
from .model_session import ModelSession
from .turn import Turn, assistant, heartbeat, notice
from .turn_policy import DirectReplyPolicy, Ended, GoOn, StepResult

FIRST = "Begin with a thought of your own, and call send_message in the same reply."


class Remembering(Protocol):
    """Memory that others may change."""

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """Return what someone else changed since the last call, as sentences; `versions` are those of shared blocks."""


class AgentLoop:
    """The runner of the steps in one agent's turns."""

    def __init__(
        self,
        asker: ModelSession,
        dispatcher: Dispatcher,
        workshop: FunctionService,
        max_steps: int,
        memory: Remembering | None = None,
    ) -> None:
        self.asker = asker
        self._dispatcher = dispatcher
        self._workshop = workshop
        self._max_steps = max_steps
        self._memory = memory
        self._changes: list[events.FunctionsChanged] = []
        self._forget = workshop.on_change(self._changes.append)

    async def aclose(self) -> None:
        """Close the model."""
        self._forget()
        await self.asker.aclose()

    async def run(self, turn: Turn) -> Ended:
        """Run steps until the policy ends the turn, and return how it ended."""
        policy = DirectReplyPolicy(turn, self._max_steps)
        try:
            async with turn.interruption:
                turn.model = (await self.asker.model()).name
            await self._workshop.quarantine.refresh()  # another process may have released a function
            while True:
                turn.step += 1
                await self._take_up(turn)
                snapshot = self._workshop.registry.snapshot()
                reply = await self._ask(turn, snapshot, policy.excluded)
                policy = policy.speaking(by_function=turn.style.by_function(self.asker.mode))
                done = await self._act(turn, reply, snapshot)
                more_waits = bool(await turn.store.waiting(turn.agent))
                follows = policy.after(StepResult(reply, done, more_waits))
                await self._tell(follows, turn)
                if isinstance(follows, Ended):
                    return follows
        except (Interrupted, ModelError) as error:
            return policy.broken_off(error)

    async def _take_up(self, turn: Turn) -> None:
        """Add what arrived meanwhile: messages and other events, and changes to memory and functions by someone
        else.
        """
        waiting = await turn.store.waiting(turn.agent) if turn.waits else []
        entries = [turn.taken_up(event) for event in waiting]
        turn.is_asked |= any(event.kind == "message" for event in waiting)
        if self._memory is not None:
            entries += [notice(change) for change in await self._memory.changed_elsewhere(turn.shared)]
        changes, self._changes[:] = list(self._changes), []
        if changes:
            entries.append(notice(self._workshop.tell_changes(changes)))
            for change in changes:
                turn.emit(_of_turn(change, turn))
        if entries:
            await turn.append(entries, takes=[event.id for event in waiting])

    async def _ask(self, turn: Turn, snapshot: Snapshot, excluded: frozenset[str]) -> Reply:
        """Return one reply; ask again for an agent's first one until it has a thought and a message, a limited number
        of times.
        """
        reply = await self.asker.ask(turn, snapshot, excluded)
        if not (turn.verify and turn.step == 1):
            return reply
        for attempt in range(turn.style.attempts):
            if not turn.style.by_function(self.asker.mode) or _is_first_message(reply):
                return reply
            if not attempt:
                await turn.append([notice(FIRST)])
            reply = await self.asker.ask(turn, snapshot, excluded)
        return reply

    async def _act(self, turn: Turn, reply: Reply, snapshot: Snapshot) -> Sequence[Done]:
        """Store the reply, carry out the calls that it asks for, and return their results.

        Raises:
            Interrupted: the user asked for the end.
        """
        if reply.text or reply.calls:
            message = Assistant(reply.text, reply.calls, reply.thought)
            starting = self._dispatcher.started_at_once(reply.calls, snapshot) if reply.calls else []
            shown, texts = self.asker.request_record(snapshot)
            await turn.append([*shown, assistant(message), *starting], writes=texts)
        if reply.note:
            turn.warn(reply.note)
        if not reply.calls:
            return ()
        done = await self._dispatcher.run(reply.calls, snapshot, turn)
        await self._tell_quarantined(done, turn)
        for call in done:
            self.asker.shown.use(call.call.name)
        if turn.interruption.requested:
            raise Interrupted
        return done

    async def _tell_quarantined(self, done: Sequence[Done], turn: Turn) -> None:
        """Hide functions that kept failing from the model: notify the user at once, and tell the model why."""
        failed = {call.call.name for call in done if call.outcome in FAILURES}
        for news in await self._workshop.quarantine.entered(failed) if failed else ():
            turn.emit(replace(news, turn=turn.id, step=turn.step))
            await turn.append([notice(quarantine.told(news))])

    async def _tell(self, follows: GoOn | Ended, turn: Turn) -> None:
        entries = [notice(follows.advice)] if follows.advice else []
        if isinstance(follows, GoOn) and follows.heartbeat:
            entries.append(heartbeat(follows.heartbeat, turn.style, turn.clock.now()))
        if entries:
            await turn.append(entries)


def _of_turn(change: events.FunctionsChanged, turn: Turn) -> events.FunctionsChanged:
    return replace(change, turn=turn.id, step=turn.step)


def _is_first_message(reply: Reply) -> bool:
    """Check whether a reply has a thought and a message."""
    return bool((reply.text + reply.thought).strip()) and any(call.name == SEND for call in reply.calls)

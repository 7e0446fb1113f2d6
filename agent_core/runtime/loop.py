"""The loop of a turn: each step takes in what arrived, requests a reply, and runs its calls.

After each phase the conversation on disk is valid. The policy (`turn_policy.py`) decides when the turn ends.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import random
from typing import TYPE_CHECKING, Final, Protocol

from agent_core.base import events
from agent_core.base.errors import ModelError
from agent_core.base.interruption import Interrupted
from agent_core.base.messages import Assistant
from agent_core.context import EXPECTED
from agent_core.functions.service import FunctionService, quarantine
from agent_core.storage import FAILURES, Inbound, SaveExposures

from .client_calls import handed_over
from .turn import HEARD, Turn, assistant, heartbeat, notice, said_by
from .turn_policy import DirectReplyPolicy, Ended, GoOn, StepResult

if TYPE_CHECKING:
    from agent_core.model.reply import Reply
    from agent_core.registry.snapshot import Snapshot

    from .call_record import Done
    from .dispatch import Dispatcher
    from .model_session import ModelSession
    from .programs import Programs

FIRST = "Begin with a thought of your own, and call send_message in the same reply."
_MEASURED: Final = 8  # functions that a message probably needs, to be measured
_MOST_TOLD: Final = 3  # functions that a message probably needs and that are missing from the index
UNUSABLE = (
    "Use another model, or accept first replies as they come: `verify=False` of the agent (all of them),"
    " `turn.first_thought = false` (those without a thought)."
)


class Remembering(Protocol):
    """Memory that others may change."""

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """Return the changes by others since the last call, as sentences; `versions` are those of shared blocks."""


class AgentLoop:
    """The runner of the steps in one agent's turns."""

    is_group: Final = False

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        model: "ModelSession",
        dispatcher: "Dispatcher",
        functions: FunctionService,
        max_steps: int,
        memory: Remembering | None = None,
        *,
        sees: Callable[["Snapshot", frozenset[str]], "Snapshot"] = lambda snapshot, _: snapshot,
        policy: Callable[[Turn, int], DirectReplyPolicy] = DirectReplyPolicy,
        programs: "Programs | None" = None,
    ) -> None:
        """Create the loop.

        `sees` reduces a snapshot to what the agent may call, plus the functions that it made in this turn. `policy`
        decides when turns end.
        """
        self.model_session = model
        self._dispatcher = dispatcher
        self._functions = functions
        self._max_steps = max_steps
        self._memory = memory
        self._policy = policy
        self.sees = sees
        self._programs = programs
        self._changes: list[events.FunctionsChanged] = []
        self._forget = functions.on_change(self._changes.append)

    async def aclose(self) -> None:
        """Close the model."""
        self._forget()
        await self.model_session.models.aclose()

    async def run(self, turn: Turn) -> Ended:
        """Run steps until the policy ends the turn, and return how it ended."""
        policy = self._policy(turn, self._max_steps)
        try:
            async with turn.ending.interruption:
                turn.model = (await self.model_session.model()).name
            await self._functions.quarantine.refresh()  # another process may have released a function
            await self._functions.seen_results.load()
            if turn.origin.continues and self._programs is not None:
                await self._programs.go_on(turn, self.sees(self._functions.registry.snapshot(), turn.made))
            while True:
                turn.step += 1
                if await self._take_up(turn) or turn.step == 1:
                    await self._expect(turn)
                if ended := await policy.before_request():
                    return ended
                snapshot = self.sees(self._functions.registry.snapshot(), turn.made)
                reply = await self._ask(turn, snapshot, policy.excluded)
                reply = replace(reply, text=turn.own_name.of(reply.text))
                by_function = turn.style.by_function(self.model_session.models.mode)
                policy = policy.speaking(by_function=by_function)
                done = await self._act(turn, reply, snapshot)
                # After a call, the turn can only end if replies are sent by function; only then does it matter what
                # arrived.
                may_end = by_function or not done
                more_waits = may_end and await self._waits(turn)
                follows = policy.after(StepResult(reply, done, more_waits))
                entries = [notice(follows.advice)] if follows.advice else []
                if isinstance(follows, GoOn) and follows.heartbeat:
                    entries.append(heartbeat(follows.heartbeat, turn.style, turn.clock.now()))
                if entries:
                    await turn.append(entries)
                if isinstance(follows, Ended):
                    return follows
        except (Interrupted, ModelError) as error:
            return policy.broken_off(error)

    async def _expect(self, turn: Turn) -> None:
        """Show the model the client's functions, and the workspace functions that the last message probably needs."""
        self.model_session.functions.lend(turn.origin.client)
        shown, snapshot = self.model_session.shown, self.sees(self._functions.registry.snapshot(), turn.made)
        if (share := self.model_session.settings.growth.mask) and turn.step <= 1:
            # Mask random functions for this conversation, and record which grown functions the message probably needs.
            # The latter is computed over all functions, so it does not depend on what is masked.
            grown = await self._functions.grown(snapshot)
            masked = shown.mask(grown - self.model_session.functions.own_names, share, random)
            asked = turn.history.last_request()
            needed = await self._functions.likely(asked, _MEASURED, snapshot.hidden)
            if self.model_session.models.mode == "constrained":
                likely = [snapshot.functions[name] for name in needed]
                needed = await self.model_session.announced(asked, likely, snapshot)
            rows = [(name, snapshot.functions[name].body_hash, name in masked) for name in needed if name in grown]
            if rows:
                await turn.store.apply([SaveExposures(turn.id, turn.model, tuple(rows))])
        self.model_session.functions.choose(snapshot)
        if not shown.is_crowded:
            return
        hidden = snapshot.hidden | shown.masked
        names = await self._functions.likely(turn.history.last_request(), EXPECTED, hidden)
        shown.expect(names)
        if new := shown.beyond_index(names[:_MOST_TOLD]):
            await turn.append([notice(f"You also have: {'; '.join(new)}.")])

    async def _take_up(self, turn: Turn) -> bool:
        """Add what arrived since the last step, and return whether there was a message.

        This includes messages, other events, and changes to memory and functions by someone else.
        """
        if turn.step > 1:
            self.model_session.colleagues.look()
        waiting = await self._waiting(turn) if turn.journal.waits else []
        entries = [turn.taken_up(event) for event in waiting]
        turn.origin.is_asked |= any(event.kind in ("message", HEARD) for event in waiting)
        if self._memory is not None:
            entries += [notice(change) for change in await self._memory.changed_elsewhere(turn.journal.shared)]
        changes, self._changes[:] = list(self._changes), []
        for change in changes:
            turn.tell(change)
        seen = self.sees(self._functions.registry.snapshot(), turn.made)
        hidden = seen.hidden | self.model_session.shown.masked
        if changes and (
            told := self._functions.tell_changes(changes, hidden, self.model_session.functions.offered(seen))
        ):
            entries.append(notice(told))
        if entries:
            await turn.append(entries, takes=[event.id for event in waiting])
        for event in waiting:
            if event.kind == "message":
                turn.tell(events.MessageAdded(message=said_by(event)))
        return any(event.kind in ("message", HEARD) for event in waiting)

    async def _waiting(self, turn: Turn) -> list[Inbound]:
        return turn.taken(await turn.store.waiting(turn.agent, None if turn.origin.company else turn.origin.thread))

    async def _waits(self, turn: Turn) -> bool:
        """Return whether anything waits for the next step, and update the flag of the last append."""
        turn.journal.waits = turn.journal.waits and bool(await self._waiting(turn))
        return turn.journal.waits

    async def _ask(self, turn: Turn, snapshot: "Snapshot", excluded: frozenset[str]) -> "Reply":
        """Return one reply; request an agent's first reply again, up to a limit, until it has what the style requires.

        Raises:
            ModelError: something is still missing after the last attempt.
        """
        reply, style, fault = await self.model_session.ask(turn, snapshot, excluded), turn.style, ""
        for attempt in range(style.attempts + 1) if turn.origin.verify and turn.step == 1 else ():
            before, fault = fault, ""
            if (
                style.by_function(self.model_session.models.mode)
                and not turn.origin.client.split(reply.calls, 1).handed
            ):
                names = {
                    function.name for function in self.model_session.functions.all()
                } | self.model_session.shown.told
                fault = style.first_fault(reply, names)
            if not fault:
                return reply
            if attempt == style.attempts:
                raise ModelError(f"The agent's first reply was not usable, {attempt + 1} times: {fault}.", fix=UNUSABLE)
            if fault != before:
                advice = "" if attempt else f" {FIRST}"
                await turn.append([notice(f"Your first reply was not taken: {fault}.{advice}")])
            reply = await self.model_session.ask(turn, snapshot, excluded)
        return reply

    async def _act(self, turn: Turn, reply: "Reply", snapshot: "Snapshot") -> Sequence["Done"]:
        """Store the reply, run its calls, and return their results.

        Raises:
            Interrupted: the user ended the turn.
        """
        split = turn.origin.client.split(reply.calls, self.model_session.settings.turn.max_calls)
        if reply.text or reply.calls:
            message = Assistant(reply.text, reply.calls, reply.thought, reply.reasoning if reply.calls else ())
            spending = turn.origin.account.writes() if turn.origin.account else []
            starting = self._dispatcher.started_at_once(split.ours, snapshot) if split.ours else []
            shown, texts = self.model_session.request_record(snapshot)
            await turn.append([*shown, assistant(message), *starting, *split.refused], writes=[*texts, *spending])
        if reply.note:
            turn.warn(reply.note)
        if not reply.calls:
            return ()
        done = await self._dispatcher.run(split.ours, snapshot, turn)
        # Functions that kept failing are now hidden from the model: notify the user at once, and tell the model why.
        failed = {call.call.name for call in done if call.outcome in FAILURES}
        for news in await self._functions.quarantine.entered(failed, (turn.agent,)) if failed else ():
            turn.tell(news)
            await turn.append([notice(quarantine.told(news))])
        for call in done:
            self.model_session.shown.use(call.call.name)
        if turn.ending.interruption.requested:
            raise Interrupted
        if split.handed:  # they are open for the client
            await turn.append(handed_over(split.handed))
            turn.ending.handed = True
            for handed in split.handed:
                turn.tell(events.CallStarted(call_id=handed.id, name=handed.name, arguments=handed.arguments))
        return done

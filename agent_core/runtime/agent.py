"""The agent: `Agent.turn` runs the loop, and every interface consumes its events.

A turn is steps; a step is one model reply and the calls it asked for, and it ends with every call
answered. Whatever ends a turn, its history is valid and on disk.

The figures about an agent that a bottom bar shows.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from agent_core.access.grants.desk import heard_by
from agent_core.base import events
from agent_core.base.errors import WorkspaceError
from agent_core.base.messages import Message
from agent_core.context import KIND, PRESSURE, History, PageReader, claim, resume
from agent_core.context import pop as pop_turn
from agent_core.functions.service import Author, FunctionService, StaleView
from agent_core.memory.agent_memory import AgentMemory
from agent_core.model.ahead import Tell
from agent_core.storage import ClaimedTurn as Claimed
from agent_core.storage import PinFunction, Post, Store, UnpinFunction

from .loop import AgentLoop
from .model_session import ModelSession
from .recovery import closing_answers, last_event, settle
from .session import AgentSession
from .turn import Emit, Turn, messages_of, notice, said_by
from .turn_policy import Ended


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The figures about an agent in a bottom bar."""

    agent: str
    model: str
    context_tokens: int
    context_limit: int
    functions_shown: int
    functions_known: int


def status_of(agent: str, asker: ModelSession, functions: int) -> AgentStatus:
    """Return the status of an agent with so many functions in its workspace."""
    total = functions + asker.shown.pinned_count
    shown = min(len(asker.functions()), total)
    return AgentStatus(agent, asker.model_name, asker.context_tokens, asker.context_limit, shown, total)


Listener = Callable[[events.FunctionsChanged], None]


class Agent:
    """An assistant with its conversation; it runs one turn at a time."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        name: str,
        store: Store,
        workshop: FunctionService,
        stepper: AgentLoop,
        owner: str,
        *,
        talk: AgentSession,
        memory: AgentMemory,
    ) -> None:
        self.name = name
        self.memory = memory
        self.workshop = workshop
        self.talk = talk
        self.talk.model = stepper.asker.model
        self.restored = ""
        self._store = store
        self._stepper = stepper
        self._owner = owner
        self._history = History()
        self._turn: Turn | None = None
        self._one_at_a_time = asyncio.Lock()
        self._unread = StaleView()
        self._forget = workshop.on_change(self._unread.heard)
        self._closing = AsyncExitStack()
        self._is_closed = False
        self._ends_at_once = False

    @property
    def author(self) -> Author:
        """The author of a change that this agent makes now."""
        turn = self._turn.id if self._turn else ""
        return Author("agent", self.name, turn, self._stepper.asker.model_name, self._unread)

    async def restore(self) -> None:
        """Restore the conversation from storage and settle a turn that was cut off.

        Calls with an unseen outcome are answered as unknown, and never run again automatically.
        """
        self._stepper.own_set = frozenset(await self._store.pins(self.name))
        claimed = await claim(self._store, self.name, self._owner)
        if claimed is not None and claimed.attempt > 1:
            self.restored = await settle(self._store, claimed, self.talk)
            claimed = None
        await resume(self._store, self.name, self._history, messages_of)
        if claimed is not None:
            await self._begin(claimed, lambda _: None)
            await self._store.finish(claimed.id, claimed.attempt, "interrupted")
            self.restored = "Your last message had not been answered when the program stopped; /retry sends it again."

    def turn(self, message: str | None) -> AsyncGenerator[events.Event, None]:
        """Run one turn, from a message until the agent hands back, and yield its events; None processes what is
        waiting.

        Leaving the iteration early ends the turn as an interruption does.
        """
        return self._events(message)

    async def interrupt(self) -> None:
        """End the running turn; it leaves a valid history and the reason `interrupted`."""
        if self._turn is not None:
            self._turn.interruption.request()
        else:
            self._ends_at_once = self._one_at_a_time.locked()

    async def say_during_turn(self, message: str) -> None:
        """Store a message on disk that the running turn picks up at its next step."""
        await self._store.post(Post(self.name, "message", {"text": message}))

    async def waiting(self) -> list[str]:
        """Return the messages that no turn has picked up yet, oldest first."""
        waiting = await self._store.waiting(self.name)
        return [str(message.payload.get("text", "")) for message in waiting if message.kind == "message"]

    async def heartbeats(self) -> AsyncIterator[None]:
        """Yield each time a timed heartbeat is due: `turn(None)` handles it. End at once if there are none.

        A host that stays alive iterates over it in a task of its own.
        """
        async for _ in self.talk.heartbeats(self._one_at_a_time.locked):
            yield

    async def model_line(self) -> str:
        """Return one line that says which model answers and why it was chosen.

        Raises:
            NoModel: nothing is configured and nothing was found.
        """
        await self._stepper.asker.model()
        return self._stepper.asker.line

    async def measure(self) -> None:
        """Estimate how much of the window a resumed conversation takes, before its first reply."""
        await self._stepper.asker.estimate(self._history, self.workshop.registry.snapshot(), self._stepper.own_set)

    async def prepare(self, tell: Tell = lambda *_: None) -> None:
        """Prefill a slow local model's prompt cache with the prefix of every request; `tell` gets (tokens done, total).

        Raises:
            ModelError: the model cannot be had.
        """
        await self._stepper.asker.prepare(self.workshop.registry.snapshot(), self._stepper.own_set, tell)

    async def set_model(self, name: str) -> str:
        """Switch to another model from the next step on, and return the line that describes it."""
        await self._stepper.asker.change(name)
        return self._stepper.asker.line

    async def pop(self) -> str | None:
        """Remove the last turn from the context (not from the record) and return the user's message in it."""
        self._must_be_idle()
        await self.memory.recall.catch_up()  # what is out of the context is not out of recall
        entries = await pop_turn(self._store, self.name)
        await resume(self._store, self.name, self._history, messages_of)
        return next((str(entry.payload["text"]) for entry in entries if entry.kind == "user"), None)

    async def ends_with_a_file(self) -> bool:
        """Return whether the user's last message came with an agent's file, in which anybody may have put it."""
        said = await self._store.history(self.name, kinds=("user",))
        return bool(said) and said[-1].is_imported

    async def begin_anew(self) -> int:
        """Remove every turn from the context (not from the record) and return how many there were."""
        self._must_be_idle()
        await self.memory.recall.catch_up()
        hidden = await self._store.hide_turns(self.name)
        self._history.clear()
        self._stepper.asker.context_tokens = 0
        return hidden

    async def summarize(self) -> str:
        """Summarize the older part of the conversation now, and return a sentence about the result.

        Raises:
            ModelError: the model cannot be had.
        """
        self._must_be_idle()
        async with self._one_at_a_time:
            await self._store.post(Post(self.name, KIND, {}, due=0.0))  # before all that waits
            claimed = await self._store.next(self.name, self._owner)
            assert claimed is not None
            turn = Turn(
                claimed.id, self.name, claimed.attempt, claimed.n, self._store, self._history, lambda _: None, self
            )
            self._turn = turn
            try:
                return await self._stepper.asker.summarize(turn, self.workshop.registry.snapshot(), self.own_set)
            finally:
                self._turn = None
                await self._store.finish(turn.id, turn.attempt)

    async def warn_memory(self) -> None:
        """Warn the model of memory pressure: at the next step, or by `turn(None)`."""
        await self._store.post(Post(self.name, "notice", {"text": PRESSURE.text}))

    async def read_on(self, name: str, page: int) -> str:
        """Return a page of a text that was shown in part.

        Raises:
            UsageError: nothing has this name, or it has no such page.
        """
        return await PageReader(self._store, self.name, lambda: self._history.page_chars).page(name, page)

    async def keep(self, function: str) -> None:
        """Add a function to this agent's own set: the agent is always shown it.

        Raises:
            UsageError: there is no such function.
        """
        self.workshop.path_of(function)
        await self._store.apply([PinFunction(self.name, function)])
        self._stepper.own_set = frozenset(await self._store.pins(self.name))

    async def release(self, function: str) -> None:
        """Remove a function from this agent's own set; the file stays."""
        await self._store.apply([UnpinFunction(self.name, function)])
        self._stepper.own_set = frozenset(await self._store.pins(self.name))

    @property
    def own_set(self) -> frozenset[str]:
        """The functions that are always shown to this agent."""
        return self._stepper.own_set

    async def history(self) -> list[Message]:
        """Return the conversation as it is in the context."""
        return list(self._history)

    def status(self) -> AgentStatus:
        """Return the figures for a status bar; this is cheap."""
        return status_of(self.name, self._stepper.asker, len(self.workshop.registry.snapshot().functions))

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Notify a listener of functions that someone else changes; the returned callable ends it."""
        return self.workshop.on_change(listener)

    async def aclose(self) -> None:
        """Release the model and the agent's lock; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._forget()
            await self._stepper.aclose()
            await self._closing.aclose()

    def close_with(self, stack: AsyncExitStack) -> None:
        """Register a stack of resources to be closed together with this agent."""
        self._closing = stack

    def _must_be_idle(self) -> None:
        if self._one_at_a_time.locked():
            raise WorkspaceError("A turn is running.", fix="End it with Ctrl-C first.")

    async def _events(self, message: str | None) -> AsyncGenerator[events.Event, None]:
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        async with self._one_at_a_time:
            work = asyncio.create_task(self._run(message, queue.put_nowait))
            work.add_done_callback(lambda _: queue.put_nowait(None))
            try:
                while (event := await queue.get()) is not None:
                    yield event
            finally:
                if self._turn is not None:
                    self._turn.interruption.request()
                await work
                self._ends_at_once = False

    async def _run(self, message: str | None, emit: Emit) -> None:
        if message is not None:
            await self._store.post(Post(self.name, "message", {"text": message}))
        claimed = await self._store.next(self.name, self._owner)
        if claimed is None:
            return
        turn = await self._begin(claimed, emit)
        self._turn = self.talk.turn = turn
        if self._ends_at_once:
            turn.interruption.request()
        try:
            with heard_by(turn):
                ended = await self._steps(turn)
        finally:
            self._turn = self.talk.turn = None
            self.talk.touch()
        if ended.warning:
            turn.warn(ended.warning)
        await self._store.finish(turn.id, turn.attempt, "done" if ended.reason == "replied" else ended.reason)
        emit(last_event(turn, ended))

    async def _steps(self, turn: Turn) -> Ended:
        try:
            ended = await self._stepper.run(turn)
        except Exception:
            # A fault of our own: the history is made valid first, and the interface's edge records the rest.
            await self._settle_calls(turn, "The turn ended here because the program failed.")
            await self._store.finish(turn.id, turn.attempt, "failed")
            raise
        if ended.reason == "interrupted":
            await self._settle_calls(turn, "The user ended the turn here.")
        return ended

    async def _begin(self, claimed: Claimed, emit: Emit) -> Turn:
        event, is_first = claimed.event, not any(self._history)
        turn = Turn(claimed.id, self.name, claimed.attempt, claimed.n, self._store, self._history, emit, self)
        turn.style, turn.clock = self.talk.style, self.talk.clock
        turn.verify = is_first and self.talk.verify and turn.style.verify
        turn.is_asked = event.kind in ("message", "login")
        await turn.append(await self.talk.opening(event, is_first=is_first))
        emit(events.TurnStarted(turn=turn.id, agent=self.name, message=said_by(event), event=event.kind))
        return turn

    async def _settle_calls(self, turn: Turn, why: str) -> None:
        """Answer the calls of a turn that ended early, so that its history is valid."""
        await turn.append([*closing_answers(await self._store.load(turn.id)), notice(why)])

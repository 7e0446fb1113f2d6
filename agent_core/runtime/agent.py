"""The agent: `Agent.turn` runs the loop, and every interface consumes its events.

A turn is steps; a step is one model reply and the calls it asked for, and it ends with every call answered. Whatever
ends a turn, its history is valid and on disk.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from agent_core.access.grants import Approver
from agent_core.base import events
from agent_core.base.errors import TurnError, WorkspaceError
from agent_core.base.messages import Message
from agent_core.context import PRESSURE, History, PageReader, claim, resume
from agent_core.context import pop as pop_turn
from agent_core.functions.debug import Debugger, DebuggerSeat
from agent_core.functions.service import Author, FunctionService, StaleView
from agent_core.memory.agent_memory import AgentMemory
from agent_core.model.request import Tell
from agent_core.storage import SUMMARY, Inbound, Post, Store
from agent_core.storage import ClaimedTurn as Claimed

from .loop import AgentLoop
from .session import SENT, AgentSession, closing_answers, last_event, settle
from .turn import Emit, Turn, messages_of, notice, said_by
from .turn_policy import Ended

SaveAgentFile = Callable[[str, Path | str], Awaitable[None]]
"""Writes the agent of a name to a file."""


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The figures about an agent in a bottom bar."""

    agent: str
    model: str
    context_tokens: int
    context_limit: int
    functions_shown: int
    functions_known: int


class Agent:
    """An assistant with its conversation; it runs one turn at a time."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        name: str,
        store: Store,
        workshop: FunctionService,
        loop: AgentLoop,
        owner: str,
        *,
        talk: AgentSession,
        memory: AgentMemory,
        save: SaveAgentFile,
        resources: AsyncExitStack | None = None,
    ) -> None:
        """Create the agent; `resources` are closed with it."""
        self.name = name
        self.memory = memory
        self.workshop = workshop
        self.talk = talk
        self.restored = ""
        self._store = store
        self._loop = loop
        self._owner = owner
        self._save = save
        self._history = History()
        self._turn: Turn | None = None
        self._one_at_a_time = asyncio.Lock()
        self._unread = StaleView()
        self._resources = resources or AsyncExitStack()
        self._resources.push_async_callback(loop.aclose)
        self._resources.callback(workshop.on_change(self._unread.heard))
        self._ends_at_once = False

    @property
    def author(self) -> Author:
        """The author of a change that this agent makes now."""
        turn, model = self._turn, self._loop.asker.model_name
        if turn is None:
            return Author("agent", self.name, "", model, self._unread)
        return Author("agent", self.name, turn.id, model, self._unread, turn.approvals, turn.seat)

    async def restore(self) -> None:
        """Restore the conversation from storage and settle a turn that was cut off.

        Calls with an unseen outcome are answered as unknown, and never run again automatically.
        """
        await self.talk.own_set.load()
        claimed = await claim(self._store, self.name, self._owner)
        if claimed is not None and claimed.attempt > 1:
            self.restored = await settle(self._store, claimed, self.talk)
            claimed = None
        await resume(self._store, self.name, self._history, messages_of)
        if claimed is not None:
            await self._begin(self._turn_of(claimed, lambda _: None), claimed.event)
            await self._store.finish(claimed.id, claimed.attempt, "interrupted")
            self.restored = "Your last message had not been answered when the program stopped; /retry sends it again."

    async def turn(
        self, message: str | None, *, approver: Approver | None = None, debugger: Debugger | None = None
    ) -> AsyncGenerator[events.Event, None]:
        """Run one turn, from a message until the agent hands back, and yield its events; None processes what is
        waiting.

        `approver` is asked about grants and `debugger` handles stops in this turn, instead of those of the workspace.
        Leaving the iteration early ends the turn as an interruption does.
        """
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        async with self._one_at_a_time:
            work = asyncio.create_task(self._run(message, queue.put_nowait, approver, debugger))
            work.add_done_callback(lambda _: queue.put_nowait(None))
            try:
                while (event := await queue.get()) is not None:
                    yield event
            finally:
                if self._turn is not None:
                    self._turn.interruption.request()
                await work
                self._ends_at_once = False

    async def ask(self, message: str) -> str:
        """Run one turn and return the reply.

        Raises:
            TurnError: the turn ended without one.
        """
        warnings: list[str] = []
        async for event in self.turn(message):
            if isinstance(event, events.Warned):
                warnings.append(event.message)
            elif isinstance(event, events.TurnEnded) and event.reason == "replied":
                return event.reply
        why = warnings[-1] if warnings else "It was interrupted."
        raise TurnError(f"The agent `{self.name}` did not reply: {why}")

    async def save(self, path: Path | str) -> None:
        """Write this agent to a new file, as one JSON document that only its owner can read.

        Raises:
            UsageError: it cannot be written; a file that is there stays as it is.
        """
        await self._save(self.name, path)

    async def interrupt(self) -> None:
        """End the running turn; it leaves a valid history and the reason `interrupted`."""
        if self._turn is not None:
            self._turn.interruption.request()
        else:
            self._ends_at_once = self._one_at_a_time.locked()

    def send(self, message: str) -> str:
        """Show the user a message of the running turn, and return the answer for the model."""
        if self._turn is not None:
            self._turn.say(message)
        return SENT

    async def ask_model(self, message: str) -> str:
        """Return the answer of the agent's model to one message alone: no persona, no memory, no functions.

        Raises:
            ModelError: there is no usable answer.
        """
        return await self._loop.asker.ask_alone(message, self._turn)

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
        await self._loop.asker.model()
        return self._loop.asker.line

    async def measure(self) -> None:
        """Estimate how much of the window a resumed conversation takes, before its first reply."""
        await self._loop.asker.estimate(self._history, self.workshop.registry.snapshot())

    async def prepare(self, tell: Tell = lambda *_: None) -> None:
        """Prefill a slow local model's prompt cache with the prefix of every request; `tell` gets (tokens done, total).

        Raises:
            ModelError: the model cannot be had.
        """
        await self._loop.asker.prepare(self.workshop.registry.snapshot(), tell)

    async def set_model(self, name: str) -> str:
        """Switch to another model from the next step on, and return the line that describes it."""
        await self._loop.asker.change(name)
        return self._loop.asker.line

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
        self._loop.asker.context_tokens = 0
        return hidden

    async def summarize(self) -> str:
        """Summarize the older part of the conversation now, and return a sentence about the result.

        Raises:
            ModelError: the model cannot be had.
        """
        self._must_be_idle()
        async with self._one_at_a_time:
            await self._store.post(Post(self.name, SUMMARY, {}, due=0.0))  # before all that waits
            claimed = await self._store.next(self.name, self._owner)
            assert claimed is not None
            turn = self._turn = self._turn_of(claimed, lambda _: None)
            try:
                return await self._loop.asker.summarize(turn, self.workshop.registry.snapshot())
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
        await self.talk.own_set.add(function)

    async def release(self, function: str) -> None:
        """Remove a function from this agent's own set; the file stays."""
        await self.talk.own_set.remove(function)

    @property
    def own_set(self) -> frozenset[str]:
        """The functions that are always shown to this agent."""
        return self.talk.own_set.names

    async def history(self) -> list[Message]:
        """Return the conversation as it is in the context."""
        return list(self._history)

    def status(self) -> AgentStatus:
        """Return the figures for a status bar; this is cheap."""
        asker = self._loop.asker
        total = len(self.workshop.registry.snapshot().functions) + asker.shown.pinned_count
        shown = min(len(asker.functions()), total)
        return AgentStatus(self.name, asker.model_name, asker.context_tokens, asker.context_limit, shown, total)

    def on_change(self, listener: Callable[[events.FunctionsChanged], None]) -> Callable[[], None]:
        """Notify a listener of functions that someone else changes; the returned callable ends it."""
        return self.workshop.on_change(listener)

    async def aclose(self) -> None:
        """Release the model and the agent's lock; a second call does nothing."""
        await self._resources.aclose()

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _must_be_idle(self) -> None:
        if self._one_at_a_time.locked():
            raise WorkspaceError("A turn is running.", fix="End it with Ctrl-C first.")

    async def _run(self, message: str | None, emit: Emit, approver: Approver | None, debugger: Debugger | None) -> None:
        if message is not None:
            await self._store.post(Post(self.name, "message", {"text": message}))
        claimed = await self._store.next(self.name, self._owner)
        if claimed is None:
            return
        turn = self._turn_of(claimed, emit, approver, debugger)
        await self._begin(turn, claimed.event)
        self._turn = turn
        if self._ends_at_once:
            turn.interruption.request()
        try:
            ended = await self._steps(turn)
        finally:
            self._turn = None
            self.talk.touch()
        if ended.warning:
            turn.warn(ended.warning)
        await self._store.finish(turn.id, turn.attempt, "done" if ended.reason == "replied" else ended.reason)
        emit(last_event(turn, ended))

    async def _steps(self, turn: Turn) -> Ended:
        try:
            ended = await self._loop.run(turn)
        except Exception:
            # A fault of our own: the history is made valid first, and the interface's edge records the rest.
            await self._settle_calls(turn, "The turn ended here because the program failed.")
            await self._store.finish(turn.id, turn.attempt, "failed")
            raise
        if ended.reason == "interrupted":
            await self._settle_calls(turn, "The user ended the turn here.")
        return ended

    def _turn_of(
        self, claimed: Claimed, emit: Emit, approver: Approver | None = None, debugger: Debugger | None = None
    ) -> Turn:
        is_first, queue = not any(self._history), self.workshop.granting.queue
        return Turn(
            claimed.id,
            self.name,
            claimed.attempt,
            claimed.n,
            self._store,
            self._history,
            emit,
            self,
            style=self.talk.style,
            clock=self.talk.clock,
            verify=is_first and self.talk.verify and self.talk.style.verify,
            is_asked=claimed.event.kind in ("message", "login"),
            queue=queue if approver is None else queue.asking(approver),
            seat=None if debugger is None else DebuggerSeat(debugger),
        )

    async def _begin(self, turn: Turn, event: Inbound) -> None:
        """Store the first entries of a turn, and notify its listeners."""
        await turn.append(await self.talk.opening(event, is_first=not any(self._history)))
        turn.emit(events.TurnStarted(turn=turn.id, agent=self.name, message=said_by(event), event=event.kind))

    async def _settle_calls(self, turn: Turn, why: str) -> None:
        """Answer the calls of a turn that ended early, so that its history is valid."""
        await turn.append([*closing_answers(await self._store.load(turn.id)), notice(why)])

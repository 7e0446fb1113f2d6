"""Running the agents of a workspace for a server: a runner executes their turns, event streams inform the clients."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import fields
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from agent_core.access.grants.approval import asking
from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.errors import AgentBusy, KnapperError, StorageError, UsageError
from agent_core.base.events import Event
from agent_core.base.pictures import Picture, PictureFile, check_count
from agent_core.base.policy import Policy
from agent_core.base.records import dataclass, field, replace, to_json
from agent_core.base.untrusted import one_line
from agent_core.operations.history_pages import PAGE_BYTES, Hold, hold_freely, read_page
from agent_core.operations.waiting_messages import LIST_LIMIT, TEXT_CHARS
from agent_core.runtime.agent import Agent
from agent_core.runtime.event_fold import TOLD_KINDS, EventFold
from agent_core.runtime.live_feed import LiveReader
from agent_core.runtime.step_pieces import StepPieces
from agent_core.storage import (
    BETWEEN,
    CONVERSATION,
    FROM_USER,
    LARGEST_NUMBER,
    STATE,
    SUMMARY,
    WORK,
    AgentName,
    CallOwners,
    EndedTurn,
    Entry,
    Line,
    Post,
    Posted,
    Store,
    TurnStore,
    agent_named,
    agent_of,
    is_agent_name,
    is_history,
    prepare_state_dir,
    sender_of,
)
from agent_core.storage.inbox import ONLY, POLICY
from agent_core.storage.picture_files import PictureFiles
from agent_core.storage.turn_store import N_BITS
from agent_core.views.call_log import changed_lines, is_own
from agent_core.views.faults import keep_traceback
from agent_core.views.styled_lines import plain
from agent_core.workspace.conversations import Conversations
from agent_core.workspace.runner import Runner, bell
from agent_core.workspace.state_store import WorkspaceState, state_of
from agent_core.workspace.workspace import Workspace

from .identity import OWNER, ApiRefusal, Identity, NotThere
from .remote_debugger import RemoteDebugger

_log = logging.getLogger(__name__)
_AGAIN_S: Final = 1.0  # pause after an internal error, doubled each time
_LATEST_S: Final = 60.0
_MOST_EVENTS: Final = 2_000  # queue limit of a slow listener
_MOST_PIECES: Final = 100  # beyond that, pieces of text in the queue are joined
_LONGEST_PIECE: Final = 16 << 10
_MOST_QUEUED: Final = (
    1 << 20
)  # characters in the queue of a listener that can read the journal instead
_USED_S: Final = 5.0
_MOST_IDLE: Final = (
    32  # open agents without a turn: each has a lock's file and connections to the model
)
_LOOK_S: Final = 0.2
_MOST_ENDS: Final = 100
HISTORY_OWNER: Final = "chat_token"
"""The key, in the settings of a history that a program sent, for the id of its token."""
_MODEL_S: Final = 10.0  # between checks for a model after none was found


@dataclass(eq=False, slots=True)
class Listening:
    """The event queue of one listener; `is_behind` means that it was too slow and live pieces were dropped.

    One that `reads_journal` gets only the numbers of events that are on disk, and its queue is bounded in characters.
    """

    reads_journal: bool = False
    _queue: deque[Event] = field(default_factory=deque)
    _comes: asyncio.Event = field(default_factory=asyncio.Event)
    _size: int = 0
    is_behind: bool = False
    is_over: bool = False

    def hear(self, event: Event) -> None:
        """Queue an event.

        Pieces of text are joined when the queue grows, so that a slow listener still gets the whole reply. When the
        queue is full, it is cleared: the listener reads the lost events from the journal, except live pieces.
        """
        if self.reads_journal and event.seq:
            event = events.MessageAdded(message="", seq=event.seq)  # it reads which event has it
        size = _size(event)
        is_long = self.reads_journal and self._size > 0 and self._size + size > _MOST_QUEUED
        if is_long or len(self._queue) >= _MOST_EVENTS:
            self.skip()
            self.is_behind = True
        if len(self._queue) >= _MOST_PIECES and (
            joined := _join_pieces(self._queue[-1], event, _LONGEST_PIECE)
        ):
            self._size += _size(joined) - _size(self._queue[-1])
            self._queue[-1] = joined
            return
        self._size += size
        self._queue.append(event)
        self._comes.set()

    def look(self) -> None:
        """Wake the listener so that it reads the journal: another process may have written to it."""
        self._comes.set()

    def skip(self) -> None:
        """Drop all queued events."""
        self._queue.clear()
        self._size = 0

    def end(self) -> None:
        """Mark the stream as ended and wake the listener."""
        self.is_over = True
        self._comes.set()

    async def next(self, timeout_s: float) -> Event | None:
        """Return the next event, or None after the timeout or at the end of the stream."""
        if not self._queue and not self.is_over:
            self._comes.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._comes.wait()
            except TimeoutError:
                return None
        if not self._queue:
            return None
        event = self._queue.popleft()
        self._size -= _size(event)
        return event


def _size(event: Event | None) -> int:
    """Return about how many characters an event has."""
    waiting, size = (
        list[Any]() if event is None else [getattr(event, one.name) for one in fields(event)],
        0,
    )
    while waiting:
        match waiting.pop():
            case str() as text:
                size += len(text)
            case dict() as members:
                size += len(members)
                waiting += [*members.keys(), *members.values()]
            case list() | tuple() as items:
                size += len(items)
                waiting += items
            case _:
                pass
    return size


def _join_pieces(last: Event, event: Event, longest: int) -> Event | None:
    """Join two pieces of the same text; return None if they do not match or the first exceeds `longest` characters."""
    if (last.turn, last.step, last.agent) != (event.turn, event.step, event.agent):
        return None
    match last, event:
        case events.Text(), events.Text() if len(last.text) <= longest:
            return replace(last, text=last.text + event.text)
        case events.Writing(), events.Writing() if (
            last.place == event.place and len(last.arguments) <= longest
        ):
            return replace(last, arguments=last.arguments + event.arguments)
        case _:
            return None


def _own_key(identity: Identity, key: str) -> str:
    """Return the stored form of a client's key: no other token, and nothing in the program, has the same."""
    return json.dumps(["message", identity.name, key])


class AgentHost:
    """A host that opens agents on demand, runs their turns, and publishes their events to all listeners.

    Each conversation of an agent is opened by itself: a `name` here is that of an agent, for its main conversation, or
    the line of another one.
    """

    def __init__(self, workspace: Workspace, report: Callable[[BaseException], object]) -> None:
        """Create the host; `report` is called with internal errors of turns that no caller waits for."""
        self.workspace = workspace
        self._store = store = workspace.store
        self._report = report
        self._agents: dict[str, Agent] = {}
        self._listening: dict[str, list[Listening]] = {}
        self._tails: dict[str, JournalTail] = {}  # of agents that have listeners
        self._opening = asyncio.Lock()
        self._changing = WeakValueDictionary[
            str, asyncio.Lock
        ]()  # held by whoever needs an agent idle
        self._pieces: dict[str, StepPieces] = {}  # live pieces of the running step, by agent
        slots = workspace.settings.runner.slots
        kinds = (*BETWEEN, *FROM_USER, *((SUMMARY,) if store.is_shared else ()))
        self._runner = Runner(
            store,
            self._turn,
            self._end,
            slots=slots,
            clock=Clock(),
            kinds=kinds,
            let_go=self._let_go,
            on_fault=self._warn_all,
        )
        self._leaving: dict[str, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._looking: asyncio.TimerHandle | None = None
        self._passed_on: set[str] = set()  # conversations whose turns other processes run
        # By conversation, the messages that its listeners know to wait.
        self._waiting: dict[str, dict[str, events.MessageAdded]] = {}
        self.hearers: list[
            Callable[[Event], None]
        ] = []  # called with every event of every turn here
        self.debugger = RemoteDebugger(workspace.debugging)
        self.saves = 0
        """The number of changes to function files since the start that this process knows of."""
        self.last_save = ""
        self._trouble: asyncio.Task[str] | None = (
            None  # the last check for a model; `_looked_at`: its start
        )
        self._looked_at = 0.0

    @asynccontextmanager
    async def at_work(self, grace_s: float) -> AsyncIterator[None]:
        """Run due turns while the block runs; then let running turns end within the grace, and close the agents."""
        async with (
            bell(self._store, prepare_state_dir(self.workspace.root), self._hear_bell),
            self._store.heard(self._hear_topic),
        ):
            await self._store.offer_slots(self.workspace.settings.runner.slots)
            work = asyncio.create_task(self._run())
            quiet = self.workspace.functions.on_change(self._count_save)
            try:
                yield
            finally:
                quiet()
                if self._trouble is not None:
                    self._trouble.cancel()
                await self._runner.stop(grace_s)
                await work
                self.end_streams()
                for timer in self._leaving.values():
                    timer.cancel()
                while self._closing:
                    await asyncio.gather(*self._closing)
                if self._looking is not None:
                    self._looking.cancel()
                for agent in self._agents.values():
                    await agent.aclose()

    def _count_save(self, changed: events.FunctionsChanged) -> None:
        self.saves += 1
        if not is_own(changed, ()):
            self.last_save = plain(changed_lines(changed)).rstrip()

    def model_trouble(self) -> str:
        """Return why no model is available and how to fix it, or "" if there is one.

        The result is that of the last check. While no model is found, a new check starts in the background at most
        every `_MODEL_S` seconds.
        """
        now = asyncio.get_running_loop().time()
        found = self._trouble.result() if self._trouble is not None and self._trouble.done() else ""
        if self._trouble is None or (found and now > self._looked_at + _MODEL_S):
            self._trouble, self._looked_at = (
                asyncio.create_task(self.workspace.model_trouble()),
                now,
            )
        return found

    async def _run(self) -> None:
        """Run turns until the runner stops. Report an internal error of the runner and start it again."""
        pause = _AGAIN_S
        while True:
            try:
                return await self._runner.run()
            except Exception as error:  # noqa: BLE001  (the top of a task, without which no turn would begin)
                self._report(error)
                self._warn_all("", KnapperError("The program failed."))
            await self._runner.rest(pause)
            pause = min(2 * pause, _LATEST_S)

    async def agent(self, name: str) -> Agent:
        """Return an agent, opened if necessary.

        Raises:
            AgentBusy: another process runs it.
        """
        async with self._opening:
            agent = self._agents.pop(name, None)  # the last used is the last
            if agent is None:
                await self._make_room(name)
                agent = await self.workspace.agent_at(name, answers=True)
                self._runner.poke(name)  # something may have waited for it
            self._agents[name] = agent
            idle = [
                other
                for other in self._agents
                if not self.is_running(other) and other not in self._changing
            ]
            for other in idle[:-_MOST_IDLE]:
                with suppress(KnapperError, OSError):  # it is not the one that was asked for
                    await self._let_go(other)
            if (
                self._store.is_shared
            ):  # it is closed a while after its last use, so that other processes can have it
                if (timer := self._leaving.pop(name, None)) is not None:
                    timer.cancel()
                self._leaving[name] = asyncio.get_running_loop().call_later(
                    _USED_S, self._leave, name
                )
            return agent

    def _leave(self, name: str) -> None:
        if name in self._changing:
            self._leaving[name] = asyncio.get_running_loop().call_later(_USED_S, self._leave, name)
        elif not self.is_running(name):
            task = asyncio.get_running_loop().create_task(self._let_go(name))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _let_go(self, name: str) -> None:
        if (agent := self._agents.pop(name, None)) is not None:
            await agent.aclose()

    def _hear_bell(self) -> None:
        self._runner.poke()
        self._hear_topic(WORK)

    def _hear_topic(self, topic: str) -> None:
        """Wake the listeners soon, so that they read the journal: another process may have ended a turn."""
        if topic == WORK and self._looking is None and self._listening:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = None
        task = asyncio.get_running_loop().create_task(self._look_again())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        for listening in [one for every in self._listening.values() for one in every]:
            listening.look()

    async def _look_again(self) -> None:
        """Look at the journal again later if another process writes to one that has listeners."""
        try:
            work = await self._store.open_work()
            for line in [line for line in self._listening if self._is_heard(line)]:
                await self.tell_waiting(line)
        except StorageError as error:
            self._warn_all("", error)
            return
        running = {open_turn.line for open_turn in work if open_turn.is_running}
        elsewhere = running - {*self._runner.running}
        for name in elsewhere - self._passed_on:
            if not self._is_heard(name):
                continue
            self._passed_on.add(name)
            task = asyncio.get_running_loop().create_task(self._pass_on(name))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _is_heard(self, name: str) -> bool:
        return any(not listening.is_over for listening in self._listening.get(name, ()))

    async def _pass_on(self, name: str) -> None:
        """Tell the listeners of a turn that another process runs, as it comes; then they look at the journal."""
        comes = asyncio.Event()
        feed = await LiveReader.connect(self._store.place, name, comes)
        try:
            while feed is not None and not feed.is_over and self._is_heard(name):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await comes.wait()
                comes.clear()
                for event in feed.taken():
                    self._keep_piece(name, event)
        finally:
            self._passed_on.discard(name)
            if feed is not None:
                feed.close()
            self._hear_topic(WORK)

    async def _make_room(self, name: str) -> None:
        """Close idle agents that conflict with this one: a group holds its members while it is open."""
        groups = self.workspace.groups.read()
        name = agent_of(name)
        holders = {group for group, file in groups.items() if name in file.members}
        others = set(groups[name].members) if name in groups else holders
        for other in others & self._agents.keys():
            await self.close_idle(other)

    def is_open(self, name: Line) -> bool:
        """Return whether the agent is open here. If so, it exists and no other process can delete it."""
        return name in self._agents

    def is_running(self, name: str) -> bool:
        """Return whether a turn of the conversation is under way here."""
        return name in self._runner.running

    def is_at_work(self, agent: str) -> bool:
        """Return whether a turn of any conversation of an agent is under way here."""
        return any(agent_of(line) == agent for line in self._runner.running)

    async def post(
        self,
        name: str,
        text: str,
        key: str | None = None,
        *,
        identity: Identity = OWNER,
        policy: Policy | None = None,
        **more: object,
    ) -> Posted:
        """Store a message and let the agent answer it. A `key` makes a retry harmless; `more` is stored with it.

        The `policy` is that of the turn which it begins, as far as the identity may have it.

        With `alone=True`, a running turn does not take the message: it gets a turn to itself.

        The agents that `identity` may use are stored, too, because a group may have other members when the turn begins.

        Raises:
            AgentBusy: another process runs the agent.
            StorageError: the inbox is full, or the message cannot be stored.
        """
        if not self._store.is_shared:  # in a shared store, any process may answer
            await self.agent(name)
        only = {ONLY: sorted(identity.agents)} if identity.agents else {}
        usual = self.workspace.settings.policy
        policy = identity.allowed(policy or usual, usual)
        is_usual = policy == usual and identity.is_owner  # a token's may not join what has more
        own = {} if is_usual else {POLICY: policy.to_json()}
        payload = {"text": text, **more, **only, **own}
        if key is not None:
            key = _own_key(identity, key)
        posted = await self._store.post_after(
            Post(name, "message", payload, key=key, origin=identity.sender.to_json())
        )
        self._runner.poke(name)
        if (
            await self._store.turn_of(posted.event, name) is None
        ):  # otherwise its turn has already sent an event
            await self.tell_waiting(name)
        return posted

    async def tell_waiting(self, line: str) -> None:
        """Tell the listeners of a conversation which messages wait now that did not, or read otherwise, or are gone."""
        if not self._is_heard(line):
            return
        known = self._waiting.get(line, {})
        now = {event.message_id: event for event in await waiting_events(self._store, line)}
        self._waiting[line] = now
        for id, event in now.items():
            is_news = known.get(id) != event
            if is_news and await self._store.turn_of(id, line) is None:
                self._tell(line, event)
        for id in known.keys() - now.keys():
            if not await self._store.is_there(id):  # else a turn has it, which tells of it
                self._tell(line, events.MessageWithdrawn(turn="", message_id=id))

    @asynccontextmanager
    async def keeping(self, *messages: Sequence[PictureFile]) -> AsyncIterator[list[list[Picture]]]:
        """Keep the pictures of messages, and yield those of each; if the block refuses these, they go again.

        Raises:
            UnusablePicture: one cannot be used.
        """
        for files in messages:
            check_count(files)
        async with PictureFiles(self.workspace.root / STATE).batch() as batch:
            yield [[await batch.keep(file.data, file.name) for file in files] for files in messages]

    async def has_lost(self, name: str, event: str) -> bool:
        """Return whether a message that was posted is gone, because its agent was deleted."""
        is_waiting = any(id == event for id, _ in await self._store.waiting_events(name))
        return not is_waiting and await self._store.turn_of(event, name) is None

    def tell_removed(self, name: str) -> None:
        """Notify the listeners that turns were removed from the conversation."""
        self._tell(name, events.TurnsRemoved(turn=""))

    @asynccontextmanager
    async def idle(self, name: str) -> AsyncIterator[Agent]:
        """Yield an agent that is not running a turn; another caller waits until the block has ended.

        Raises:
            ApiRefusal: a turn is running.
        """
        async with self._changing.setdefault(name, asyncio.Lock()):
            if self.is_running(name) and not await self._store.running_event(name):
                await self._runner.ended(name)  # its clients know already that it has ended
            if self.is_running(name):
                fix = "Interrupt it, or wait for its end."
                raise ApiRefusal(409, "agent-busy", f"A turn of `{name}` is running.", fix)
            yield await self.agent(name)

    async def interrupt(self, name: str) -> bool:
        """End the running turn of an agent, and return whether there was one."""
        is_running = self.is_running(name) and name in self._agents
        if is_running:
            await self._agents[name].interrupt()
        event = await self._store.running_event(name)
        turn = await self._store.turn_of(event, name) if event else None
        if turn is not None:  # another process may run it, also while this one tries to
            await self._store.cancel(turn)
        return is_running or turn is not None

    async def interrupt_all(self, agent: str) -> bool:
        """End the running turns of all conversations of an agent, and return whether there was one."""
        others = [line for line in self._runner.running if agent_of(line) == agent != line]
        return any([await self.interrupt(line) for line in (agent, *others)])

    @contextmanager
    def listen(self, name: str, *, reads_journal: bool = False) -> Iterator[Listening]:
        """Subscribe to the events of an agent while the block runs."""
        listening = Listening(reads_journal)
        self._listening.setdefault(name, []).append(listening)
        try:
            yield listening
        finally:
            self._listening[name].remove(listening)
            if not self._listening[name]:
                self._tails.pop(name, None)
                self._waiting.pop(name, None)

    async def news(
        self, name: str, last: int, hold: Hold, *, must_look: bool
    ) -> "AsyncGenerator[NumberedEvent, None]":
        """Yield the events of an agent's journal after a number, holding at most a page of them.

        The journal is read once for all listeners, if this process knows of new events or with `must_look`.
        """
        tail = self._tails.setdefault(name, JournalTail(self._store, name, last))
        found = await tail.after(last, must_look=must_look)
        if found is None:
            async with aclosing(JournalReader(self._store, name, last).pages(hold)) as pages:
                async for numbered in pages:
                    yield numbered
            return
        release = await hold(sum(_size(numbered.event) for numbered in found))
        try:
            for numbered in found:
                yield numbered
        finally:
            release()

    async def past(self, name: str, turn: str | None) -> AsyncGenerator[Event, None]:
        """Yield the events of a turn of an agent from its journal."""
        number = await self._store.turn_number(name, turn) if turn is not None else None
        if number is None:
            return
        reader = JournalReader(self._store, name, number, upto=(number >> N_BITS) + 2 << N_BITS)
        async for numbered in reader.pages(hold_freely):
            if numbered.event is not None and numbered.event.turn == turn:
                yield numbered.event

    def begin_at_now(self, name: str, listening: Listening) -> None:
        """Restart a listener that has read the journal at the live pieces of the running step."""
        listening.skip()
        if name in self._pieces:
            for piece in self._pieces[name].joined():
                listening.hear(piece)

    async def close_idle(self, name: str) -> None:
        """Close an agent that is open here, unless a turn of it is running."""
        if not self.is_running(name):
            await self._let_go(name)

    async def make_free(self, name: str) -> None:
        """Close an agent that is open here, with all its conversations.

        Raises:
            UsageError: a turn of it is running.
        """
        if self.is_at_work(name):
            raise UsageError(f"`{name}` is at work.", fix="Interrupt it first.")
        for line in [line for line in self._agents if agent_of(line) == name]:
            await self._let_go(line)

    def end_streams(self) -> None:
        """End the streams of all listeners, and the call that waits at a stop."""
        self.debugger.close()
        for listening in [one for every in self._listening.values() for one in every]:
            listening.end()

    async def _turn(self, name: str) -> None:
        agent = await self.agent(name)
        async with self._opening:
            await self._make_room(name)
        try:
            async for event in agent.turn(None, approver=self.workspace.answered_by_id):
                self._publish(name, event)
        except AgentBusy:  # the process that runs it, or this one afterwards, answers what waits
            raise
        except KnapperError as error:
            self._warn(name, error)
            raise
        except Exception as error:  # noqa: BLE001  (the top of a task: reported, and the agent runs again later)
            self._publish(
                name, events.Warned(turn="", message="The turn failed; the log has the reason.")
            )
            self._report(error)

    def _warn(self, name: str, error: KnapperError) -> None:
        self._publish(name, events.Warned(turn="", message=error.message, fix=error.fix))

    def _warn_all(self, agent: str, error: KnapperError) -> None:
        """Warn all listeners that no turn can begin. With `agent`, do nothing: its listeners were warned already."""
        if not agent:
            _log.error("Cannot start a turn; trying again: %s", error)
        for name in () if agent else tuple(self._listening):
            self._warn(name, error)

    async def _end(self, name: str) -> None:
        if name in self._agents:
            await self._agents[name].interrupt(resumes=True)

    def _publish(self, name: str, event: Event) -> None:
        for hear in self.hearers:
            hear(event)
        self._keep_piece(name, event)

    def _keep_piece(self, name: str, event: Event) -> None:
        """Tell the listeners of an event, and keep it for those that come later if it is a piece of a step."""
        match event:
            case events.Text() | events.Writing():
                self._pieces.setdefault(name, StepPieces()).add(event)
            case (
                events.TurnStarted()
                | events.CallStarted()
                | events.CallAnswered()
                | events.TurnEnded()
            ):
                self._pieces.pop(name, None)
        self._tell(name, event)

    def _tell(self, name: str, event: Event) -> None:
        if name in self._tails and event.seq:
            self._tails[name].news += 1
        for listening in self._listening.get(name, ()):
            listening.hear(event)


# The journal of an agent as numbered events, so that a disconnected reader can resume exactly where it stopped.

_IN_TURN: Final = (
    1 << N_BITS
) - 1  # the part of a number that counts within its turn; the highest is its end
_TAIL: Final = 200  # events kept for all readers
_NEWEST: Final = 64  # replies with pieces that may still arrive


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event with its number in the journal. A number without an event marks an entry that readers do not get or have
    already received in pieces; the pieces have no number. Of the events of one entry the last has the number.
    """

    seq: int | None
    event: Event | None

    @property
    def place(self) -> int:
        """The number of its entry."""
        return self.seq or (self.event.seq if self.event else 0)


class JournalReader:
    """A reader of one agent's journal that starts after a number."""

    def __init__(
        self, store: TurnStore, agent: str, after: int, upto: int = LARGEST_NUMBER
    ) -> None:
        self._store = store
        self.agent = agent
        self._upto = upto
        # A new reader starts at the beginning of its turn, unless that has ended: entries refer back to it.
        self._at = after if after + 1 & _IN_TURN == 0 else max((after & ~_IN_TURN) - 1, 0)
        self.last = after
        self.is_done = False
        """Whether the last read has returned all that was there."""
        self._fold = EventFold(agent, "")
        self.replies: deque[tuple[str, int]] = deque(maxlen=_NEWEST)
        """The newest replies on disk, by turn and step. Pieces of them that still arrive are already known."""

    async def pages(self, hold: Hold) -> AsyncGenerator[NumberedEvent, None]:
        """Yield all events since the last read, a page at a time: the next one is read when this one was taken."""
        self.is_done = False
        while not self.is_done:
            release = await hold(PAGE_BYTES)
            try:
                for numbered in await self.read():
                    yield numbered
            finally:
                release()

    async def read(self) -> list[NumberedEvent]:
        """Return the next page of the events since the last read; `is_done` says whether it was the last.

        Another process may end a turn and begin the next one between the two queries; the next read returns that one.
        """
        ended = await self._store.ended_turns(
            self.agent, self.last, before=self._upto, most=_MOST_ENDS
        )
        page = await read_page(
            self._store,
            self.agent,
            since=self._at,
            before=self._upto,
            kinds=TOLD_KINDS,
            with_removed=True,
        )
        entries = page.entries
        closed = {row.id for row in ended}
        upto = next(
            (_end(row) for row in entries if row.turn not in closed and _end(row) > self.last),
            self._upto,
        )
        upto = min(upto, self._upto if page.is_last else entries[-1].seq)
        upto = min(upto, self._upto if len(ended) < _MOST_ENDS else ended[-1].seq)
        self.is_done = page.is_last and len(ended) < _MOST_ENDS
        rows: list[Entry | EndedTurn] = sorted([*entries, *ended], key=lambda row: row.seq)
        rows = [row for row in rows if row.seq <= upto]
        told = [(row.seq, [*self._of(row)]) for row in rows]
        fresh = [numbered for seq, each in told if seq > self.last for numbered in each]
        self._at = max([self._at, *(row.seq for row in rows)])
        self.last = max(self.last, self._at)
        return fresh

    def _of(self, row: Entry | EndedTurn) -> Iterator[NumberedEvent]:
        """Yield what is told of a row; the last of it has the number, so that a reader that stopped before gets all."""
        if isinstance(row, EndedTurn):
            if self._fold.turn != row.id:  # it has no entries any more
                self._fold = EventFold(self.agent, row.id, is_old=True, step=0)
            told = self._fold.end(row)
        else:
            if self._fold.turn != row.turn:
                self._fold = EventFold.at(self.agent, row)
            told = self._fold.of(row, row.seq)
            if row.kind == "assistant":
                self.replies.append((row.turn, self._fold.step))
        for event in told[:-1]:
            yield NumberedEvent(None, event)
        yield NumberedEvent(row.seq, told[-1] if told else None)


def _end(entry: Entry) -> int:
    """Return the number that ends the turn of an entry."""
    return ((entry.seq >> 20) + 1 << 20) - 1


class JournalTail:
    """The newest events of one agent's journal, read once for all readers.

    It begins at the position of the first reader; readers that are further behind read the journal themselves.
    """

    def __init__(self, store: TurnStore, agent: str, after: int) -> None:
        self._reader = JournalReader(store, agent, after)
        self._events: deque[NumberedEvent] = deque()
        self._size = 0
        self._begins = after
        self._reading = asyncio.Lock()
        self._read_at = -1
        self.news = 0
        """The number of writes to the journal that this process knows about."""

    async def after(self, last: int, *, must_look: bool) -> list[NumberedEvent] | None:
        """Return the events after a number, or None if the tail begins later. Read the journal if there is news or with
        `must_look`.
        """
        async with self._reading:
            if must_look or self._read_at != self.news:
                news, is_done = self.news, False
                while not is_done:
                    for numbered in await self._reader.read():
                        self._events.append(numbered)
                        self._size += _size(numbered.event)
                    is_done = self._reader.is_done
                    while len(self._events) > _TAIL or (self._size > PAGE_BYTES and self._events):
                        dropped = self._events.popleft()
                        self._begins = dropped.place
                        self._size -= _size(dropped.event)
                self._read_at = news  # only afterwards: a canceled read must not count
            if last < self._begins:
                return None
            return [numbered for numbered in self._events if numbered.place > last]


# Server-sent events of one agent: journal events with a number, live pieces without one.

KEEP_ALIVE_S: Final = 15.0
_PIECES: Final = (events.Text, events.Thought)
_BEHIND: Final = "You were too slow, so live events were left out. The saved events follow."


async def event_stream(
    host: AgentHost, store: Store, agent: str, after: int, hold: Hold = hold_freely
) -> AsyncGenerator[bytes, None]:
    """Yield the events of an agent's conversation after a number, then new ones as they come, until the server stops.


    A piece of text without a number is provisional: after a reconnect, everything since the last number is sent again.
    """
    branched_at = await store.branched_at(agent)  # what it begins with is its parent's
    after = max(after, branched_at and branched_at | _IN_TURN)
    reader = JournalReader(store, agent, after)
    with host.listen(agent, reads_journal=True) as listening:
        async for frame in _frames_until_now(host, store, reader, listening, hold):
            yield frame
        last = reader.last
        while not listening.is_over:
            heard = await listening.next(KEEP_ALIVE_S)
            if heard is None and not listening.is_over:
                yield b": keep-alive\n\n"
            is_behind, listening.is_behind = listening.is_behind, False
            if is_behind:
                yield _frame(events.Warned(turn="", message=_BEHIND))
            if heard is not None and not is_behind and not heard.seq:
                if not (isinstance(heard, _PIECES) and (heard.turn, heard.step) in reader.replies):
                    yield _frame(heard)
                continue
            # Without a number to look for, all that is new is read; one that was read already needs nothing.
            sought = 0 if heard is None or is_behind else heard.seq
            if 0 < sought <= last:
                continue
            async with aclosing(host.news(agent, last, hold, must_look=not sought)) as news:
                async for numbered in news:
                    last = numbered.seq or last
                    # Unless it was too slow, the reader got a text in pieces.
                    is_known = bool(sought) and isinstance(numbered.event, _PIECES)
                    yield _frame(None if is_known else numbered.event, numbered.seq)
                    if 0 < sought <= last:
                        break  # live pieces of the events after this one are still in the queue


async def _frames_until_now(
    host: AgentHost, store: Store, reader: JournalReader, listening: Listening, hold: Hold
) -> AsyncGenerator[bytes, None]:
    """Yield what is on disk, then what still waits: messages, and questions that were not among the events."""
    asked = set[str]()
    for is_again in (False, True):  # what was written while the frames were sent
        async for numbered in reader.pages(hold):
            if isinstance(numbered.event, events.GrantAsked):
                asked.add(numbered.event.question)
            yield _frame(numbered.event, numbered.seq)
        if not is_again:
            host.begin_at_now(reader.agent, listening)
    for added in await waiting_events(store, reader.agent):
        yield _frame(added)
    async for question in _open_questions(host, store, reader.agent):
        if question.question not in asked:
            yield _frame(question)


async def _open_questions(
    host: AgentHost, store: Store, line: str
) -> AsyncGenerator[events.GrantAsked, None]:
    """Yield the questions that wait for an answer in a conversation."""
    for asked in await host.workspace.questions():
        source = await store.source_of(asked.turn) if asked.agent == agent_of(line) else None
        if source is not None and source.line == line:
            yield asking(asked.question, asked.turn)


async def waiting_events(store: TurnStore, line: str) -> list[events.MessageAdded]:
    """Return the messages that wait for a turn, as listeners are told of them: the first ones, each in short."""
    rows = await store.waiting_messages(line, most=LIST_LIMIT, most_chars=TEXT_CHARS)
    told = list[events.MessageAdded]()
    for row in rows:
        origin = sender_of(row.origin)
        event = events.MessageAdded(turn="", message=row.text, message_id=row.id, origin=origin)
        told.append(event)
    return told


def _frame(event: Event | None, seq: int | None = None) -> bytes:
    """Return one frame. Without an event it only advances the reader's event number."""
    number = "" if seq is None else f"id: {seq}\n"
    # Escaped JSON has no line break of any kind, so the output of a function cannot inject a field or a frame.
    data = (
        ""
        if event is None
        else f"data: {json.dumps(to_json(event), ensure_ascii=True, default=str)}\n"
    )
    return f"{number}{data}\n".encode("utf-8", "replace") if number or data else b""


# Dependencies of a server's operations: an open workspace, its state and its running agents.


@dataclass(frozen=True, slots=True)
class Rooms:
    """The parts of a server that its operations work with."""

    workspace: Workspace
    state: WorkspaceState
    host: AgentHost
    crash: Callable[[BaseException], str]
    """Stores a traceback and returns a sentence that names the place."""

    async def shows(self, agent: str, identity: Identity) -> bool:
        """Return whether an agent is visible to a token. A visible agent's conversations are visible, too.

        A history is visible only to the token that sent it, and to the owner of the workspace.
        """
        if is_history(agent) and not identity.is_owner:
            kept = await self.state.store.agent_settings(agent) or {}
            if kept.get(HISTORY_OWNER) != identity.id:
                return False
        return await self.concerns(agent, identity)

    async def shows_picture(self, digest: str, identity: Identity) -> bool:
        """Return whether a token may see a conversation with a picture."""
        if identity.is_owner:
            return True
        store = self.state.store
        lines = dict[str, set[Line]]()
        for line in await store.lines_showing(digest):
            lines.setdefault(agent_of(line), set()).add(line)
        for agent, named in lines.items():
            if await self.shows(agent, identity):
                visible = {agent, *await store.lines(agent, token=identity.reader)}
                if any(identity.may_reach(line) for line in named & visible):
                    return True
        return False

    async def concerns(self, agent: str, identity: Identity) -> bool:
        """Return whether a token is for an agent, or for the agent of a history: then it may answer its questions.

        It is for a group only if it is for all of its members, because a message to the group reaches them.
        """
        if identity.sees(agent):
            group = self.workspace.groups.read().get(agent) if identity.agents else None
            return group is None or all(map(identity.sees, group.members))
        if not any(agent.startswith(f"{name}{CONVERSATION}") for name in identity.agents):
            return False
        owner = str((await self.state.store.agent_settings(agent) or {}).get("chat_of") or "")
        return agent.startswith(f"{owner}{CONVERSATION}") and await self.concerns(owner, identity)

    def conversations(self, agent: AgentName, identity: Identity) -> Conversations:
        """Return the conversations of an agent, as a token finds them: not those that another one began."""
        found = self.workspace.conversations(agent, identity.reader)
        return replace(found, asker=identity.id)

    async def shown(self, agents: Iterable[str], identity: Identity) -> list[str]:
        """Return those of the agents that are visible to a token."""
        return [name for name in agents if await self.shows(name, identity)]

    async def known(self, agent: str, identity: Identity) -> AgentName:
        """Return the name of an agent if it exists and is visible to a token; the line of a conversation is no name.

        Raises:
            NotThere: it does not exist, or this token may not see it.
            ConfigError: it does not exist, and its file is not valid.
        """
        if is_agent_name(agent) and await self.shows(agent, identity):
            name = agent_named(agent)
            if self.host.is_open(name) or await self.workspace.can_be_talked_to(name):
                return name
        raise NotThere(
            f"There is no agent `{one_line(agent, 80)}`.", fix="The list of agents has the names."
        )

    async def owners(self, identity: Identity) -> CallOwners:
        """Return the agents that a token may read the calls of, or None if it may read all."""
        if not identity.agents:
            return None
        return frozenset(await self.shown(await self.state.store.agent_names(), identity))


@asynccontextmanager
async def opened_rooms(workspace: Workspace, grace_s: float) -> AsyncIterator[Rooms]:
    """Run the agents of an open workspace while the block runs; at the end, running turns get `grace_s` to finish."""
    crash = partial(keep_traceback, root=workspace.root)
    async with state_of(workspace.store, workspace.root, workspace.settings) as state:
        host = AgentHost(workspace, crash)
        async with host.at_work(grace_s):
            yield Rooms(workspace, state, host, crash)

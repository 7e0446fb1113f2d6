"""The runner: runs the turns that the store lists as due.

Each agent runs one turn at a time; a bounded number of agents run at once. Wake-ups are only hints and may be lost:
the tables of the store decide. The runner sleeps until the next due time, and looks once a second: a process that is
killed wakes nobody.
"""

import asyncio
import logging
import os
import random
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from watchdog.events import FileClosedEvent, FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from agent_core.access.grants import Approver
from agent_core.base import machine
from agent_core.base.clock import Clock
from agent_core.base.errors import AgentBusy, KnapperError, LostLease, StorageError
from agent_core.base.events import Event
from agent_core.base.records import dataclass, replace
from agent_core.runtime.agent import Agent
from agent_core.storage import BEAT, BETWEEN, LOST, WORK, Due, Store, agent_of
from agent_core.storage.folder import BELL, ring

from .presence import present

Handle = Callable[[str], Awaitable[None]]
"""A function that gets the line of a conversation and, for example, runs one turn for its inbox."""

_log = logging.getLogger(__name__)
_AGAIN_S: Final = 1.0  # pause after a failure of the store, doubled each time
_LATEST_S: Final = 30.0
_REST_S: Final = 15.0  # pause for an agent that failed
_HEAL_S: Final = 1.0  # pause for an agent that another process holds
_END_S: Final = 0.5
_BUSY_S: Final = (
    5.0  # how long `until_idle` waits for it: a process that was killed may hold it a moment longer
)
_LONGEST_SLEEP_S: Final = 3600.0  # the clock may be changed meanwhile
_MOST_OPEN: Final = 16
_IN_A_ROW_S: Final = (
    2.0  # of turns of one agent before others run: opening it again costs as much as a turn
)


async def _nothing() -> str:
    return ""


class Runner:
    """Runs agents in this process. Other processes may post to them; a missed post is found at the next wake-up."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        store: Store,
        handle: Handle,
        interrupt: Handle,
        *,
        slots: int,
        clock: Clock,
        kinds: Collection[str] = (*BETWEEN, BEAT),
        is_free: Callable[[str], bool] = lambda _: True,
        watched: Callable[[], Awaitable[str]] = _nothing,
        let_go: Handle | None = None,
        on_fault: Callable[[str, KnapperError], None] = lambda *_: None,
        ends_with_store: bool = False,
    ) -> None:
        """Create the runner.

        `handle` runs turns of a conversation, `interrupt` ends them. Events of these `kinds` begin turns. If one is
        not `is_free`, its turns run elsewhere, and `poke` must be called when they end. With a shared store, `let_go`
        releases each after its turns, so that other processes can open it. `watched` returns a conversation to handle
        because turns of it ran elsewhere. `on_fault` gets a line and the reason why its turns fail, or "" and the
        reason why no turn can begin. With `ends_with_store`, the runner ends when the store fails, and the supervisor
        of the process restarts it; otherwise the runner retries.
        """
        self._store = store
        self._handle = handle
        self._interrupt = interrupt
        self._slots = slots
        self._more = (
            slots if store.is_shared else 0
        )  # for turns of dead processes: they had a slot already
        self._clock = clock
        self._kinds = kinds
        self._is_free = is_free
        self._watched = watched
        self._let_go = let_go if store.is_shared else None
        self._on_fault = on_fault
        self._ends_with_store = ends_with_store
        self.is_paused = False
        """Whether a person paused everything that runs by itself."""
        self.on_pause: Callable[[], None] = lambda: None
        self._told = ""
        self._woken = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, float] = {}
        self._busy_since: dict[str, float] = {}
        self._ending = asyncio.Event()
        self._next_due: float | None = None

    def poke(self, line: str = "") -> None:
        """Wake the runner because a conversation, or any of them, may have work. Unneeded calls are harmless."""
        for name in (line, *self._busy_since):  # what another process ran may have begun or ended
            self._resting.pop(name, None)
        self._woken.set()

    @property
    def running(self) -> tuple[str, ...]:
        """The conversations that are running turns."""
        return tuple(self._running)

    async def run(self, *, until_idle: bool = False) -> None:
        """Run turns until `stop`, or until nothing is due and none runs, but for agents that others keep busy.

        Raises:
            StorageError: the store fails and the runner `ends_with_store` or runs `until_idle`.
        """
        pause = _AGAIN_S
        try:
            while not self._ending.is_set():
                self._woken.clear()
                try:
                    if await self._round() and until_idle:
                        return
                    await self._sleep()
                    self._told, pause = "", _AGAIN_S
                except StorageError as error:  # a full disk or an unreachable database may recover
                    if until_idle or self._ends_with_store:
                        raise
                    # Report the same error only once.
                    if str(error) != self._told:
                        self._told = str(error)
                        self._on_fault("", error)
                    await self.rest(pause)
                    pause = min(2 * pause, _LATEST_S)
        finally:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _round(self) -> bool:
        """Start due turns and expire overdue waits; return whether there was nothing to do."""
        now, is_kept_busy = self._clock.monotonic(), False
        was_paused, self.is_paused = self.is_paused, await self._store.is_paused()
        if self.is_paused != was_paused:
            self.on_pause()
        all_due = await self._store.work(self._kinds)
        if watched := await self._watched():
            all_due.append(Due(watched, is_takeover=False))
        self._busy_since = {
            due.line: self._busy_since[due.line] for due in all_due if due.line in self._busy_since
        }
        for due in all_due:
            if len(self._running) >= self._slots + (self._more if due.is_takeover else 0):
                break
            name = due.line
            if self._resting.get(name, 0) > now:
                is_kept_busy |= now - self._busy_since.get(name, -_BUSY_S) < _BUSY_S
            elif name not in self._running and self._is_free(name):
                self._running[name] = asyncio.create_task(self._one(name))
        is_idle = not self._running and not is_kept_busy
        self._next_due = await self._store.next_due()
        is_late = (
            self._next_due is not None and self._next_due <= await self._store.now()
        )  # overdue asks
        if has_reaped := is_late and await self.reap():
            self._woken.set()
        return is_idle and not has_reaped

    async def ended(self, line: str) -> None:
        """Wait a moment for the end of a conversation's turns, which are over in the store."""
        if (work := self._running.get(line)) is not None:
            await asyncio.wait({work}, timeout=_END_S)

    async def rest(self, seconds: float) -> None:
        """Wait for this time, or until `stop`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def reap(self) -> bool:
        """End expired waits, which nothing else would end. Return whether there were any."""
        return bool(await self._store.expire())

    async def stop(self, grace_s: float = 2.0) -> None:
        """Start no more turns; interrupt those that still run after the grace period."""
        self._ending.set()
        self._woken.set()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=grace_s)
        for line in self.running:
            await self._interrupt(line)

    async def _one(self, line: str) -> None:
        try:
            try:
                await self._turns(line)
                self._busy_since.pop(line, None)
            except* LostLease:  # may come from a task group
                leave()
        except KnapperError as error:
            now = self._clock.monotonic()
            self._resting[line] = now + (_HEAL_S if isinstance(error, AgentBusy) else _REST_S)
            if isinstance(error, AgentBusy):
                self._busy_since.setdefault(line, now)  # another process runs its turn
            else:
                self._on_fault(line, error)
        except Exception:  # noqa: BLE001 - the runner's edge: one agent's failure does not stop the others
            self._resting[line] = self._clock.monotonic() + _REST_S
            _log.exception("the turn of %s failed", line)
            self._on_fault(line, KnapperError("Its turn failed inside the program itself."))
        finally:
            if self._let_go is not None:
                with suppress(KnapperError):  # it is closed when the runner ends
                    await self._let_go(line)
            del self._running[line]
            self._woken.set()

    async def _turns(self, line: str) -> None:
        """Run turns of a conversation, one after another, until none is due or others should run."""
        end = self._clock.monotonic() + _IN_A_ROW_S
        while True:
            await self._handle(line)
            if self._ending.is_set() or not self._is_free(line) or self._clock.monotonic() > end:
                break
            if not await self._store.work(self._kinds, line=line):
                break

    async def _sleep(self) -> None:
        """Wait for a wake-up or until the next due time."""
        times = [] if self._next_due is None else [self._next_due - await self._store.now()]
        times += [until - self._clock.monotonic() for until in self._resting.values()]
        # No one reports that a process died, perhaps before it rang for what it had sent or begun.
        times.append(_HEAL_S * random.uniform(0.5, 1.5))  # noqa: S311  (a pause)
        wait = min([max(time, 0.01) for time in times if time > -_REST_S] or [_LONGEST_SLEEP_S])
        self._resting = {
            name: until for name, until in self._resting.items() if until > self._clock.monotonic()
        }
        with suppress(TimeoutError):
            async with asyncio.timeout(min(wait, _LONGEST_SLEEP_S)):
                await self._woken.wait()


def leave() -> None:
    """Exit at once: another process has taken over an agent, and the store refuses what this one still writes.

    The supervisor of the process restarts it.
    """
    print(  # noqa: T201
        "Another process has taken over an agent of this one, which ends.",
        file=sys.stderr,
        flush=True,
    )
    os._exit(machine.TRY_AGAIN)


@asynccontextmanager
async def bell(
    store: Store, state: Path, poke: Callable[[], None], lost: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Call `poke` while the block runs whenever another process rings, by a file event or through the database.

    If the database reports that an agent of this process was taken over, `lost` is called; by default, the process
    exits.
    """

    def hear(topic: str) -> None:
        if topic == LOST:
            (lost or leave)()
        if topic in ("", WORK):
            poke()

    with present(state):
        async with store.heard(hear, to_run=True), _file_bell(state, poke):
            yield


@asynccontextmanager
async def _file_bell(state: Path, poke: Callable[[], None]) -> AsyncIterator[None]:
    ring(state)
    loop, observer = asyncio.get_running_loop(), Observer()

    class Heard(FileSystemEventHandler):
        def on_closed(self, event: FileSystemEvent) -> None:
            if str(event.src_path).endswith(BELL):
                loop.call_soon_threadsafe(poke)

    observer.schedule(Heard(), str(state / "agents"), event_filter=[FileClosedEvent])
    try:
        observer.start()
    except OSError:  # too many windows for the kernel's limits; the runner looks by itself, too
        yield
        return
    try:
        yield
    finally:
        observer.stop()
        await asyncio.to_thread(observer.join)


@dataclass(frozen=True, slots=True)
class Front:
    """The conversation that the user has open. `line` returns its line now; its turns run here when it is free."""

    line: Callable[[], str]
    run: Handle
    interrupt: Handle
    is_free: Callable[[], bool]
    lost: Callable[[], None]
    watched: Callable[[], Awaitable[str]]
    """Returns the line if turns of other windows are to be told of, else ""."""


class AgentsBehind:
    """A pool of background agents, by line: opened when they have work; the most recently used stay open."""

    def __init__(
        self,
        open_agent: Callable[[str], Awaitable[Agent]],
        hear: Callable[[Event], None],
        approver: Approver | None = None,
        most: int = _MOST_OPEN,
    ) -> None:
        """Create the pool; `hear` gets each event with its agent's name, `approver` answers questions about grants."""
        self._open_agent = open_agent
        self._hear = hear
        self._approver = approver
        self._most = most
        self._idle: OrderedDict[str, Agent] = OrderedDict()
        self._lent: set[str] = set()  # idle agents that other processes may open
        self._working: dict[str, Agent] = {}

    async def turn(self, line: str) -> None:
        """Run one turn of an agent.

        Raises:
            AgentBusy: another process holds it.
        """
        agent = self._working[line] = await self._taken_back(line) or await self._open_agent(line)
        is_as_stored = True
        try:
            async for event in agent.turn(None, approver=self._approver):
                self._hear(replace(event, agent=agent_of(line)))
        except Exception:
            is_as_stored = False
            raise
        finally:
            del self._working[line]
            self._idle[line] = agent
            if not is_as_stored:
                await self.close(line)
        while len(self._idle) > self._most:
            await self.close(next(iter(self._idle)))

    async def _taken_back(self, line: str) -> Agent | None:
        """Return an idle agent, or None. One that was lent and used elsewhere is closed, because it is outdated."""
        agent = self._idle.pop(line, None)
        if agent is None or line not in self._lent:
            return agent
        self._lent.discard(line)
        is_current = False
        try:
            is_current = await agent.take_back()
        finally:
            if not is_current:
                await agent.aclose()
        return agent if is_current else None

    async def lend(self, line: str) -> None:
        """Let other processes open an idle agent, and keep its loaded state for its next turn here."""
        if (agent := self._idle.get(line)) is None:
            return
        is_lent = False
        try:
            is_lent = await agent.lend()
        finally:
            if is_lent:
                self._lent.add(line)
            else:
                await self.close(line)

    async def close(self, line: str) -> None:
        """Close an idle agent, so that it can be opened elsewhere.

        Raises:
            AgentBusy: its turn is running.
        """
        if line in self._working:
            raise AgentBusy(
                f"Agent `{line}` works behind.", fix="Wait until its turn has ended, or stop it."
            )
        self._lent.discard(line)
        if (agent := self._idle.pop(line, None)) is not None:
            await agent.aclose()

    @asynccontextmanager
    async def at_work(
        self,
        new_runner: Callable[..., Runner],
        store: Store,
        state: Path,
        front: Front | None = None,
    ) -> AsyncIterator[Runner]:
        """Yield a runner for these agents and the front agent while the block runs; then close the pool's agents."""

        def is_front(line: str) -> bool:
            return front is not None and line == front.line()

        async def handle(line: str) -> None:
            await (front.run(line) if front and is_front(line) else self.turn(line))

        async def interrupt(line: str) -> None:
            await (front.interrupt(line) if front and is_front(line) else self.interrupt(line))

        async def let_go(line: str) -> None:
            if not is_front(line):
                await self.lend(line)

        def is_free(line: str) -> bool:
            return not (front and is_front(line)) or front.is_free()

        watched = front.watched if front else _nothing
        runner = new_runner(handle, interrupt, is_free=is_free, watched=watched, let_go=let_go)
        async with bell(store, state, runner.poke, front.lost if front else None):
            try:
                yield runner
            finally:
                await runner.stop()
                await self.aclose()

    async def interrupt(self, line: str) -> None:
        """End the running turn of an agent; the turn resumes at the next start."""
        if (agent := self._working.get(line)) is not None:
            await agent.interrupt(resumes=True)

    async def aclose(self) -> None:
        """Close all idle agents."""
        for agent in self._idle.values():
            await agent.aclose()
        self._idle.clear()

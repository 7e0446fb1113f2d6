"""The store as its users see it: all subjects combined, for any database; a new subject is added here.

Each method is one transaction, and its result is on disk. Ids are UUIDv7; order is a number that the store assigns.
Code that needs one subject takes only its class.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from agent_core.base.errors import AgentBusy
from agent_core.base.events import CallAnswered, CallStarted
from agent_core.base.records import dataclass, field

from .added_store import AddedStore
from .agent_store import AgentStore
from .approval_store import ApprovalStore
from .call_store import CallStore
from .conversation_store import ConversationStore
from .forget_store import ForgetStore
from .function_store import FunctionStore
from .journal import JournalEntry, ReplyEntry, read_entry
from .memory_store import MemoryStore
from .names import AgentName, agent_of, is_agent_name, is_line, is_main
from .spending_store import SpendingStore
from .subject import Entry, Misfit, parse_row
from .tables import SqlSession, Tables, query
from .thread_store import ThreadStore
from .token_store import TokenStore
from .turn_store import IMPORTED, N_BITS, JournalReport, TurnStore

# The processes at a store: which one runs which agent, and how they notify each other of work.

Hear: TypeAlias = Callable[[str], None]
"""A listener for topics that may have news: WORK, FUNCTIONS, or "" for any; or LOST."""

WORK, FUNCTIONS = "work", "functions"
_GATE_S: Final = 5.0
_PAUSE_S: Final = 0.01
LOST = "lost"
"""Another process took over an agent that this one held, because this process seemed dead."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A process that uses a shared store, and the agents that it runs.

    `silent_s` is the time since its last heartbeat in seconds.

    `version` is that of its program, and `skew_s` is how far the store's clock was ahead of its own when it connected;
    less than half a second counts as 0.
    """

    id: str
    name: str
    slots: int
    silent_s: float
    is_alive: bool
    agents: tuple[AgentName, ...]
    version: str = ""
    skew_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a shared store: its engine, the number of its last migration, and how long an answer took."""

    engine: str
    schema: int
    answer_ms: float


class WorkerStore:
    """The processes at one store; a method that is not overridden is that of a store in a file, on one machine."""

    @property
    def is_shared(self) -> bool:
        """True if processes in several folders, on several machines, may use it."""
        return False

    @property
    @abstractmethod
    def owner(self) -> str:
        """The name of this process, which is stored in the turns that it claims."""

    @property
    def leases_taken(self) -> int:
        """The number of agents that this process took from processes without recent heartbeats."""
        return 0  # a lock ends with its process

    @abstractmethod
    def hold_line(
        self, folder: Path, line: str, *, may_wait: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Hold the right to run a conversation during the block, as `hold` does, whatever holds the whole agent."""

    @asynccontextmanager
    async def hold(self, folder: Path, line: str, *, may_wait: bool = False) -> AsyncIterator[None]:
        """Hold the right to run a conversation during the block; `folder` is the state folder of the workspace.

        If another process has it and it `may_wait`, it counts as lent to that process, until `take_back`.

        Raises:
            AgentBusy: another process has it, or all of its agent; the message names the process.
            UsageError: the name is not valid for an agent.
            WorkspaceError: the lock cannot be created.
        """
        async with AsyncExitStack() as stack:
            async with nullcontext() if is_main(line) else self.gate(folder, agent_of(line)):
                held = self.hold_line(folder, line, may_wait=may_wait)
                await stack.enter_async_context(held)
            yield

    @asynccontextmanager
    async def gate(self, folder: Path, agent: str, name: str = "") -> AsyncIterator[None]:
        """Be the only one, in any process, behind a gate of an agent while the block runs.

        The one without a name is passed by whoever opens a conversation other than the main one.

        Raises:
            AgentBusy: another one stays behind it for too long.
        """
        async with AsyncExitStack() as stack:
            end = monotonic() + _GATE_S
            while True:
                try:
                    await stack.enter_async_context(self.hold_line(folder, f"{agent}/{name}"))
                    break
                except AgentBusy:
                    if monotonic() > end:
                        raise
                await asyncio.sleep(_PAUSE_S)
            yield

    @abstractmethod
    async def lend(self, line: str) -> None:
        """Let other processes take a conversation that this one holds, until `take_back`."""

    @abstractmethod
    async def take_back(self, line: str) -> bool:
        """Hold a lent conversation again; return False if another process may have changed it meanwhile.

        Raises:
            AgentBusy: another process has it now; the message names the process.
        """

    @abstractmethod
    def has(self, line: str) -> bool:
        """Return whether this process holds a conversation now, and has not lent it."""

    def heard(self, hear: Hear, *, to_run: bool = False) -> AbstractAsyncContextManager[None]:
        """Call `hear` in this loop when other processes wrote something, during the block. Calls may be lost.

        With `to_run`, `hear` is not called for work for which another process was woken.
        """
        return nullcontext()  # a file cannot notify

    async def offer_slots(self, slots: int) -> None:
        """Record how many agents' turns this process runs at once."""

    async def workers(self) -> list[WorkerRow]:
        """Return the processes at a shared store, the one with the latest heartbeat first."""
        return []

    async def health(self) -> Health | None:
        """Return the state of a shared store; None if the store is a file."""
        return None

    async def functions_number(self) -> int:
        """Return a number that increases with each change of a function; 0 if the functions folder is authoritative."""
        return 0


# A check of the whole journal: each turn has one writer at a time, and each call one start and one answer.

_MOST_FAULTS: Final = 20
_AT_ONCE: Final = 200  # turns
_CLIENT: Final = (
    "client"  # an entry before the answers to calls that the previous turn handed to a client
)
_UNENDED: Final = (
    "open",
    "client_calls",
)  # in the first, calls are running; in the second, a client runs them
_TURNS: Final = (
    "select seq, id, line, state, attempt, n from turn where seq > ? order by seq limit ?"
)
_ENTRIES: Final = (
    "select seq, kind, payload, attempt from entry where seq between ? and ? order by seq"
)
_STRANGE: Final = (
    "select t.id from event e join turn t on t.seq = e.turn where e.line <> t.line limit 1"
)


class JournalCheck(Tables):
    """The check of the journal."""

    @query
    def check_journal(self, session: SqlSession) -> JournalReport:
        """Read the whole journal, and return its faults: a call twice or without an answer, two writers of a turn.

        At most 20 faults are reported. Everything is read from one consistent snapshot.
        """
        turns = entries = missing = 0
        faults: list[str] = []
        with session.snapshot():
            for row, rows in _read(session):
                look = _TurnCheck(*row[3:6])
                look.over(rows)
                turns, entries, missing = (
                    turns + 1,
                    entries + len(rows),
                    missing + max(row[5] - len(rows), 0),
                )
                faults += [f"turn {row[1]} of {row[2]}: {fault}" for fault in look.faults]
                if len(faults) >= _MOST_FAULTS:
                    break
            faults += [
                f"turn {id} has an event of another conversation" for (id,) in session.all(_STRANGE)
            ]
        return JournalReport(turns, entries, missing, tuple(faults[:_MOST_FAULTS]))


@dataclass(slots=True)
class _TurnCheck:
    """A check of one turn. `asked`, `begun` and `answered` are calls since its last reply.

    `knows_all` is true if every entry is present and written by this program, except for a client's calls, which an
    earlier turn handed over.
    """

    state: str
    attempt: int
    n: int
    faults: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    knows_all: bool = True

    def over(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Check the entries of the turn."""
        last = 0
        is_whole = len(rows) >= self.n and all(row[3] != IMPORTED for row in rows)
        self.knows_all = is_whole
        for seq, kind, payload, attempt in rows:
            if seq & ((1 << N_BITS) - 1) >= self.n:
                self.faults.append(f"it has {self.n} entries, and one more")
            if attempt < last or attempt > self.attempt:
                self.faults.append(
                    f"attempt {attempt} wrote after attempt {max(last, self.attempt)} had begun"
                )
            last = attempt
            try:
                read = read_entry(Entry(kind, parse_row(payload, dict)))
                if attempt != IMPORTED:  # imported entries are not checked further
                    self._entry(read)
                    self.knows_all = (
                        is_whole and kind != _CLIENT and (self.knows_all or kind == "assistant")
                    )
            except Misfit as misfit:
                self.faults.append(str(misfit))
        if self.state not in _UNENDED:
            self._note_unanswered()

    def _entry(self, journal_entry: JournalEntry) -> None:
        match journal_entry:
            case ReplyEntry(calls=calls):
                self._note_unanswered()
                self.asked = {call.id for call in calls}
                self.begun, self.answered = set(), set()
            case CallStarted(call_id=id):
                if id in self.begun:
                    self.faults.append(f"the call {id} was started twice")
                elif id in self.answered:
                    self.faults.append(f"the call {id} was started after its answer")
                self.begun.add(id)
            case CallAnswered(call_id=id):
                if id in self.answered:
                    self.faults.append(f"the call {id} was answered twice")
                elif self.knows_all and id not in self.asked | self.begun:
                    self.faults.append(f"the call {id} was answered, and nobody asked for it")
                self.answered.add(id)
            case _:
                pass

    def _note_unanswered(self) -> None:
        self.faults += [
            f"the call {id} has no answer"
            for id in sorted((self.asked | self.begun) - self.answered)
        ]


def _read(session: SqlSession) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    """Yield each turn with its entries."""
    last = -1
    while turns := session.all(_TURNS, last, _AT_ONCE):
        last = turns[-1][0]
        entries: dict[int, list[tuple[Any, ...]]] = {}
        for row in session.all(_ENTRIES, turns[0][0] << N_BITS, (last + 1 << N_BITS) - 1):
            entries.setdefault(row[0] >> N_BITS, []).append(row)
        for turn in turns:
            yield turn, entries.get(turn[0], [])


class Store(
    TurnStore,
    ConversationStore,
    JournalCheck,
    ThreadStore,
    FunctionStore,
    CallStore,
    ApprovalStore,
    MemoryStore,
    AgentStore,
    ForgetStore,
    TokenStore,
    SpendingStore,
    WorkerStore,
    AddedStore,
):
    """All state that outlives the process. A subclass adds a database, which is closed at the end of the block."""

    @property
    @abstractmethod
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be set aside."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The address of the store, without a password."""

    @asynccontextmanager
    async def hold_agent(self, folder: Path, agent: str) -> AsyncIterator[None]:
        """Hold the right to run all conversations of an agent during the block: none is open, and none can be opened.

        Raises:
            AgentBusy: a process has one of them; the message names both.
        """
        if not is_agent_name(agent):  # so nobody can hold it, and what is left of it can be erased
            yield
            return
        async with self.hold_line(folder, agent), self.gate(folder, agent):
            for line in filter(is_line, await self.lines(agent)):
                async with self.hold_line(folder, line):
                    pass
            yield

    async def claim(self, workspace: str) -> None:
        """Give the store to another workspace, whose functions folder is authoritative from now on."""

    async def join(self, workspace: str) -> None:
        """Let another workspace use the store too: its folder becomes a copy of the functions in the store."""

    @abstractmethod
    async def vacuum(self) -> None:
        """Free the space of deleted data. Other users wait meanwhile."""

    @abstractmethod
    async def check(self) -> str | None:
        """Read the whole store and return a description of a problem, or None."""

    @abstractmethod
    async def close(self) -> None:
        """Finish running work and close the store. A second call does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

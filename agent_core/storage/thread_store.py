"""Threads in the store: messages between agents, their waits for each other, spending, and paused agents.

A message is an event in its recipient's inbox, and a permanent row. An ask parks the turn that sent it: the turn ends,
and the last answer to its asks is an event for its agent, which begins the turn that continues.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from agent_core.base.errors import UsageError
from agent_core.base.limits import NAMES, Allowance, SpendingLimits

from .call_store import CallOwners
from .subject import Subject, Write
from .turn_store import Due

Amounts: TypeAlias = dict[str, int | float]

LIMITS_FROM: Final = "[runner] of knapper.toml"
BEAT: Final = "heartbeat"
"""The kind of event that wakes an agent without a message."""
AGAIN: Final = "again"
BETWEEN: Final = ("note", "ask", "answer", "handoff", "stop", AGAIN)
"""The kinds of events that one agent causes for another; `again` repeats one whose turn was cut off."""
BEGINNING: Final = ("ask", "answer", "again")
"""The kinds that always begin a turn of their own."""

FROM_USER: Final = ("message", "login", "notice", BEAT)
"""The kinds of events that come from the user, or from the program for the user."""


class CircleError(UsageError):
    """An ask would make agents wait for each other in a circle."""

    code = "circle"


class ThreadStopped(UsageError):
    """A thread accepts no further messages: because of a limit, no progress, or a person's decision."""

    code = "thread-stopped"


class NoProgress(ThreadStopped):
    """An agent sends another one nearly the same text for the third time: a person must decide."""

    code = "no-progress"


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message between agents. `state` is sent; for an ask it is open, answered, failed, timed_out or stopped."""

    id: str
    thread: str
    kind: str
    sender: str
    recipient: str
    text: str
    turn: str
    hops: int
    owes: str
    state: str
    answer: str
    at: float
    due: float | None
    ended: float | None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread with its limits, and what each agent spent in it. `state` is open, stopped or stuck."""

    id: str
    agent: str
    limits: Amounts
    state: str
    why: str
    started: float
    spent: dict[str, Amounts] = field(default_factory=dict)

    def allowance(self, **more: int | float) -> Allowance:
        """Return the remainder of the thread's limits; `more` replaces some spent amounts."""
        limits: dict[str, Any] = {name: self.limits.get(name) for name in NAMES}  # Any: the fields that are numbers
        return Allowance(SpendingLimits(**limits, where=LIMITS_FROM), spent={**self.total(), **more})

    def total(self) -> Amounts:
        """Return the sum of all agents' spending; for hops, the maximum."""
        total: Amounts = {}
        for amounts in self.spent.values():
            for name, amount in amounts.items():
                before = total.get(name, 0)
                total[name] = max(before, amount) if name == "hops" else before + amount
        return total


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The open work of an agent: a turn that is open, or an event that is due. `kind` is that of the event."""

    agent: str
    is_running: bool
    kind: str
    thread: str
    since: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of due events that wait for a turn, and how long the oldest has been due."""

    waiting: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class SendMessage(Write):
    """A write that sends a note, an ask or a handoff; a repeated key is the same message. It may start its thread.

    The same transaction checks whether it may be sent: see `ThreadStore`.
    """

    id: str
    kind: str
    sender: str
    recipient: str
    text: str
    thread: str
    turn: str
    hops: int = 1
    owes: str = ""
    due: float | None = None
    key: str | None = None
    limits: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerAsk(Write):
    """A write that answers an ask, unless it already has an answer. `state`: answered, failed or timed_out."""

    ask: str
    text: str
    state: str = "answered"


@dataclass(frozen=True, slots=True)
class RouteAsk(Write):
    """A write that forwards an open ask to another agent; the first answer counts, no matter who gives it."""

    ask: str
    to: str


@dataclass(frozen=True, slots=True)
class SpendInThread(Write):
    """A write that adds to an agent's spending in a thread, if the thread exists."""

    thread: str
    agent: str
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class SetThread(Write):
    """A write that stops a thread (`stopped`, or `stuck` until a person decides), or opens it again.

    Stopping drops the thread's waiting events, asks its turns to end, and closes its open asks.
    """

    thread: str
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PauseAgent(Write):
    """A write that makes runners skip an agent; its inbox still accepts events."""

    agent: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ResumeAgent(Write):
    """A write that makes runners run an agent again."""

    agent: str


@dataclass(frozen=True, slots=True)
class SetBeat(Write):
    """A write that sets when an agent wakes by itself; it replaces an earlier time, unless it `stays`."""

    agent: str
    due: float
    payload: dict[str, Any]  # Any: JSON
    stays: bool = False


class ThreadStore(Subject, Protocol):
    """Threads. `SendMessage` fails, and nothing of its transaction is written, with one of these errors:

    CircleError: the recipient waits for the sender, directly or through others.
    ThreadStopped: the thread is stopped, a limit is reached, or nearly the same was sent for the third time.
    InboxFull: too many events wait for the recipient.
    """

    async def work(
        self, kinds: Collection[str] = (*BETWEEN, BEAT), limit: int = 100, *, agent: str | None = None
    ) -> list[Due]:
        """Return the agents with an open turn or a due event of these kinds, except paused ones.

        With an `agent`, only that one is considered.
        """

    async def next_due(self) -> float | None:
        """Return the time when the next timed event or the end of the next wait is due; None if there is none."""

    async def expire(self) -> list[MessageRow]:
        """Answer the asks whose time is over with the reason why there is no answer, and return them."""

    async def thread(self, id: str) -> ThreadRow | None:
        """Return one thread."""

    async def threads(self) -> list[ThreadRow]:
        """Return all threads, the oldest first."""

    async def letters(self, thread: str) -> list[MessageRow]:
        """Return the messages of a thread, in order."""

    async def asks(self) -> list[MessageRow]:
        """Return the asks that are open, the oldest first."""

    async def paused(self) -> dict[str, str]:
        """Return the agents that are paused, with the reasons."""

    async def spent_last(self) -> dict[str, dict[str, int]]:
        """Return the steps and tokens of each agent's last turn, if it asked a model."""

    async def backlog(self, owners: CallOwners = None) -> Backlog:
        """Return the backlog of all agents, or of the `owners`, except paused ones."""

    async def open_work(self) -> list[OpenWork]:
        """Return the open turns, and the due events of agents, the oldest first."""

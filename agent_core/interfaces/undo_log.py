"""The actions of a session that can be undone: on functions, memory and messages."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_core.base import events
from agent_core.base.clock import shown_time
from agent_core.base.events import Event, FunctionsChanged
from agent_core.base.receipt import TOUCHED, Receipt
from agent_core.base.untrusted import one_line
from agent_core.functions.service.history import Version
from agent_core.memory.blocks import undo_of
from agent_core.storage import BlockChange

from .attachments import headline

_UNDONE = "undo"


@dataclass(frozen=True, slots=True)
class Deed:
    """An action: when it happened, what it did, what undoing it does, and how."""

    at: float
    says: str
    undoes: str
    undo: Callable[[], Awaitable[None]]

    @property
    def when(self) -> str:
        """The time of day."""
        return shown_time(self.at, "%H:%M")


class Deeds:
    """The functions and helpers touched and the messages sent in a session."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.began = clock()
        self.touched: dict[str, None] = {}
        self.messages: list[tuple[float, str, str, str]] = []
        """When, to which agent, in which turn, what: a message, or the event that began a turn."""
        self.forgot = False
        """Whether something was forgotten since: that is not undone."""
        self.undone: dict[tuple[str, int], int] = {}
        """Versions that undoing brought, which are nothing that was done, and how many before them each cancels."""
        self._clock = clock
        self._turns: dict[str, set[str]] = {}

    def hear(self, event: Event) -> None:
        """Record what a turn began with, and what it made."""
        match event:
            case events.TurnStarted():
                said = headline(event.message) or event.event
                self._turns.setdefault(event.agent, set()).add(event.turn)
                self.messages.append((self._clock(), event.agent, event.turn, said))
            case events.TurnEnded():
                self.touch(Receipt.from_json(event.made).names(*TOUCHED))
            case FunctionsChanged():
                self.touch([*event.loaded, *event.changed, *event.removed])
            case _:
                pass

    def of(self, agent: str) -> list[tuple[float, str]]:
        """Return what was said to one agent, and when."""
        return [(at, text) for at, name, _, text in self.messages if name == agent]

    def turns_of(self, agent: str) -> set[str]:
        """Return the turns of one agent in this session."""
        return self._turns.get(agent, set())

    def unsay(self, agent: str) -> None:
        """Forget the last message to an agent, whose turn was removed."""
        last = max((at for at, (_, name, *_) in enumerate(self.messages) if name == agent), default=None)
        if last is not None:
            del self.messages[last]

    def unsay_all(self, agent: str) -> None:
        """Forget what was said to an agent, whose conversation began anew."""
        self.messages = [row for row in self.messages if row[1] != agent]

    def reread(self, begun: Mapping[str, str]) -> None:
        """Take from the record what was said, after something was forgotten: what each turn began with, by its id."""
        self.forgot = True
        self.messages = [
            (at, agent, turn, said if said in begun[turn] else begun[turn])
            for at, agent, turn, said in self.messages
            if turn in begun
        ]

    def touch(self, names: Iterable[str]) -> None:
        """Record that functions or helpers of these names may have been changed."""
        self.touched |= dict.fromkeys(names)


def states(versions: Sequence[Version], undone: Mapping[tuple[str, int], int], name: str) -> list[Version]:
    """Return the versions that still count. A version made by undo cancels those that it took back."""
    live_versions: list[Version] = []
    for version in versions:
        steps = undone.get((name, version.number), 0)
        live_versions = live_versions[:-steps] if steps else [*live_versions, version]
    return live_versions


def last_edit(changes: Sequence[BlockChange]) -> BlockChange | None:
    """Return the change that an undo of a block would revert, if there is one."""
    if undo_of(changes) is None:
        return None
    same = [change for change in changes if change.value == changes[-1].value and _UNDONE not in change.action.lower()]
    return same[-1] if same else changes[-1]


def latest(deeds: Iterable[Deed]) -> Deed | None:
    """Return the most recent action."""
    return max(deeds, key=lambda deed: deed.at, default=None)


def message_says(message: str) -> str:
    """Return what undoing a message does."""
    return f"remove the message “{one_line(message, 60)}” and its turn from the context"

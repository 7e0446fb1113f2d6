"""What was done in a session, so that the last of it can be taken back: functions, memory, messages."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from agent_core import events
from agent_core.events import Event, FunctionsChanged
from agent_core.memory.rows import undo_of
from agent_core.storage import BlockChange
from agent_core.untrusted import one_line
from agent_core.workshop.history import Version

_UNDONE = "undo"


@dataclass(frozen=True, slots=True)
class Deed:
    """The last thing that was done of one kind: when, what undoing it does, and how."""

    at: float
    says: str
    undo: Callable[[], Awaitable[None]]


class Deeds:
    """Which functions were touched in a session, and which messages sent."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.began = clock()
        self.functions: dict[str, None] = {}
        self.messages: list[tuple[float, str]] = []
        self.undone: set[tuple[str, int]] = set()
        """Versions that undoing brought: they are nothing that was done."""
        self._clock = clock

    def hear(self, event: Event) -> None:
        """Note what a turn began with, and what it made."""
        match event:
            case events.TurnStarted():
                self.messages.append((self._clock(), event.message))
            case events.TurnEnded():
                for what in ("created", "changed", "deleted"):
                    self.touch(event.made.get(what, ()))
            case FunctionsChanged():
                self.touch([*event.loaded, *event.changed, *event.removed])
            case _:
                pass

    def touch(self, names: Iterable[str]) -> None:
        """These functions may have changed by a hand."""
        self.functions |= dict.fromkeys(names)


def states(versions: Sequence[Version], undone: Iterable[tuple[str, int]], name: str) -> list[Version]:
    """The versions that still count: one that undoing brought takes the one before it away."""
    kept: list[Version] = []
    for version in versions:
        kept = kept[:-1] if (name, version.number) in undone else [*kept, version]
    return kept


def last_edit(changes: Sequence[BlockChange]) -> BlockChange | None:
    """The change that an undo of a block would take back, if there is one."""
    if undo_of(changes) is None:
        return None
    same = [change for change in changes if change.value == changes[-1].value and _UNDONE not in change.what.lower()]
    return same[-1] if same else changes[-1]


def latest(deeds: Iterable[Deed]) -> Deed | None:
    """What was done last."""
    return max(deeds, key=lambda deed: deed.at, default=None)


def message_says(message: str) -> str:
    """What taking a message back does."""
    return f"take the message “{one_line(message, 60)}” and its turn out of the context"

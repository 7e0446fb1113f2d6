"""The actions of a session that can be undone: on functions, memory and messages."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from agent_core.base import events
from agent_core.base.events import Event, FunctionsChanged
from agent_core.base.untrusted import one_line
from agent_core.functions.service.history import Version
from agent_core.memory.planned_edit import undo_of
from agent_core.storage import BlockChange

_UNDONE = "undo"


@dataclass(frozen=True, slots=True)
class Deed:
    """The last action of one kind: when it happened, what undoing it does, and how."""

    at: float
    says: str
    undo: Callable[[], Awaitable[None]]


class Deeds:
    """The functions touched and the messages sent in a session."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.began = clock()
        self.functions: dict[str, None] = {}
        self.messages: list[tuple[float, str]] = []
        self.undone: set[tuple[str, int]] = set()
        """Versions that undoing brought: they are nothing that was done."""
        self._clock = clock

    def hear(self, event: Event) -> None:
        """Record what a turn began with, and what it made."""
        match event:
            case events.TurnStarted():
                self.messages.append((self._clock(), event.message))
            case events.TurnEnded():
                for verb in ("created", "changed", "deleted"):
                    self.touch(event.made.get(verb, ()))
            case FunctionsChanged():
                self.touch([*event.loaded, *event.changed, *event.removed])
            case _:
                pass

    def touch(self, names: Iterable[str]) -> None:
        """Record that these functions may have been changed manually."""
        self.functions |= dict.fromkeys(names)


def states(versions: Sequence[Version], undone: Iterable[tuple[str, int]], name: str) -> list[Version]:
    """Return the versions that still count. A version made by undo cancels the one before it."""
    live_versions: list[Version] = []
    for version in versions:
        live_versions = live_versions[:-1] if (name, version.number) in undone else [*live_versions, version]
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

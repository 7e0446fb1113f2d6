"""Follows the turn that answers a message in another process, by the journal that it writes."""

from agent_core.base.events import Event
from agent_core.base.records import dataclass, field
from agent_core.storage import TurnStore, agent_of
from agent_core.storage.turn_store import N_BITS

from .event_fold import TOLD_KINDS, EventFold


@dataclass(slots=True)
class TurnFollower:
    """A reader of the turn that takes up a message, whoever runs it, or without a message, of one `turn`.

    With a message, a turn that is cut off is followed into the one that resumes it.
    """

    store: TurnStore
    line: str
    message: str
    turn: str = ""
    is_over: bool = False
    _begins: int = 0
    _last: int = 0
    _fold: EventFold = field(default_factory=lambda: EventFold("", ""))

    async def news(self) -> list[Event]:
        """Return the events since the last call; none while the message waits for a turn."""
        if not self._begins and not await self._find():
            return []
        upto = self._begins + (2 << N_BITS)
        ended = await self.store.ended_turns(self.line, self._begins, before=upto, most=1)
        entries = await self.store.history(
            self.line, since=self._last, before=upto, kinds=TOLD_KINDS, with_removed=True
        )
        told = list[Event]()
        for entry in entries:
            if entry.turn != self.turn:
                break
            if not self._fold.turn:
                self._fold = EventFold.at(agent_of(self.line), entry)
            told += self._fold.of(entry, entry.seq)
            self._last = entry.seq
        if ended and ended[0].id == self.turn:
            now = await self.store.turn_of(self.message, self.line) if self.message else self.turn
            if now == self.turn:
                told += self._fold.end(ended[0])
                self.is_over = True
                self._last = ended[0].seq
            else:
                self.turn = ""
                self._begins = 0
        return told

    @property
    def last(self) -> int:
        """The number of the last entry that was read, or of the end."""
        return self._last

    async def _find(self) -> bool:
        if self.message:
            self.turn = await self.store.turn_of(self.message, self.line) or ""
        if self.turn:
            self._begins = await self.store.turn_number(self.line, self.turn) or 0
            self._last = self._begins
            self._fold = EventFold("", "")
        return bool(self.turn)

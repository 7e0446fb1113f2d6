"""Follows the turn that answers a message in another process: by its live feed, or by the journal that it writes."""

import asyncio
from contextlib import suppress
from typing import Final

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.records import dataclass, field, replace
from agent_core.storage import Store, agent_of
from agent_core.storage.turn_store import N_BITS

from .event_fold import TOLD_KINDS, EventFold
from .live_feed import LiveReader

_STOPPED_S: Final = 60.0  # between two greetings of a process that does not answer


@dataclass(slots=True)
class TurnFollower:
    """A reader of the turn that takes up a message, whoever runs it, or without a message, of one `turn`.

    With a message, a turn that is cut off is followed into the one that resumes it. `comes` is set when there may be
    news. The live feed brings events sooner; what it left out, and the end, are read from the journal.
    """

    store: Store
    line: str
    message: str
    turn: str = ""
    is_over: bool = False
    comes: asyncio.Event = field(default_factory=asyncio.Event)
    _begins: int = 0
    _last: int = 0
    _told: int = 0  # the number of the last entry that was told of, by the journal or the feed
    _texts: dict[tuple[str, int], str] = field(default_factory=dict)  # told in pieces, by step
    _whole: set[tuple[str, int]] = field(default_factory=set)  # texts that the journal has told
    _fold: EventFold = field(default_factory=lambda: EventFold("", ""))
    _feed: LiveReader | None = None
    _connecting: asyncio.Task[LiveReader | None] | None = None
    _is_unfed: bool = False  # the feed was lost, or is none for this version
    _is_ending: bool = False

    @property
    def last(self) -> int:
        """The number of the last entry that was read, or of the end."""
        return self._last

    @property
    def is_of_this_user(self) -> bool:
        """True if the process that runs the turn is known to be one of this user on this machine."""
        return self._feed is not None or not self.store.is_shared

    async def is_withdrawn(self) -> bool:
        """Return whether the message was taken back before a turn had it, so that nothing answers it."""
        return bool(self.message) and not self.turn and not await self.store.is_there(self.message)

    async def news(self) -> list[Event]:
        """Return the events since the last call; none while the message waits for a turn."""
        told = self._heard()
        if self._feed is not None and not self._is_ending:
            return told
        if self._begins or await self._find():
            told += await self._read()
        return told

    async def wait(self, seconds: float, unfed_seconds: float) -> list[Event]:
        """Wait until there may be news, for a shorter time if there is no feed. Return what the feed's state tells."""
        told = list[Event]()
        if self._feed is None and self.turn and not self._is_unfed:
            told = await self._connect(unfed_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if self._feed is not None else unfed_seconds):
                await self.comes.wait()
        self.comes.clear()
        return told

    def end_turn(self) -> None:
        """Ask the process that runs the turn to end it, where it can be reached at once."""
        if self._feed is not None:
            self._feed.end_turn()

    def close(self) -> None:
        """Stop reading the feed."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting.add_done_callback(_close_unused)
            self._connecting = None
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    async def _connect(self, seconds: float) -> list[Event]:
        """Take the feed of the turn if its process says within these seconds, or until a later call, that it has it."""
        if self._connecting is None:
            connection = LiveReader.connect(self.store.place, self.line, self.comes, _STOPPED_S)
            self._connecting = asyncio.create_task(connection)
        await asyncio.wait({self._connecting}, timeout=seconds)
        if not self._connecting.done():
            return []
        feed = self._connecting.result()
        self._connecting = None
        if feed is None:
            return []
        if feed.warning:
            self._is_unfed = True
            return [events.Warned(message=feed.warning)]
        # What was written before the feed was there, if it is not of the next turn, or of one that has just ended.
        told = await self._read() if feed.turn == self.turn else []
        if feed.turn == self.turn and not self.is_over:
            self._feed = feed
        else:
            feed.close()
        return told

    def _heard(self) -> list[Event]:
        """Return what the feed has brought; its end is read from the journal, with all that was left out."""
        if self._feed is None:
            return []
        told = list[Event]()
        for event in self._feed.taken():
            is_own = event.turn == self.turn
            if is_own and isinstance(event, events.TurnEnded):
                self._is_ending = True
            elif event.seq > self._last or (not event.seq and self._is_piece_new(event)):
                self._told = max(self._told, event.seq)
                told.append(event)
        if self._feed.is_over:
            self._feed = None
            self._is_unfed = True
        return told

    def _is_piece_new(self, event: Event) -> bool:
        """Return whether a piece belongs to a text that the journal has not told of yet, and remember it."""
        if not isinstance(event, events.Text | events.Thought):
            return True
        place = (event.type, event.step)
        self._texts[place] = self._texts.get(place, "") + event.text
        return place not in self._whole

    def _rest(self, event: Event) -> Event | None:
        """Return an event of the journal without what was told of it in pieces; None if nothing is left."""
        if not isinstance(event, events.Text | events.Thought):
            return event
        place = (event.type, event.step)
        self._whole.add(place)
        before = self._texts.pop(place, "")
        if not before:
            return event
        is_cut = event.text.startswith(before) and event.text != before
        return replace(event, text=event.text[len(before) :]) if is_cut else None

    async def _read(self) -> list[Event]:
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
        told = [rest for event in told if event.seq > self._told and (rest := self._rest(event))]
        self._told = max(self._told, self._last)
        if ended and ended[0].id == self.turn:
            now = await self.store.turn_of(self.message, self.line) if self.message else self.turn
            if now == self.turn:
                told += self._fold.end(ended[0])
                self.is_over = True
                self._last = ended[0].seq
            else:
                self._forget()
        return told

    def _forget(self) -> None:
        """Follow the turn that resumes this one."""
        self.close()
        self.turn = ""
        self._begins = 0
        self._is_ending = False
        self._is_unfed = False
        self._texts.clear()
        self._whole.clear()

    async def _find(self) -> bool:
        if self.message:
            self.turn = await self.store.turn_of(self.message, self.line) or ""
        if self.turn:
            self._begins = await self.store.turn_number(self.line, self.turn) or 0
            self._last = self._begins
            self._fold = EventFold("", "")
        return bool(self.turn)


def _close_unused(connecting: asyncio.Task[LiveReader | None]) -> None:
    if not connecting.cancelled() and (feed := connecting.result()) is not None:
        feed.close()

"""The journal of an agent as numbered events, so that a disconnected reader can resume exactly where it stopped."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.messages import SEND, Call
from agent_core.runtime.client_calls import CLIENT
from agent_core.runtime.entries import RECEIPT, receipt_in, unwrapped
from agent_core.storage import EndedTurn, Entry, TurnStore
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

_KINDS: Final = ("user", "notice", "assistant", "call", "result", RECEIPT, CLIENT)
DONE: Final = "done"
_MOST_EVENTS: Final = 200  # events kept for all readers
_NEWEST: Final = 64  # replies with pieces that may still arrive
_ON_DISK: Final = (events.TurnStarted, events.MessageAdded, events.CallStarted, events.CallAnswered, events.TurnEnded)
_WITH_REPLY: Final = ("client_calls", "length")


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event with its number in the journal. A number without an event marks an entry that readers do not get or have
    already received in pieces; the pieces have no number.
    """

    seq: int | None
    event: Event | None


class JournalReader:
    """A reader of one agent's journal that starts after a number."""

    def __init__(self, store: TurnStore, agent: str, after: int) -> None:
        self._store = store
        self._agent = agent
        self.last = after
        self._arguments: dict[str, str] = {}  # arguments of calls, by id
        self._step = 0
        self._turn = ""
        self._reply = ""
        self._receipt: Entry | None = None
        self.replies: deque[tuple[str, int]] = deque(maxlen=_NEWEST)
        """The newest replies on disk, by turn and step. Pieces of them that still arrive are already known."""

    async def read(self, ends: Iterable[events.TurnEnded] = ()) -> list[NumberedEvent]:
        """Return the events since the last read; `ends` are known ends of turns, with more detail than the journal.

        Another process may end a turn and begin the next one between the two queries; the next read returns that one.
        """
        ended = await self._store.ended_turns(self._agent, self.last)
        # A new reader starts at the beginning of its turn: entries refer back to it.
        since = self.last if self._turn else max((self.last >> 20 << 20) - 1, 0)
        entries = await self._store.history(self._agent, since=since, kinds=_KINDS, with_removed=True)
        closed, known = {row.id for row in ended}, {event.turn: event for event in ends}
        ends_of_open = (_end(row) for row in entries if row.turn not in closed and _end(row) > self.last)
        upto = next(ends_of_open, None)
        entries = entries if upto is None else [row for row in entries if row.seq <= upto]
        rows: list[Entry | EndedTurn] = sorted([*entries, *ended], key=lambda row: row.seq)
        numbered = [(row.seq, event) for row in rows for event in self._of(row, known)]
        fresh = [NumberedEvent(seq, event) for seq, event in numbered if seq > self.last]
        self.last = max([self.last, *(row.seq for row in rows)])
        return fresh

    def _of(self, row: Entry | EndedTurn, known: dict[str, events.TurnEnded]) -> Iterator[Event | None]:
        if isinstance(row, EndedTurn):
            yield known.get(row.id) or self._replay_end(row)
            return
        if row.turn != self._turn:
            self._turn, self._step, self._reply, self._receipt = row.turn, 0, "", None
            self._arguments.clear()
            text = str(row.payload.get("text", "")) if row.kind in ("user", "notice", CLIENT) else ""
            is_message = row.kind == "user" or row.payload.get("event") == "message"
            kind = "message" if is_message else "notice"
            yield events.TurnStarted(turn=row.turn, agent=self._agent, message=text, event=kind)
            if row.kind in ("user", "notice", CLIENT):
                return
        yield self._entry(row)

    def _entry(self, entry: Entry) -> Event | None:
        payload = entry.payload
        match entry.kind:
            case "user" if not payload.get("speaker"):
                text = str(payload.get("text", ""))
                return events.MessageAdded(turn=entry.turn, step=self._step, message=text)
            case "assistant":
                return self._replay_reply(entry)
            case "call":
                id, name = str(payload.get("id", "")), str(payload.get("name", ""))
                arguments = self._arguments.get(id, "{}")
                return events.CallStarted(turn=entry.turn, step=self._step, call_id=id, name=name, arguments=arguments)
            case "result":
                return self._replay_answer(entry)
            case kind if kind == RECEIPT:
                self._receipt = entry
                return None
            case _:
                return None

    def _replay_reply(self, entry: Entry) -> Event | None:
        self._step += 1
        self.replies.append((entry.turn, self._step))
        calls = entry.payload.get("calls", [])
        meant = [unwrapped(Call(call["id"], call["name"], call["arguments"])) for call in calls]
        self._arguments |= {call.id: call.arguments for call in meant}
        text = str(entry.payload.get("text", ""))
        if not text:
            return None
        if any(call["name"] == SEND for call in calls):  # text next to a sent message is a thought
            return events.Thought(turn=entry.turn, step=self._step, text=text)
        self._reply = text
        return events.Text(turn=entry.turn, step=self._step, text=text)

    def _replay_answer(self, entry: Entry) -> Event:
        payload = entry.payload
        id, name = str(payload.get("call_id", "")), str(payload.get("name", ""))
        if name == SEND:
            self._reply = _message(self._arguments.get(id, "")) or self._reply
        return events.CallAnswered(
            turn=entry.turn,
            step=self._step,
            call_id=id,
            name=name,
            text=str(payload.get("text", "")),
            outcome=str(payload.get("outcome", "")),
            seconds=float(payload.get("seconds", 0.0)),
            detail=payload.get("detail") or {},
        )

    def _replay_end(self, turn: EndedTurn) -> Event:
        is_replied, entry = turn.state == DONE, self._receipt
        receipt = receipt_in([entry]) if entry is not None and entry.turn == turn.id else None
        return events.TurnEnded(
            turn=turn.id,
            step=self._step,
            reason="replied" if is_replied else turn.state,
            reply=self._reply if is_replied or turn.state in _WITH_REPLY else "",
            steps=self._step,
            usage={},
            made=receipt.to_json() if receipt is not None else {},
            receipt=receipt.text if receipt is not None else "",
        )


def _end(entry: Entry) -> int:
    """Return the number that ends the turn of an entry."""
    return ((entry.seq >> 20) + 1 << 20) - 1


def is_on_disk(event: Event) -> bool:
    """Return whether the agent's journal contains an event. Events of group members are in the members' journals."""
    is_of_member = bool(event.agent) and not isinstance(event, events.TurnStarted)
    return isinstance(event, _ON_DISK) and bool(event.turn) and not is_of_member


class JournalTail:
    """The newest events of one agent's journal, read once for all readers.

    It begins at the position of the first reader; readers that are further behind read the journal themselves.
    """

    def __init__(self, store: TurnStore, agent: str, after: int) -> None:
        self._reader = JournalReader(store, agent, after)
        self._events: deque[tuple[int, NumberedEvent]] = deque()
        self._begins = after
        self._reading = asyncio.Lock()
        self._read_at = -1
        self.news = 0
        """The number of writes to the journal that this process knows about."""

    async def after(
        self, last: int, ends: Iterable[events.TurnEnded], *, must_look: bool
    ) -> list[NumberedEvent] | None:
        """Return the events after a number, or None if the tail begins later. Read the journal if there is news or with
        `must_look`.
        """
        async with self._reading:
            if must_look or self._read_at != self.news:
                news, fresh = self.news, await self._reader.read(ends)
                self._read_at = news  # only afterwards: a canceled read must not count
                self._events.extend((numbered.seq or 0, numbered) for numbered in fresh)
            while len(self._events) > _MOST_EVENTS:
                self._begins, _ = self._events.popleft()
            if last < self._begins:
                return None
            return [numbered for seq, numbered in self._events if seq > last]


def _message(arguments: str) -> str:
    try:
        value: Any = read_json(arguments, LOOSE)
    except Malformed:
        return ""
    return str(value.get("message", "")) if isinstance(value, dict) else ""

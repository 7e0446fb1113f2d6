"""What is told of a turn, made from its journal: the one place where an entry becomes an event.

`Turn.append` tells what it has stored, and a server what it reads from the store, both by an `EventFold`: so a stream
that begins late has the same events as one that was there. Only pieces of text and progress are told in another way.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from agent_core.base import events
from agent_core.base.events import Event, StoredEvent
from agent_core.base.messages import SEND
from agent_core.base.pictures import with_rows
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.storage import EndedTurn, Entry, agent_of, id_of, is_main
from agent_core.storage.journal import (
    STORED_EVENTS,
    AnswerEntry,
    CallEntry,
    ClientEntry,
    JournalEntry,
    MessageEntry,
    NoticeEntry,
    ReceiptEntry,
    ReplyEntry,
    SpeakerEntry,
    TurnMarks,
    UsageEntry,
    read_entry,
    read_marks,
)
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .entries import unwrapped

DONE: Final = "done"
"""The state of a turn that ended with a reply."""
_OLD_KINDS: Final = (
    MessageEntry.kind,
    NoticeEntry.kind,
    ReplyEntry.kind,
    CallEntry.kind,
    AnswerEntry.kind,
    ReceiptEntry.kind,
    ClientEntry.kind,
)
TOLD_KINDS: Final = (*_OLD_KINDS, UsageEntry.kind, SpeakerEntry.kind, *STORED_EVENTS)
"""The kinds of entries that a fold needs."""
_REPLY_STATES: Final = ("client_calls", "length")
_TOKENS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens")


@dataclass(slots=True)
class EventFold:
    """The events of one turn of a conversation, by its line, from its entries in order, beginning with the first.

    The first entry of each step names it (`step`), and one that `begins` the turn what began it. What precedes that is
    for the model alone, such as the boot, and so is a turn that nothing begins, such as a summary on request. In
    turns of versions that stored neither (`is_old`), and in imported ones, any entry begins the turn, each reply is a
    step, and only what these versions told is told.
    """

    line: str
    turn: str
    is_old: bool = False
    step: int = -1
    arguments: dict[str, str] = field(default_factory=dict)
    """The arguments of the last reply's calls that are not answered, by id, as the reply has them."""
    _is_begun: bool = False
    _started_calls: set[str] = field(default_factory=set)
    _reply: str = ""
    _tokens: Counter[str] = field(default_factory=Counter)
    _receipt: ReceiptEntry | None = None

    @classmethod
    def at(cls, line: str, first_entry: Entry) -> "EventFold":
        """Return the fold of a stored turn with this first entry."""
        is_old = first_entry.is_imported or read_marks(first_entry).step is None
        fold = cls(line, first_entry.turn, is_old)
        if is_old:
            fold.step = 0
        return fold

    def of(self, entry: Entry, seq: int) -> list[Event]:
        """Return what is told of an entry: one event or none, but for the answer of a call that did not start."""
        if self.is_old and entry.kind not in _OLD_KINDS:
            return []
        marks = TurnMarks() if self.is_old else read_marks(entry)
        if marks.step is not None:
            self.step = marks.step
        journal_entry = read_entry(entry)
        told = [replace(event, step=self.step) for event in self._beginning(journal_entry, marks)]
        is_message = isinstance(journal_entry, MessageEntry | NoticeEntry | ClientEntry)
        if not (told and is_message) and not marks.begins:
            own = self._own(journal_entry, marks)  # a reply of an old turn begins a step
            told += [replace(event, step=self.step) for event in own]
        if not self._is_begun:
            return []
        return [replace(event, turn=self.turn, seq=seq) for event in told]

    def end(self, turn: EndedTurn) -> list[Event]:
        """Return what is told of the turn's end: nothing if it never began."""
        if not self.is_old and not self._is_begun:
            return []
        is_replied = turn.state == DONE
        receipt = Receipt()
        known: dict[str, Any] = {"reply": "", "steps": self.step, "usage": {}}  # Any: JSON
        if is_replied or turn.state in _REPLY_STATES:
            known["reply"] = self._reply
        if not self.is_old:
            known["usage"] = {name: self._tokens[name] for name in _TOKENS}
        if self._receipt is not None:
            receipt = Receipt.from_json(self._receipt.made)
            known["receipt"] = receipt.text
        if self._receipt is not None and not self.is_old:
            for name in ("reply", "steps", "usage"):
                stored = getattr(self._receipt, name)
                known[name] = known[name] if stored is None else stored
        ended = events.TurnEnded(
            turn=turn.id,
            step=self.step,
            seq=turn.seq,
            reason="replied" if is_replied else turn.state,
            made=receipt.to_json(),
            **known,
        )
        return [ended]

    def _beginning(self, journal_entry: JournalEntry, marks: TurnMarks) -> list[Event]:
        """Return the event of the turn's beginning if this entry is it."""
        is_beginning = bool(marks.begins) or isinstance(journal_entry, ClientEntry)
        if self._is_begun or not (self.is_old or is_beginning or self.step > 0):
            return []
        self._is_begun = True
        kind = "notice"
        match journal_entry:
            case MessageEntry(text=text) | ClientEntry(text=text, event="message"):
                kind = "message"
            case NoticeEntry(text=text) | ClientEntry(text=text):
                pass
            case _:
                text = ""
        if marks.begins:
            kind = marks.begins
        if marks.said is not None:
            text = marks.said
        started = events.TurnStarted(
            agent=agent_of(self.line),
            message=text,
            event=kind,
            trace=marks.trace,
            message_id=marks.message_id,
            origin=marks.origin or "",
        )
        if not is_main(self.line):
            started = replace(started, conversation=id_of(self.line))
        return [started]

    def _own(self, journal_entry: JournalEntry, marks: TurnMarks) -> Sequence[Event]:
        told: Sequence[Event] = ()
        match journal_entry:
            case MessageEntry(speaker="", text=text):
                id = marks.message_id
                origin = marks.origin or ""
                told = [events.MessageAdded(message=text, message_id=id, origin=origin)]
            case ReplyEntry() as reply:
                told = self._replied(reply)
            case CallEntry() as call:
                told = [self._started(call.id, call.name, call.arguments)]
            case AnswerEntry() as answer:
                told = self._answered(answer)
            case UsageEntry() as usage:
                told = self._used(usage)
            case SpeakerEntry(name=name, rule=rule, reason=reason):
                told = [events.SpeakerChosen(agent=name, rule=rule, reason=reason)]
            case ReceiptEntry() as receipt:
                self._receipt = receipt
            case _ if isinstance(journal_entry, StoredEvent):
                told = [journal_entry]
            case _:
                pass
        return told

    def _replied(self, reply: ReplyEntry) -> list[Event]:
        self.step += self.is_old
        meant = map(unwrapped, reply.calls)
        self.arguments = {call.id: call.arguments for call in meant}
        self._started_calls = set()
        if not reply.text:
            return []
        if SEND in [call.name for call in reply.calls]:  # text next to a sent message is a thought
            return [events.Thought(text=reply.text)]
        self._reply = reply.text
        return [events.Text(text=reply.text)]

    def _started(self, id: str, name: str, arguments: str) -> Event:
        self._started_calls.add(id)
        own = arguments or self.arguments.get(id, "{}")
        return events.CallStarted(call_id=id, name=name, arguments=own)

    def _answered(self, answer: AnswerEntry) -> list[Event]:
        id = answer.call_id
        is_open = id in self.arguments and id not in self._started_calls
        is_first = is_open and not self.is_old and not answer.detail.get("client")
        began = [self._started(id, answer.name, answer.arguments)] if is_first else []
        arguments = self.arguments.pop(id, "")
        if answer.name == SEND:
            with suppress(Malformed):
                value: Any = read_json(arguments, LOOSE)
                sent = value.get("message", "") if isinstance(value, dict) else ""
                self._reply = str(sent) or self._reply
        answered = events.CallAnswered(
            call_id=id,
            name=answer.name,
            text=answer.text,
            outcome=answer.outcome,
            seconds=answer.seconds,
            detail=with_rows(answer.detail, answer.pictures)
            if answer.pictures
            else {**answer.detail},
        )
        return [*began, answered]

    def _used(self, usage: UsageEntry) -> list[Event]:
        tokens = {name: getattr(usage, name) for name in _TOKENS}
        self._tokens.update(tokens)
        limit = usage.context_limit
        if limit is None:  # a request apart, which was not for a step
            return []
        context = usage.prompt_tokens + usage.completion_tokens if limit else 0
        return [
            events.Usage(
                **tokens,
                estimated=usage.estimated,
                context_tokens=context,
                context_limit=limit,
                model="" if limit else usage.model,
            )
        ]

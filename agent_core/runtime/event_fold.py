"""What is told of a turn, made from its journal: the one place where an entry gets its place in a stream of events.

`Turn.append` tells what it has stored, and a server what it reads from the store, both by an `EventFold`: so a stream
that begins late has the same events as one that was there. Only pieces of text and progress are told in another way.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from agent_core.base import events
from agent_core.base.events import (
    CallAnswered,
    CallStarted,
    Event,
    SpeakerChosen,
    StoredEvent,
    Usage,
)
from agent_core.base.messages import SEND
from agent_core.base.pictures import with_rows
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.context.folds import unwrapped
from agent_core.storage import EndedTurn, Entry, agent_of, id_of, is_main
from agent_core.storage.journal import (
    STORED_EVENTS,
    ClientEntry,
    JournalEntry,
    MessageEntry,
    NoticeEntry,
    ReceiptEntry,
    ReplyEntry,
    TurnMarks,
    read_entry,
    read_marks,
)
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

DONE: Final = "done"
"""The state of a turn that ended with a reply."""
_OLD_KINDS: Final = (
    MessageEntry.kind,
    NoticeEntry.kind,
    ReplyEntry.kind,
    CallStarted.kind,
    CallAnswered.kind,
    ReceiptEntry.kind,
    ClientEntry.kind,
)
TOLD_KINDS: Final = (*_OLD_KINDS, Usage.kind, SpeakerChosen.kind, *STORED_EVENTS)
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
        told = self._placed(self._beginning(journal_entry, marks), seq)
        is_message = isinstance(journal_entry, MessageEntry | NoticeEntry | ClientEntry)
        if not (told and is_message) and not marks.begins:
            own = self._own(journal_entry, marks)  # a reply of an old turn begins a step
            told += self._placed(own, seq)
        return told if self._is_begun else []

    def _placed(self, told: Sequence[Event], seq: int) -> list[Event]:
        """Return events with their place: the turn, the step, and the number of the entry."""
        return [replace(event, turn=self.turn, step=self.step, seq=seq) for event in told]

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
            case CallStarted() as call:
                told = [self._started(call)]
            case CallAnswered() as answer:
                told = self._answered(answer)
            case Usage() as usage:
                told = self._used(usage)
            case SpeakerChosen() as chosen:
                told = [chosen]
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

    def _started(self, call: CallStarted) -> Event:
        self._started_calls.add(call.call_id)
        own = call.arguments or self.arguments.get(call.call_id, "{}")
        return replace(call, arguments=own)

    def _answered(self, answered: CallAnswered) -> list[Event]:
        id = answered.call_id
        is_open = id in self.arguments and id not in self._started_calls
        is_first = is_open and not self.is_old and not answered.detail.get("client")
        began = list[Event]()
        if is_first:
            call = CallStarted(call_id=id, name=answered.name, arguments=answered.arguments)
            began.append(self._started(call))
        arguments = self.arguments.pop(id, "")
        if answered.name == SEND:
            with suppress(Malformed):
                value: Any = read_json(arguments, LOOSE)
                sent = value.get("message", "") if isinstance(value, dict) else ""
                self._reply = str(sent) or self._reply
        if answered.pictures:
            answered = replace(answered, detail=with_rows(answered.detail, answered.pictures))
        return [*began, answered]

    def _used(self, usage: Usage) -> list[Event]:
        self._tokens.update({name: getattr(usage, name) for name in _TOKENS})
        if usage.context_limit is None:  # a request apart, which was not for a step
            return []
        if not usage.context_limit:
            return [usage]
        context = usage.prompt_tokens + usage.completion_tokens
        return [replace(usage, context_tokens=context, model="")]

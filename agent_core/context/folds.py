"""What the entries of a turn add up to: the messages that the model reads, the calls that are open, and the receipt."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from agent_core.base.events import CallAnswered, CallStarted, FunctionAnswered, FunctionAsked
from agent_core.base.messages import Answer, Assistant, Call, Message, Notice, User
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line
from agent_core.registry.validation import NotJson, read_object
from agent_core.storage import Entry
from agent_core.storage.journal import (
    STORED_EVENTS,
    EffectsEntry,
    InnerAnswerEntry,
    InnerCallEntry,
    MessageEntry,
    NoticeEntry,
    ReachEntry,
    ReceiptEntry,
    ReplyEntry,
    read_as,
    read_entry,
)

from .shown import CALLER

HEARTBEAT: Final = "request_heartbeat"
"""The argument of a call with which an agent that is woken by events asks for another step."""
RECEIPT_KINDS: Final = (
    CallStarted.kind,
    CallAnswered.kind,
    InnerCallEntry.kind,
    InnerAnswerEntry.kind,
    EffectsEntry.kind,
    ReachEntry.kind,
    ReceiptEntry.kind,
)
"""The kinds of entries that a receipt is built from."""
RECORD_KINDS: Final = (EffectsEntry.kind, ReachEntry.kind, ReceiptEntry.kind, *STORED_EVENTS)
"""The kinds of entries that are for the record only and do not count as progress of the turn."""
_MESSAGE_KINDS: Final = (
    MessageEntry.kind,
    NoticeEntry.kind,
    ReplyEntry.kind,
    CallAnswered.kind,
)
_NOT_RUN: Final = ("refused", "skipped")


@dataclass(slots=True)
class ReceiptReader:
    """A builder of a turn's receipt from its entries, in the order in which they are stored."""

    receipt: Receipt = field(default_factory=Receipt)
    _running: dict[str, list[str]] = field(
        default_factory=dict
    )  # addresses of running calls, by call ID

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Receipt:
        """Return the receipt of entries."""
        reader = cls()
        for entry in entries:
            reader.take(entry)
        return reader.receipt

    def take(self, entry: Entry) -> None:
        """Add the effects that an entry records."""
        match read_entry(entry):
            case CallStarted(client=True, name=name):
                self.receipt.note("called", name)
            case CallStarted(call_id=id, version=version) | InnerCallEntry(id=id, version=version):
                if version:  # built-in ones have none
                    self._running[id] = []
            case ReachEntry() as reach:
                self._running.get(reach.call, []).append(reach.place)
            case CallAnswered() | InnerAnswerEntry() as answer if answer.call_id in self._running:
                self._take_answer(answer.name, answer.outcome, self._running.pop(answer.call_id))
            case EffectsEntry(made=made):
                self.receipt.add(Receipt.from_json(made))
            case _:
                pass

    def _take_answer(self, name: str, outcome: str, places: Sequence[str]) -> None:
        if outcome in _NOT_RUN:
            return
        self.receipt.note("called", name)
        if outcome == "unknown":
            self.receipt.note("unknown", name)
            for place in places:
                self.receipt.note("reached", place)
        elif outcome != "returned":
            self.receipt.note("failed", name)


def receipt_in(entries: Sequence[Entry]) -> Receipt:
    """Return the receipt of a turn: the one stored at its end, or one built from its entries."""
    for entry in reversed(entries):
        receipt_entry = read_as(ReceiptEntry, entry)
        if receipt_entry is not None:
            return Receipt.from_json(receipt_entry.made)
    return ReceiptReader.of(entries)


def messages_of(entries: Iterable[Entry]) -> list[Message]:
    """Return the messages that the model reads; skip entries that are for the record only."""
    return [message for message in map(message_of, entries) if message is not None]


def message_of(entry: Entry) -> Message | None:
    """Return the message that the model reads; None if the entry is for the record only.

    A reply from an agent's file brings nothing to send to an endpoint.
    """
    is_imported = entry.is_imported
    match read_entry(entry) if entry.kind in _MESSAGE_KINDS else None:
        case CallAnswered() as answer:
            return Answer(answer.call_id, answer.name, answer.text, answer.pictures)
        case ReplyEntry(text=text, thought=thought, calls=calls) if is_imported:
            bare = tuple(Call(call.id, call.name, call.arguments) for call in calls)
            return Assistant(text, bare, thought)
        case ReplyEntry() as reply:
            return Assistant(reply.text, reply.calls, reply.thought, reply.reasoning, reply.source)
        case MessageEntry() as said:
            return User(said.text, said.packed or "", is_imported, said.speaker, said.pictures)
        case NoticeEntry() as said:
            return Notice(said.text, said.packed or "", is_imported)
        case _:
            return None


def calls_without_answer(entries: Sequence[Entry]) -> list[tuple[Call, bool]]:
    """Return the unanswered calls of a turn's last reply, each with whether it had started."""
    reply: ReplyEntry | None = None
    started: set[str] = set()
    answered: set[str] = set()
    for entry in entries:
        match read_entry(entry):
            case ReplyEntry() as reply:
                started = set()
                answered = set()
            case CallStarted(call_id=id):
                started.add(id)
            case CallAnswered(call_id=id):
                answered.add(id)
            case _:
                pass
    calls = map(unwrapped, reply.calls if reply else ())
    return [(call, call.id in started) for call in calls if call.id not in answered]


def questions_asked(entries: Sequence[Entry], call: str) -> list[str]:
    """Return what a call that ended early had asked a person, and the answers, as lines for the model."""
    asked = dict[str, str]()
    for entry in entries:
        match read_entry(entry):
            case FunctionAsked(call=asker, question=id, text=text) if asker == call:
                asked[id] = f"It had asked a person “{one_line(text, 200)}”: no answer."
            case FunctionAnswered(question=id, answer=said) if said and id in asked:
                said = one_line(said, 200)
                asked[id] = asked[id].replace("no answer.", f"the answer was “{said}”.")
            case _:
                pass
    return [*asked.values()]


def unwrapped(call: Call) -> Call:
    """Return the call that a `call_function` wraps; any other call, and a malformed one, is returned unchanged."""
    if call.name != CALLER:
        return call
    try:
        wanted = read_object(call.arguments)
    except NotJson:
        return call
    if not isinstance(name := wanted.get("name"), str) or name == CALLER:
        return call
    arguments = wanted.get("arguments") or {}
    if isinstance(arguments, str) and HEARTBEAT in wanted:
        with suppress(NotJson):  # invalid text is kept, and fails with its own error
            arguments = read_object(arguments)
    if isinstance(arguments, dict):
        if HEARTBEAT in wanted:
            arguments = {HEARTBEAT: wanted[HEARTBEAT], **arguments}
        arguments = json.dumps(arguments, ensure_ascii=False)
    return Call(call.id, name, arguments) if isinstance(arguments, str) else call

"""The entries of a turn's journal, the messages that the model reads in them, and the receipt that they add up to.

Another agent's words are data: no line of them can pass for the user's words, the program's, or a third agent's.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_core import __version__
from agent_core.base import events
from agent_core.base.clock import shown_time
from agent_core.base.messages import Answer, Assistant, Call, Message, Notice, User
from agent_core.base.pictures import PICTURES, Picture, pictures_in, with_rows
from agent_core.base.policy import Policy
from agent_core.base.receipt import Made, Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.context import CALLER, Section
from agent_core.context.history import harmless
from agent_core.registry.validation import NotJson, read_object
from agent_core.storage import Entry, Inbound, Misfit, SaveText, Write, content_hash, sender_of
from agent_core.storage.journal import (
    STORED_EVENTS,
    AnswerEntry,
    CallEntry,
    EffectsEntry,
    InnerAnswerEntry,
    InnerCallEntry,
    JournalEntry,
    MessageEntry,
    NoticeEntry,
    ReachEntry,
    ReceiptEntry,
    ReplyEntry,
    RequestEntry,
    TurnMarks,
    mark,
    read_as,
    read_entry,
    text_of,
    write_entry,
)
from agent_core.storage.subject import parse_row

if TYPE_CHECKING:
    from agent_core.model.reply import Mode, Reply
    from agent_core.model.request import FunctionShown
    from agent_core.registry.registry import Snapshot

HEARD: Final = "heard"
"""The kind of an event that holds what another agent said."""
ONLY: Final = "only"
"""The key of an event for the agents that its sender may use; absent if the sender may use all."""
HEARTBEAT: Final = "request_heartbeat"
"""The argument of a call with which an agent that is woken by events asks for another step."""
ALONE: Final = "alone"
"""The key of a message that gets a turn to itself, because its sender waits for the reply."""
HERE: Final = "here"
"""The key of a message whose sender runs its turn, with its own model, limits and answers, as long as it lives."""
CLIENT: Final = "client"
"""The key of an event for what came with it: functions of its sender, and how the reply is to be."""
ANSWERS: Final = "answers"
"""The key of a message for the answers to calls of such functions."""
AFTER: Final = "after"
"""The key of an event for the ID of the interrupted turn that it continues."""
POLICY: Final = "policy"
"""The key of an event for the policy of the turn that it begins."""
MODEL: Final = "model"
"""The key of a message for the model that its sender chose for it, by its name."""
MAX_STEPS: Final = "max_steps"
"""The key of a message for the limit of steps that its sender chose for its turn."""
EXPECTS: Final = "expects"
"""The key of an event for what the task that it begins will have to reach, as the user has seen it."""
SEEN: Final = "seen_pictures"
TOLD: Final = "told_pictures"
"""The keys of a request's parameters for the captions of pictures: those that it showed, and those told in words."""
RECEIPT_KINDS: Final = (
    CallEntry.kind,
    AnswerEntry.kind,
    InnerCallEntry.kind,
    InnerAnswerEntry.kind,
    EffectsEntry.kind,
    ReachEntry.kind,
    ReceiptEntry.kind,
)
"""The kinds of entries that a receipt is built from."""
PIPE: Final = "pipe"
"""The window of `knapper run` that reads its messages from a program."""
JOB: Final = "job"
"""The window of `knapper run --message` without a terminal."""
SCHEDULE: Final = "schedule"
"""The window of a timer."""
RECORD_KINDS: Final = (EffectsEntry.kind, ReachEntry.kind, ReceiptEntry.kind, *STORED_EVENTS)
"""The kinds of entries that are for the record only and do not count as progress of the turn."""
_MESSAGE_KINDS: Final = (
    MessageEntry.kind,
    NoticeEntry.kind,
    ReplyEntry.kind,
    AnswerEntry.kind,
)
_POSING: Final = re.compile(r"^([^\w\n]*+)(from[^\w:：]*+[:：].*)$", re.IGNORECASE | re.MULTILINE)
_PROGRAM: Final = re.compile(r"\[\s*knapper\s*\]", re.IGNORECASE)
_HEADS: Final[Mapping[str, str]] = {
    "note": "[from: {}]",
    "ask": "[from: {}] asks you; your reply is the answer:",
    "handoff": "[from: {}] hands this over to you:",
    "stop": "[from: {}] asks you to stop:",
}
AGAIN: Final = "The program was stopped in the middle of your last turn. Go on with it; nobody has had your reply yet."
AGAIN_OF: Final = (
    "The program was stopped in the middle of your turn for the message that begins with “{}”. Go on with it; nobody"
    " has had your reply yet."
)
_NOT_RUN: Final = ("refused", "skipped")
_TIME: Final = "%Y-%m-%d %I:%M:%S %p %Z%z"


@dataclass(frozen=True, slots=True)
class MessageProtocol:
    """How an agent and its user reach each other: `direct`, where a reply's text is the message and nothing is packed.

    `instructions` (empty: the default) and `brief` (for small models) come from the preset, whose name is `preset`. The
    others are for the first reply of a protocol that can fail it.
    """

    preset: str = "direct"
    instructions: str = ""
    brief: str = ""
    verify: bool = False
    attempts: int = 3
    first_thought: bool = True

    @property
    def packs(self) -> bool:
        """Whether messages and events are packed as JSON with type and time."""
        return False

    def by_function(self, _mode: "Mode", /) -> bool:
        """Return whether messages go through a function, and each further step must be requested."""
        return False

    def first_fault(self, _reply: "Reply", _shown: Collection[str], /) -> str:
        """Return the fault of an agent's first reply, or an empty text; `_shown` are the functions it could call."""
        return ""

    def not_kept(self, _mode: "Mode", /) -> str:
        """Return a sentence for the user if this style cannot be kept in this mode, otherwise an empty text."""
        return ""

    def shown(
        self, line: tuple["FunctionShown", ...], _mode: "Mode" = "native", /
    ) -> tuple["FunctionShown", ...]:
        """Return the functions in this style. Unchanged functions give the same object."""
        return line

    def offered(self, parameters: dict[str, Any], _mode: "Mode" = "native", /) -> dict[str, Any]:
        """Return the schema of a function's arguments as the model gets it. Any: JSON Schema."""
        return parameters

    def reading(self, parameters: dict[str, Any], /) -> dict[str, Any]:  # Any: JSON Schema
        """Return the schema for reading a call's arguments."""
        return parameters

    def take_heartbeat(self, _arguments: dict[str, Any], _parameters: dict[str, Any], /) -> bool:
        """Remove a request for another step from a call's arguments, and return whether one was made. Any: JSON."""
        return False

    def event(self, _kind: str, _fields: Mapping[str, Any], _now: float, /) -> str:  # Any: JSON
        """Return an event as JSON for the model; empty if it reads the text."""
        return ""


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
            case CallEntry(client=True, name=name):
                self.receipt.note("called", name)
            case CallEntry() | InnerCallEntry() as call if call.version:  # built-in ones have none
                self._running[call.id] = []
            case ReachEntry() as reach:
                self._running.get(reach.call, []).append(reach.place)
            case AnswerEntry() | InnerAnswerEntry() as answer if answer.call_id in self._running:
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


def moment(at: float) -> str:
    """Return a time as in packed messages, in the time zone of this machine."""
    return shown_time(at, _TIME)


def quoted(text: str) -> str:
    """Return an agent's words, escaped so that no line can pass for the user's, the program's or another agent's."""
    return _POSING.sub(r"\1“\2”", _PROGRAM.sub("“Knapper”", harmless(text)))


def entry_of_agent(inbound: Inbound) -> Entry | None:
    """Return the entry of an event that another agent caused; None for any other event."""
    payload, speaker = inbound.payload, ", ".join(senders(inbound))
    if inbound.kind in _HEADS:
        text = f"{_HEADS[inbound.kind].format(speaker)}\n{quoted(str(payload.get('text', '')))}"
        return user(text, speaker)
    if inbound.kind == "again":
        said = str(payload.get("text") or "")
        return notice(AGAIN_OF.format(said) if said else AGAIN)
    if inbound.kind != "answer" or not isinstance(payload.get("answers"), list):
        return None
    texts = []
    for answer in _answers(inbound):
        verb = "answers" if answer.get("state") == "answered" else "gave no answer"
        texts.append(f"[from: {_name(answer)}] {verb}:\n{quoted(str(answer.get('text', '')))}")
    return user("\n\n".join(texts), speaker)


def senders(inbound: Inbound) -> list[str]:
    """Return the agents that are quoted in an event."""
    if inbound.kind in _HEADS:
        return [_name(inbound.payload)]
    return [_name(answer) for answer in _answers(inbound)] if inbound.kind == "answer" else []


def _answers(inbound: Inbound) -> list[Mapping[str, Any]]:  # Any: JSON
    answers = inbound.payload.get("answers")
    return (
        [answer for answer in answers if isinstance(answer, Mapping)]
        if isinstance(answers, list)
        else []
    )


def _name(said: Mapping[str, Any]) -> str:  # Any: JSON
    return _line(str(said.get("from", "")))


@lru_cache(maxsize=1024)
def _line(name: str) -> str:
    return one_line(name, 64)


def is_of_client(inbound: Inbound) -> bool:
    """Return whether a client began this, with functions of its own or with terms for the reply."""
    return isinstance(inbound.payload.get(CLIENT), dict)


def is_alone(inbound: Inbound) -> bool:
    """Return whether an event begins a turn of its own, instead of being added to the running one."""
    return bool(inbound.payload.get(ALONE)) or is_of_client(inbound)


def is_unwatched(inbound: Inbound) -> bool:
    """Return whether a timer began this, or a program without a terminal."""
    if not inbound.origin:
        return False
    with suppress(Misfit):
        return parse_row(inbound.origin, dict).get("window") in (PIPE, JOB, SCHEDULE)
    return False


def questions_asked(entries: Sequence[Entry], call: str) -> list[str]:
    """Return what a call that ended early had asked a person, and the answers, as lines for the model."""
    asked = dict[str, str]()
    for entry in entries:
        payload = entry.payload
        if payload.get("call") != call:
            continue
        id = str(payload.get("question"))
        if entry.kind == events.FunctionAsked.type:
            asked[id] = (
                f"It had asked a person “{one_line(str(payload.get('text')), 200)}”: no answer."
            )
        elif entry.kind == events.FunctionAnswered.type and id in asked and payload.get("answer"):
            said = one_line(str(payload["answer"]), 200)
            asked[id] = asked[id].replace("no answer.", f"the answer was “{said}”.")
    return [*asked.values()]


def facts_entry(made: Made) -> Entry:
    """Return the entry that records these effects."""
    return write_entry(EffectsEntry(made=made))


def receipt_entry(receipt: Receipt, **end: Any) -> Entry:  # Any: a field of the entry
    """Return the entry of a whole receipt; `end` has what else the turn's end tells and no entry implies."""
    return write_entry(ReceiptEntry(made=receipt.to_json(), **end))


def begun(entry: Entry, inbound: Inbound, policy: Policy) -> Entry:
    """Return the entry that begins a turn, with what the event that it is of says about the turn, and its policy."""
    said = said_by(inbound)
    trace = str(inbound.payload.get("trace") or "")
    marks = TurnMarks(step=0, begins=inbound.kind, policy=policy.to_json(), said=said, trace=trace)
    if said == text_of(entry):
        marks = replace(marks, said=None)
    return sent_from(mark(entry, marks), inbound)


def sent_from(entry: Entry, inbound: Inbound) -> Entry:
    """Return the entry of a message with its id, and where it comes from."""
    if inbound.kind != "message":
        return entry
    return mark(entry, TurnMarks(message_id=inbound.id, origin=sender_of(inbound.origin)))


def receipt_in(entries: Sequence[Entry]) -> Receipt:
    """Return the receipt of a turn: the one stored at its end, or one built from its entries."""
    for entry in reversed(entries):
        receipt_entry = read_as(ReceiptEntry, entry)
        if receipt_entry is not None:
            return Receipt.from_json(receipt_entry.made)
    return ReceiptReader.of(entries)


def user(text: str, speaker: str = "") -> Entry:
    """Return the entry of a user's message, or of another agent's, which the model reads as a user message."""
    return write_entry(MessageEntry(text=text, speaker=speaker))


def notice(text: str) -> Entry:
    """Return the entry of a notice from the program to the model."""
    return write_entry(NoticeEntry(text=text))


def heartbeat(reason: str, protocol: MessageProtocol, now: float) -> Entry:
    """Return the entry of a heartbeat, which gives the reason why the agent is awake."""
    packed = protocol.event("heartbeat", {"reason": reason}, now)
    return write_entry(NoticeEntry(text=f"Heartbeat: {reason}", packed=packed))


def login(last: float | None, protocol: MessageProtocol, now: float) -> Entry:
    """Return the entry that says that the user is present, and when they were last present."""
    before = "never: this is the first time" if last is None else moment(last)
    text = f"The user is here. The last time was: {before}."
    packed = protocol.event("login", {"last_login": before}, now)
    return write_entry(NoticeEntry(text=text, packed=packed))


def entry_of(inbound: Inbound, protocol: MessageProtocol, now: float) -> Entry:
    """Return the entry of an inbox event: a message, heartbeat, login or system alert."""
    if (entry := entry_of_agent(inbound)) is not None:
        return entry
    text = str(inbound.payload.get("text", ""))
    match inbound.kind:
        case "message":
            entry = user(text)
            shows = PICTURES in inbound.payload
            return showing(entry, pictures_in(inbound.payload)) if shows else entry
        case kind if kind == HEARD:
            return user(text, str(inbound.payload.get("speaker", "")))
        case "heartbeat":
            return heartbeat(str(inbound.payload.get("reason", "time has passed.")), protocol, now)
        case "login":
            return login(inbound.payload.get("last"), protocol, now)
        case _:
            return notice(text)


def showing(entry: Entry, pictures: Sequence[Picture]) -> Entry:
    """Return the entry of a message or an answer with pictures, whose captions its text has already."""
    return replace(entry, payload=with_rows(entry.payload, pictures)) if pictures else entry


def said_by(inbound: Inbound) -> str:
    """Return the text of an event: a message, or the reason for the event."""
    if (entry := entry_of_agent(inbound)) is not None:
        return text_of(entry)
    return str(inbound.payload.get("text") or inbound.payload.get("reason") or "")


def recorded_request(
    functions: Sequence["FunctionShown"],
    indexed: Collection[str],
    snapshot: "Snapshot",
    sections: Sequence[Section],
    model: str,
    parameters: Mapping[str, Any],  # Any: JSON
) -> tuple[list[Entry], list[Write]]:
    """Return the entry of a request, which refers to texts by hash, and the writes that store the texts.

    Together with the messages of the turn, the request can be reconstructed. `indexed` are the functions that a section
    lists.
    """
    names, texts = [function.name for function in functions], [section.text for section in sections]
    known = [name for name in (*names, *sorted(indexed)) if name in snapshot.functions]
    hashes = [content_hash(text) for text in texts]
    request = RequestEntry(
        program=__version__,
        model=model,
        parameters=dict(parameters),
        instructions=hashes[0] if hashes else "",
        sections=tuple(hashes),
        functions=tuple(names),
        versions={name: snapshot.functions[name].version for name in known},
    )
    return [write_entry(request)], [SaveText(text) for text in texts]


def assistant(assistant_reply: Assistant) -> Entry:
    """Return the entry of a model's reply."""
    reply = ReplyEntry(
        text=assistant_reply.text,
        thought=assistant_reply.thought,
        calls=assistant_reply.calls,
        reasoning=assistant_reply.reasoning,
        source=assistant_reply.source,
    )
    return write_entry(reply)


def cut_off(text: str) -> Entry:
    """Return the entry of an incomplete reply."""
    return assistant(Assistant(f"{text} […]"))


def call_started(call: Call, version: str | None, asked: str | None = None) -> Entry:
    """Return the entry written before a call runs; from then on it may have effects."""
    arguments = own_arguments(call, asked)
    return write_entry(CallEntry(id=call.id, name=call.name, version=version, arguments=arguments))


def own_arguments(call: Call, asked: str | None) -> str:
    """Return the arguments of a call for its entry: none if they are as `asked` in the model's reply."""
    return "" if asked in (None, call.arguments) else call.arguments


def result(
    call: Call, text: str, outcome: str, seconds: float = 0.0, detail: dict[str, Any] | None = None
) -> Entry:
    """Return the entry of a call's answer."""
    return write_entry(answer_to(call, text, outcome, seconds, detail))


def answer_to(
    call: Call, text: str, outcome: str, seconds: float = 0.0, detail: dict[str, Any] | None = None
) -> AnswerEntry:
    """Return what the entry of a call's answer holds."""
    return AnswerEntry(
        call_id=call.id,
        name=call.name,
        text=text,
        outcome=outcome,
        seconds=round(seconds, 6),
        detail=detail or {},
    )


def messages_of(entries: Sequence[Entry]) -> list[Message]:
    """Return the messages that the model reads; skip entries that are for the record only."""
    messages: list[Message] = []
    for entry in entries:
        if entry.kind in _MESSAGE_KINDS:
            messages += _message_of(read_entry(entry), is_imported=entry.is_imported)
    return messages


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
            case CallEntry(id=id):
                started.add(id)
            case AnswerEntry(call_id=id):
                answered.add(id)
            case _:
                pass
    calls = map(unwrapped, reply.calls if reply else ())
    return [(call, call.id in started) for call in calls if call.id not in answered]


def _message_of(journal_entry: JournalEntry, *, is_imported: bool) -> Iterable[Message]:
    """Yield the message that the model reads. A reply from an agent's file brings nothing to send to an endpoint."""
    match journal_entry:
        case MessageEntry(text=text, packed=packed, speaker=speaker, pictures=pictures):
            yield User(text, packed or "", is_imported, speaker, pictures)
        case NoticeEntry(text=text, packed=packed):
            yield Notice(text, packed or "", is_imported)
        case ReplyEntry(text=text, thought=thought, calls=calls) if is_imported:
            bare = tuple(Call(call.id, call.name, call.arguments) for call in calls)
            yield Assistant(text, bare, thought)
        case ReplyEntry(text=text, thought=thought, calls=calls) as reply:
            yield Assistant(text, calls, thought, reply.reasoning, reply.source)
        case AnswerEntry(call_id=id, name=name, text=text, pictures=pictures):
            yield Answer(id, name, text, pictures)
        case _:
            pass

"""What the entries of a journal hold: one class for each kind, with the one way to read an entry and to write one.

A field's name is its key in the stored payload. A field without a default was written by every version; another one
has its default where it is missing or null, because an earlier version did not write it. `IF_SET` fields are left out
while they have their default. Keys that no class knows are left alone. The events that nothing else implies
(`StoredEvent`) are entries, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, get_args

from agent_core.base.events import (
    CallAnswered,
    CallStarted,
    SpeakerChosen,
    StoredEvent,
    Usage,
    stored_fields,
)
from agent_core.base.messages import Assistant, Call
from agent_core.base.pictures import Picture
from agent_core.base.receipt import Made, Receipt
from agent_core.base.records import IF_SET, dataclass, field, from_json, replace

from .payload import Json, payload_of, value_of
from .subject import FIX, Entry, Misfit

AnyEntry = TypeVar("AnyEntry", bound="OwnEntry | StoredEvent")

STORED_EVENTS: Final[Mapping[str, type[StoredEvent]]] = {
    kind.type: kind for kind in get_args(StoredEvent)
}
"""The events that are entries, by the kind of the entry."""
SEEN: Final = "seen_pictures"
TOLD: Final = "told_pictures"
"""The keys of a request's parameters for the captions of pictures: those that it showed, and those told in words."""
_KINDS: Final[dict[str, type["OwnEntry | StoredEvent"]]] = {}  # filled when it is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEntry:
    """A message of the user, or of the agent that is its `speaker`.

    `packed` is the same text with type and time. Of a long text it is the beginning; the `whole` has this hash, and so
    many `chars`.
    """

    kind: ClassVar[str] = "user"
    text: str
    speaker: str = field(default="", metadata=IF_SET)
    packed: str | None = field(default=None, metadata=IF_SET)
    whole: str = field(default="", metadata=IF_SET)
    chars: int = field(default=0, metadata=IF_SET)
    pictures: tuple[Picture, ...] = field(default=(), metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeEntry:
    """A notice from the program to the model. If it is `unheard`, a group must not hear the message before it."""

    kind: ClassVar[str] = "notice"
    text: str
    packed: str | None = field(default=None, metadata=IF_SET)
    whole: str = field(default="", metadata=IF_SET)
    chars: int = field(default=0, metadata=IF_SET)
    unheard: bool = field(default=False, metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEntry:
    """A reply of the model; in a group, what its `speaker` said, and `to` whom it handed over."""

    kind: ClassVar[str] = "assistant"
    text: str
    thought: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: tuple[str, ...] = field(default=(), metadata=IF_SET)
    source: str = field(default="", metadata=IF_SET)
    speaker: str = field(default="", metadata=IF_SET)
    to: str = field(default="", metadata=IF_SET)
    whole: str = field(default="", metadata=IF_SET)
    chars: int = field(default=0, metadata=IF_SET)


PagedEntry: TypeAlias = MessageEntry | NoticeEntry | ReplyEntry | CallAnswered
"""An entry whose text may be stored in part."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that a summary kept, and its author."""

    by: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryEntry:
    """A summary, which replaces the messages up to the entry `upto` in the context (see `context/history.py`)."""

    kind: ClassVar[str] = "summary"
    text: str
    covers: int
    upto: int
    style: str = "summary"
    said: tuple[Quote, ...] = field(default=(), metadata=IF_SET)
    asked: str = field(default="", metadata=IF_SET)


ShownEntry: TypeAlias = PagedEntry | CallStarted | SummaryEntry
"""An entry of what a model is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEntry:
    """A request to the model: with the messages of the turn, it can be made again. Texts are named by their hashes."""

    kind: ClassVar[str] = "request"
    program: str = ""
    model: str = ""
    parameters: Json = field(default_factory=dict)
    instructions: str = ""
    sections: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    versions: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEntry:
    """The beginning of a turn in which calls of a client's functions are answered; `event` is the kind of its event."""

    kind: ClassVar[str] = "client"
    text: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedEntry:
    """The last entry of a turn that waits: for the answers of agents (`asks`), or of a client to its `calls`."""

    kind: ClassVar[str] = "parked"
    asks: tuple[Json, ...] = field(default=(), metadata=IF_SET)
    calls: tuple[Json, ...] = field(default=(), metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEntry:
    """The start of a program, with the `id` of its call, its key, and the digests of its text and its form.

    `at` is the time of its first run, `sealed` what the user approved, with the seal.
    """

    kind: ClassVar[str] = "program"
    id: str
    program: str
    at: float
    text: str = ""
    form: str = ""
    sealed: tuple[str, ...] = field(default=(), metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerCallEntry:
    """The start of a call of a `program`, the one with this number in it. `reaches`: it may have effects."""

    kind: ClassVar[str] = "inner_call"
    id: str
    program: str
    ordinal: int
    name: str
    arguments: str
    version: str | None = None
    reaches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerGrantEntry:
    """A running inner call was granted something."""

    kind: ClassVar[str] = "inner_given"
    program: str
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerAnswerEntry:
    """The answer to an inner call."""

    kind: ClassVar[str] = "inner_result"
    call_id: str
    program: str
    ordinal: int
    name: str
    outcome: str
    text: str
    detail: Json
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntry:
    """The names that programs keep, with their values as JSON."""

    kind: ClassVar[str] = "kept"
    values: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsEntry:
    """Effects of the turn, in the format of a receipt."""

    kind: ClassVar[str] = "did"
    made: Made


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachEntry:
    """Written before a call reaches an address for the first time."""

    kind: ClassVar[str] = "reach"
    call: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptEntry:
    """The end of a turn: its whole receipt, and its reply, steps and usage where the other entries imply others."""

    kind: ClassVar[str] = "receipt"
    made: Made
    reply: str | None = field(default=None, metadata=IF_SET)
    steps: int | None = field(default=None, metadata=IF_SET)
    usage: dict[str, int] | None = field(default=None, metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEntry:
    """Why a turn ended without a reply, as shown to the user."""

    kind: ClassVar[str] = "ended"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedEntry:
    """The displayed part of an unfinished reply. It is not in the journal yet."""

    kind: ClassVar[str] = "streamed"
    text: str


OwnEntry: TypeAlias = (
    MessageEntry
    | NoticeEntry
    | ReplyEntry
    | CallStarted
    | CallAnswered
    | SummaryEntry
    | RequestEntry
    | Usage
    | ClientEntry
    | ParkedEntry
    | SpeakerChosen
    | ProgramEntry
    | InnerCallEntry
    | InnerGrantEntry
    | InnerAnswerEntry
    | KeptEntry
    | EffectsEntry
    | ReachEntry
    | ReceiptEntry
    | EndEntry
    | StreamedEntry
)


@dataclass(frozen=True, slots=True)
class UnknownEntry:
    """An entry that is no part of the conversation, of a kind or a shape that this version does not know."""


JournalEntry: TypeAlias = OwnEntry | StoredEvent | UnknownEntry
"""What an entry holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMarks:
    """What an entry says of its turn, besides what it holds: the `step` that it is the first of, if it is.

    The first entry of a turn has the kind of the event that `begins` it, the turn's policy, what was `said` in it,
    where its own text is another, and the `traceparent` that it came with. A message has the id under which it waited,
    and where it is from.
    """

    step: int | None = field(default=None, metadata=IF_SET)
    begins: str = field(default="", metadata=IF_SET)
    policy: Json | None = field(default=None, metadata=IF_SET)
    said: str | None = field(default=None, metadata=IF_SET)
    trace: str = field(default="", metadata=IF_SET)
    message_id: str = field(default="", metadata=IF_SET)
    origin: str | None = field(default=None, metadata=IF_SET)


def read_entry(entry: Entry) -> JournalEntry:
    """Return what an entry holds. It is read once.

    Raises:
        Misfit: it is part of what the model reads, and has another shape: others may edit the state file.
    """
    if entry.held is None:
        _hold(entry, _read(entry))
    held: JournalEntry = entry.held
    return held


def read_as(kind: type[AnyEntry], entry: Entry) -> AnyEntry | None:
    """Return what an entry holds if it is of this kind."""
    if _kind_of(entry) is not kind:
        return None
    journal_entry = read_entry(entry)
    return journal_entry if isinstance(journal_entry, kind) else None


def read_all(kind: type[AnyEntry], entries: Iterable[Entry]) -> Iterator[tuple[Entry, AnyEntry]]:
    """Yield the entries of one kind, each with what it holds."""
    for entry in entries:
        journal_entry = read_as(kind, entry)
        if journal_entry is not None:
            yield entry, journal_entry


def text_of(entry: Entry) -> str:
    """Return the text that an entry holds for a reader, empty if it has none."""
    match read_entry(entry):
        case MessageEntry(text=text) | NoticeEntry(text=text) | ReplyEntry(text=text):
            return text
        case CallAnswered(text=text) | SummaryEntry(text=text) | ClientEntry(text=text):
            return text
        case EndEntry(text=text) | StreamedEntry(text=text):
            return text
        case _:
            return ""


def user(text: str, speaker: str = "", pictures: Sequence[Picture] = ()) -> Entry:
    """Return the entry of a user's message, or of another agent's, which the model reads as a user message.

    The text has the captions of the pictures already.
    """
    return write_entry(MessageEntry(text=text, speaker=speaker, pictures=tuple(pictures)))


def notice(text: str) -> Entry:
    """Return the entry of a notice from the program to the model."""
    return write_entry(NoticeEntry(text=text))


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
    started = CallStarted(call_id=call.id, name=call.name, version=version, arguments=arguments)
    return write_entry(started)


def own_arguments(call: Call, asked: str | None) -> str:
    """Return the arguments of a call for its entry: none if they are as `asked` in the model's reply."""
    return "" if asked in (None, call.arguments) else call.arguments


def answer_to(
    call: Call, text: str, outcome: str, seconds: float = 0.0, detail: Json | None = None
) -> CallAnswered:
    """Return what the entry of a call's answer holds."""
    return CallAnswered(
        call_id=call.id,
        name=call.name,
        text=text,
        outcome=outcome,
        seconds=round(seconds, 6),
        detail=detail or {},
    )


def receipt_entry(receipt: Receipt, **end: Any) -> Entry:  # Any: a field of the entry
    """Return the entry of a whole receipt; `end` has what else the turn's end tells and no entry implies."""
    return write_entry(ReceiptEntry(made=receipt.to_json(), **end))


def facts_entry(made: Made) -> Entry:
    """Return the entry that records these effects."""
    return write_entry(EffectsEntry(made=made))


def chars_of(entry: Entry) -> int:
    """Return the length of the whole text if an entry has only its beginning, otherwise 0."""
    chars: int = getattr(read_entry(entry), "chars", 0)  # only a `PagedEntry` has them
    return chars


def read_marks(entry: Entry) -> TurnMarks:
    """Return what an entry says of its turn."""
    return value_of(TurnMarks, entry.payload) or TurnMarks()


def write_entry(journal_entry: OwnEntry | StoredEvent) -> Entry:
    """Return the entry that holds this."""
    if isinstance(journal_entry, StoredEvent):
        return Entry(journal_entry.type, stored_fields(journal_entry))
    payload = payload_of(journal_entry)
    entry = Entry(journal_entry.kind, payload)
    if entry.payload is payload:  # otherwise half characters in its texts were replaced
        _hold(entry, journal_entry)
    return entry


def mark(entry: Entry, marks: TurnMarks) -> Entry:
    """Return an entry that says this of its turn, too."""
    marked = replace(entry, payload=entry.payload | payload_of(marks))
    _hold(marked, entry.held)
    return marked


def _hold(entry: Entry, journal_entry: JournalEntry | None) -> None:
    object.__setattr__(entry, "held", journal_entry)


def _kind_of(entry: Entry) -> type["OwnEntry | StoredEvent"] | None:
    if not _KINDS:
        _KINDS.update({kind.kind: kind for kind in get_args(OwnEntry)})
        _KINDS.update(STORED_EVENTS)
    return _KINDS.get(entry.kind)


def _read(entry: Entry) -> JournalEntry:
    kind = _kind_of(entry)
    if kind is None:
        return UnknownEntry()
    if entry.kind in STORED_EVENTS:
        return _read_event(kind, entry)
    value = value_of(kind, entry.payload)
    if value is None and issubclass(kind, ShownEntry):
        raise Misfit(
            f"An entry of the conversation (`{entry.kind}`) is not what this program writes.",
            fix=FIX,
        )
    return value or UnknownEntry()


def _read_event(kind: type["OwnEntry | StoredEvent"], entry: Entry) -> JournalEntry:
    try:
        event: StoredEvent = from_json(kind, entry.payload)
    except (KeyError, TypeError, ValueError):  # others may have written it
        return UnknownEntry()
    return event

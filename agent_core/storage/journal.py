"""What the entries of a journal hold: one class for each kind, with the one way to read an entry and to write one.

A field's name is its key in the stored payload. A field without a default was written by every version; another one
has its default where it is missing or null, because an earlier version did not write it. `IF_SET` fields are left out
while they have their default. Keys that no class knows are left alone. The events that nothing else implies
(`StoredEvent`) are entries, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field
from types import UnionType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, get_args, get_origin

from agent_core.base.events import StoredEvent, stored_fields
from agent_core.base.messages import Call
from agent_core.base.pictures import Picture
from agent_core.base.receipt import Made
from agent_core.base.records import (
    IF_SET,
    MISSING,
    dataclass,
    field,
    fields,
    from_json,
    replace,
    to_json,
)

from .subject import FIX, Entry, Misfit

AnyOwnEntry = TypeVar("AnyOwnEntry", bound="OwnEntry")
T = TypeVar("T")
Json: TypeAlias = dict[str, Any]  # Any: JSON

STORED_EVENTS: Final[Mapping[str, type[StoredEvent]]] = {
    kind.type: kind for kind in get_args(StoredEvent)
}
"""The events that are entries, by the kind of the entry."""
_LARGEST: Final = (1 << 63) - 1  # that every database and printer takes
_KINDS: Final[dict[str, type["OwnEntry"]]] = {}  # both are filled when they are needed
_PARTS: Final[dict[object, tuple["_Part", ...]]] = {}  # of a class


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEntry:
    """The start of a call, written before it runs: from then on it may have effects.

    Built-in functions have no `version`. `arguments` are stored where they are not as in the reply. A `client` has to
    answer a call of a function of its own.
    """

    kind: ClassVar[str] = "call"
    id: str
    name: str = ""
    version: str | None = None
    arguments: str = field(default="", metadata=IF_SET)
    client: bool = field(default=False, metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEntry:
    """The answer to a call. `detail` is the JSON of a verdict or an outcome; the rest is as in the start and a message.

    A large value that was returned counts in `chars`, and has no `whole`.
    """

    kind: ClassVar[str] = "result"
    call_id: str
    name: str
    text: str
    outcome: str = ""
    seconds: float = 0.0
    detail: Json = field(default_factory=dict)
    whole: str = field(default="", metadata=IF_SET)
    chars: int = field(default=0, metadata=IF_SET)
    arguments: str = field(default="", metadata=IF_SET)
    pictures: tuple[Picture, ...] = field(default=(), metadata=IF_SET)


PagedEntry: TypeAlias = MessageEntry | NoticeEntry | ReplyEntry | AnswerEntry
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


ShownEntry: TypeAlias = PagedEntry | CallEntry | SummaryEntry
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
class UsageEntry:
    """The tokens of a request to a model. One for a step has the model's `context_limit`, one of a helper has 0."""

    kind: ClassVar[str] = "usage"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    context_limit: int | None = field(default=None, metadata=IF_SET)


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
class SpeakerEntry:
    """Who was chosen to speak in a group, by which rule, and why."""

    kind: ClassVar[str] = "speaker"
    name: str
    rule: str = ""
    reason: str = ""
    passed: tuple[str, ...] = field(default=(), metadata=IF_SET)
    asked_model: bool = False


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
    | CallEntry
    | AnswerEntry
    | SummaryEntry
    | RequestEntry
    | UsageEntry
    | ClientEntry
    | ParkedEntry
    | SpeakerEntry
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


def read_as(kind: type[AnyOwnEntry], entry: Entry) -> AnyOwnEntry | None:
    """Return what an entry holds if it is of this kind."""
    if entry.kind != kind.kind:
        return None
    journal_entry = read_entry(entry)
    return journal_entry if isinstance(journal_entry, kind) else None


def read_all(
    kind: type[AnyOwnEntry], entries: Iterable[Entry]
) -> Iterator[tuple[Entry, AnyOwnEntry]]:
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
        case AnswerEntry(text=text) | SummaryEntry(text=text) | ClientEntry(text=text):
            return text
        case EndEntry(text=text) | StreamedEntry(text=text):
            return text
        case _:
            return ""


def chars_of(entry: Entry) -> int:
    """Return the length of the whole text if an entry has only its beginning, otherwise 0."""
    journal_entry = read_entry(entry)
    return journal_entry.chars if isinstance(journal_entry, PagedEntry) else 0


def read_marks(entry: Entry) -> TurnMarks:
    """Return what an entry says of its turn."""
    return _value_of(TurnMarks, entry.payload) or TurnMarks()


def write_entry(journal_entry: OwnEntry | StoredEvent) -> Entry:
    """Return the entry that holds this."""
    if isinstance(journal_entry, StoredEvent):
        return Entry(journal_entry.type, stored_fields(journal_entry))
    payload = _payload_of(journal_entry)
    entry = Entry(journal_entry.kind, payload)
    if entry.payload is payload:  # otherwise half characters in its texts were replaced
        _hold(entry, journal_entry)
    return entry


def mark(entry: Entry, marks: TurnMarks) -> Entry:
    """Return an entry that says this of its turn, too."""
    marked = replace(entry, payload=entry.payload | _payload_of(marks))
    _hold(marked, entry.held)
    return marked


def _hold(entry: Entry, journal_entry: JournalEntry | None) -> None:
    object.__setattr__(entry, "held", journal_entry)


def _read(entry: Entry) -> JournalEntry:
    if not _KINDS:
        _KINDS.update({kind.kind: kind for kind in get_args(OwnEntry)})
    kind = _KINDS.get(entry.kind)
    if kind is None:
        return _read_event(entry)
    value = _value_of(kind, entry.payload)
    if value is None and issubclass(kind, ShownEntry):
        raise Misfit(
            f"An entry of the conversation (`{entry.kind}`) is not what this program writes.",
            fix=FIX,
        )
    return value or UnknownEntry()


def _read_event(entry: Entry) -> JournalEntry:
    kind = STORED_EVENTS.get(entry.kind)
    if kind is None:
        return UnknownEntry()
    try:
        event: StoredEvent = from_json(kind, entry.payload)
    except (KeyError, TypeError, ValueError):  # others may have written it
        return UnknownEntry()
    return event


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a class: its key, the types of JSON that it takes as they are, and the class of a tuple's items."""

    name: str
    default: object
    is_needed: bool
    is_left_out: bool
    types: tuple[object, ...]
    items: Any  # Any: a class

    @classmethod
    def of(cls, one: Field[Any]) -> "_Part":
        """Return the part for a field."""
        types = tuple(get_origin(kind) or kind for kind in _types_of(one.type))
        items = None
        if types == (tuple,):
            types = ()
            items = get_args(one.type)[0]
        elif float in types:
            types = (float, int)
        is_needed = one.default is MISSING and one.default_factory is MISSING
        is_left_out = bool(one.metadata.get("if_set"))
        return cls(one.name, one.default, is_needed, is_left_out, types, get_origin(items) or items)

    def items_in(self, value: object) -> tuple[object, ...] | None:
        """Return the items of a tuple; None if this is none, or an item is of another class."""
        if self.items is None or not isinstance(value, list):
            return None
        if self.items in (str, dict):
            return tuple(value) if all(type(item) is self.items for item in value) else None
        items: list[object] = []
        for item in value:
            read = _value_of(self.items, item) if isinstance(item, dict) else None
            if read is None:
                return None
            items.append(read)
        return tuple(items)


def _types_of(kind: Any) -> tuple[Any, ...]:  # Any: a type
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


def _parts_of(kind: Any) -> tuple[_Part, ...]:  # Any: a class with fields
    parts = _PARTS.get(kind)
    if parts is None:
        parts = _PARTS[kind] = tuple(map(_Part.of, fields(kind)))
    return parts


def _value_of(kind: type[T], payload: Json) -> T | None:
    """Return the value of a class in JSON; None if that has another shape."""
    values: Json = {}
    for part in _parts_of(kind):
        value = payload.get(part.name)
        if type(value) is int and abs(value) > _LARGEST:
            return None
        if value is not None and type(value) not in part.types:
            value = part.items_in(value)
            if value is None:
                return None
        if value is not None:
            values[part.name] = value
        elif part.is_needed:
            return None
    return kind(**values)


def _payload_of(holder: OwnEntry | TurnMarks) -> Json:
    payload: Json = {}
    for part in _parts_of(type(holder)):
        value = getattr(holder, part.name)
        if not part.is_left_out or value != part.default:
            payload[part.name] = value if part.items is None else to_json(value)
    return payload

"""The document of an agent: its schema and limits, and its conversion from and to a stored agent. Nothing in it is run.

The published JSON Schema (`docs/agent-file.schema.json`) is generated from these classes. What the schema cannot say is
checked here: unique names, ordered histories, one answer per call. Errors have a path and what was expected there.

The process that parses files sends agents to the host as small items, which are made and assembled here, too.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
)

from agent_core.base.problem import misfit_sentence
from agent_core.base.records import dataclass, fields, replace
from agent_core.base.untrusted import one_line
from agent_core.context.history import AUTHOR
from agent_core.memory.classes import from_row
from agent_core.storage import (
    LARGEST_NUMBER,
    MAIN,
    NAME_CHARS,
    BlockChange,
    BlockRow,
    DocumentRow,
    Entry,
    EntryText,
    Made,
    Misfit,
    PassageRow,
    SectionRow,
    WholeAgent,
    WholeBlock,
    WholeConversation,
    WholeEvent,
    WholeTurn,
    dump,
)
from agent_core.storage.journal import SummaryEntry, read_as, read_entry
from sandbox.wire.strict_json import read_json

from .report import AgentFileError, AgentReport
from .text import is_packed, once, unpacked

MOST_AGENTS: Final = 100
MOST_BLOCKS: Final = 2_000
MOST_CHANGES: Final = 100_000  # in all blocks together
MOST_SECTIONS: Final = 1_000
MOST_TURNS: Final = 100_000
MOST_EVENTS: Final = 100_000  # in all turns together
MOST_ENTRIES: Final = 400_000  # in all turns together
MOST_CALLS: Final = 256  # of one reply; a live one has up to 128
MOST_WAITING: Final = 10_000
CONVERSATION_LIMIT: Final = 10_000
MOST_PASSAGES: Final = 400_000
MOST_DOCUMENTS: Final = 10_000
MOST_TEXTS: Final = 100_000
MOST_PINS: Final = 1_000
MOST_LINES: Final = 2_000  # in a block with a list as its value
MOST_TAGS: Final = 100  # of one passage
MOST_LINKS: Final = 10_000  # from an agent to shared blocks or files
LONGEST_PASSAGE: Final = 1_000_000  # characters; the text index reads one in a single step
LONGEST_SETTINGS: Final = 16_000  # characters of JSON

_TIMES: Final = 4
_SPARE: Final = 64 << 20


@dataclass(slots=True)
class Room:
    """The remaining number of characters that parts with several references may produce."""

    left: int

    @classmethod
    def of(cls, size: int) -> "Room":
        """Return the room for a file of `size` characters: a multiple of it, plus a fixed amount."""
        return cls(_TIMES * size + _SPARE)

    def take(self, where: str, chars: int) -> None:
        """Use up this number of characters.

        Raises:
            AgentFileError: there are not enough left.
        """
        self.left -= chars
        if self.left < 0:
            raise AgentFileError(
                where,
                "expected a file that repeats its parts less often: it produces too much text",
            )


def at_most(where: str, most: int, count: int) -> None:
    """Raise `AgentFileError` if a count exceeds the limit."""
    if count > most:
        raise AgentFileError(where, f"expected at most {most} items, got {count}")


FORMAT = "knapper-agent"
VERSION = 1
LONGEST = 16 << 20
"""The maximum number of characters in one text."""
SHAPED = ("user", "notice", "assistant", "call", "result", "summary")
"""The kinds of entries with a payload in a fixed format."""


class FilePart(BaseModel):
    """A part of the file: unknown fields are rejected, and no value is converted."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class EntryPayload(BaseModel):
    """The payload of an entry; it may hold more than the program relies on."""

    model_config = ConfigDict(
        extra="allow", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


Text: TypeAlias = Annotated[str, Field(max_length=LONGEST)]
Piece: TypeAlias = Annotated[str, Field(max_length=LONGEST_PASSAGE)]
Short: TypeAlias = Annotated[str, Field(max_length=1000)]
Id: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,100}$")]
Hash: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Agents: TypeAlias = Annotated[
    list[Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9_-]{1,64})$")]],
    Field(max_length=MOST_PINS, fail_fast=True, description="Names of agents, or * for all."),
]
Time: TypeAlias = Annotated[float, Field(ge=0, le=1e11, description="Seconds since 1970.")]
Count: TypeAlias = Annotated[int, Field(ge=0, le=1 << 40)]
Place: TypeAlias = Annotated[int, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Payload: TypeAlias = dict[str, Any]  # Any: JSON
_CONVERSATION: Final = r"^[0-9a-z]{1,64}$"
ConversationId: TypeAlias = Annotated[str, Field(pattern=_CONVERSATION)]
Value: TypeAlias = Text | Annotated[list[Text], Field(max_length=MOST_LINES, fail_fast=True)]


def _form(pattern: str) -> Any:  # Any: as pydantic has it
    """Return the field of a text of this form, by the rules of Python's `re`, where `\\w` has more than Rust's."""
    return Field(pattern=re.compile(rf"^{pattern}$(?!\n)"))


def _json_object(text: str) -> str:
    if text and not is_packed(text):
        raise ValueError("expected the JSON of an object")
    return text


class SettingsPayload(EntryPayload):
    """The settings of an agent: its preset, its memory class, and until when it has no timed heartbeat."""

    preset: Name = ""
    memory_class: Short = ""
    paused_until: Time = 0.0


class AgentPart(FilePart):
    """The identity of an agent: its name, its setup, and the functions that are always shown to it."""

    name: Name
    settings: SettingsPayload | None = Field(None, description="None: what the workspace says.")
    pins: Annotated[list[Name], Field(max_length=MOST_PINS, fail_fast=True)] = []


class ChangePart(FilePart):
    """A line of a block's history: the new value, the action, by whom, in which turn."""

    version: Annotated[int, Field(ge=1, le=1 << 40)]
    value: Value
    action: Annotated[Text, Field(alias="what")]
    by: Short
    agent: Short
    turn: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{0,100}$")]
    at: Time


class BlockPart(FilePart):
    """A block as it is, with its history; one that is not attached belonged to the agent earlier.

    `readers` and `writers` are the other agents that may have it, if it is shared.
    """

    id: Id
    label: Annotated[str, _form(r"[\w./-]{1,64}")]
    value: Value
    limit: Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]
    description: Text = ""
    read_only: bool = False
    shared: bool = False
    readers: Agents = ["*"]
    writers: Agents = ["*"]
    attached: bool = True
    position: Place = 0
    version: Annotated[int, Field(ge=1, le=1 << 40)]
    edited: Time
    history: Annotated[list[ChangePart], Field(max_length=MOST_CHANGES, fail_fast=True)]


class SectionPart(FilePart):
    """A section of the system message that is the agent's own."""

    name: Annotated[str, _form(r"[\w.-]{1,64}")]
    position: Place
    text: Text
    limit: Count
    edited: Time


class TextPayload(EntryPayload):
    """A text; for a long one its beginning, its total length `chars`, and the hash under which the `whole` is kept."""

    text: Text
    chars: Count = 0
    whole: Hash = ""


class HeardPayload(TextPayload):
    """A message or notice; `packed` is the same text as a model of the MemGPT style reads it."""

    packed: Annotated[Text, AfterValidator(_json_object)] = ""


class CallPart(EntryPayload):
    """A call as the model asked for it; `arguments` is its JSON text."""

    id: Short
    name: Short
    arguments: Text


class ReplyPayload(TextPayload):
    """A reply from the model."""

    calls: Annotated[list[CallPart], Field(max_length=MOST_CALLS, fail_fast=True)]
    thought: Text = ""


class Started(EntryPayload):
    """A call that is about to run."""

    id: Short
    name: Short


class Answered(TextPayload):
    """The answer to a call."""

    call_id: Short
    name: Short


class KeptPart(EntryPayload):
    """A sentence that a summary kept, with its source: `user`, agents, a function's name with `()`, or none."""

    by: Annotated[str, _form(AUTHOR.pattern)]
    text: Text


class Summed(TextPayload):
    """A summary: it replaces so many messages, up to the entry with this number, counted through the file from 1.

    With a model's `text` it may have sentences that were kept, and what the user `asked` in the turn that goes on.
    """

    covers: Count
    upto: Count
    said: Annotated[list[KeptPart], Field(fail_fast=True)] = []
    asked: Text = ""


class EntryPart(FilePart):
    """A line of a turn's journal."""

    at: Time


class ToldPart(EntryPart):
    """A journal entry for a message from the user, or from the program to the model."""

    kind: Literal["user", "notice"]
    payload: HeardPayload


class ReplyPart(EntryPart):
    """A journal entry for a reply from the model."""

    kind: Literal["assistant"]
    payload: ReplyPayload


class StartedPart(EntryPart):
    """A journal entry for a call that began."""

    kind: Literal["call"]
    payload: Started


class AnsweredPart(EntryPart):
    """A journal entry for a call that was answered."""

    kind: Literal["result"]
    payload: Answered


class SummedPart(EntryPart):
    """A journal entry for a summary of the earlier conversation."""

    kind: Literal["summary"]
    payload: Summed


class OtherPart(EntryPart):
    """An entry for the record only, such as what a request was made of."""

    model_config = ConfigDict(
        json_schema_extra={"not": {"properties": {"kind": {"enum": list(SHAPED)}}}}
    )

    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    payload: Payload


def _tag(entry: Any) -> str:  # Any: whatever the file contains
    kind = entry.get("kind") if isinstance(entry, dict) else getattr(entry, "kind", None)
    if kind in ("user", "notice"):
        return "told"
    return kind if isinstance(kind, str) and kind in SHAPED else "other"


AnyEntry: TypeAlias = Annotated[
    Annotated[ToldPart, Tag("told")]
    | Annotated[ReplyPart, Tag("assistant")]
    | Annotated[StartedPart, Tag("call")]
    | Annotated[AnsweredPart, Tag("result")]
    | Annotated[SummedPart, Tag("summary")]
    | Annotated[OtherPart, Tag("other")],
    Discriminator(_tag),
]


class EventSays(EntryPayload):
    """The payload of an event: a message's text, a heartbeat's reason, when the user was there before a login."""

    text: Text = ""
    reason: Text = ""
    last: Time | None = None


class EventPart(FilePart):
    """An event for the agent: a message, a heartbeat; without `due` it was to be handled at once."""

    kind: Short
    payload: EventSays
    at: Time
    key: Short | None = None
    due: Time | None = None


class TurnPart(FilePart):
    """A turn: its events and its journal; a hidden turn is out of the context and stays on record."""

    id: Id
    state: Annotated[str, Field(pattern=r"^[a-z_-]{1,40}$")]
    started: Time
    ended: Time | None = None
    hidden: bool = False
    conversation: ConversationId = MAIN
    events: Annotated[list[EventPart], Field(min_length=1, fail_fast=True)]
    entries: Annotated[list[AnyEntry], Field(max_length=MOST_ENTRIES, fail_fast=True)]


class OriginPart(FilePart):
    """The window through which a conversation began, and whose it is."""

    window: Short = ""
    token: Short = ""
    user: Short = ""


class ConversationPart(FilePart):
    """A conversation besides the main one, which has a row if it was renamed.

    A branch has the turns of its `parent` up to the entry with the number `upto`, counted through the file from 1, but
    those that were `left_out`.
    """

    id: ConversationId
    name: Annotated[str, Field(max_length=NAME_CHARS)] = ""
    renamed: bool = False
    began: Time
    origin: OriginPart = OriginPart()
    parent: Annotated[str, Field(pattern=rf"^$|{_CONVERSATION}")] = ""
    upto: Count = 0
    left_out: Annotated[list[Id], Field(max_length=MOST_TURNS, fail_fast=True)] = []
    deleted: Time | None = None


class PassagePart(FilePart):
    """A piece of text in archival memory; `words` is what its index reads, recomputed if it is missing."""

    id: Id
    text: Piece
    at: Time
    words: Piece | None = None
    tags: Annotated[list[Short], Field(max_length=MOST_TAGS, fail_fast=True)] = []
    source: Short = ""
    place: Short = ""
    document: Short = ""
    n: Count = 0


class DocumentPart(FilePart):
    """A source that was read, or is being read: `done` of `total` passages are stored."""

    hash: Short
    name: Text
    kind: Short
    at: Time
    done: Count = 0
    total: Count = 0
    complete: bool = False


class AgentFile(FilePart):
    """A complete agent: its settings, memory, conversation, passages and sources."""

    format: Literal["knapper-agent"]
    version: Literal[1]
    agent: AgentPart
    blocks: Annotated[list[BlockPart], Field(max_length=MOST_BLOCKS, fail_fast=True)] = []
    sections: Annotated[list[SectionPart], Field(max_length=MOST_SECTIONS, fail_fast=True)] = []
    turns: Annotated[list[TurnPart], Field(max_length=MOST_TURNS, fail_fast=True)] = []
    conversations: Annotated[
        list[ConversationPart], Field(max_length=CONVERSATION_LIMIT, fail_fast=True)
    ] = []
    inbox: Annotated[list[EventPart], Field(max_length=MOST_WAITING, fail_fast=True)] = Field(
        [], description="What came and was not taken up yet."
    )
    passages: Annotated[list[PassagePart], Field(max_length=MOST_PASSAGES, fail_fast=True)] = []
    documents: Annotated[list[DocumentPart], Field(max_length=MOST_DOCUMENTS, fail_fast=True)] = []
    texts: Annotated[dict[Hash, Text], Field(max_length=MOST_TEXTS)] = Field(
        {}, description="Texts that entries name by their SHA-256."
    )


def check(file: AgentFile) -> None:
    """Raise an error for the first rule that the file violates."""
    once("blocks", "id", [block.id for block in file.blocks])
    once("blocks", "label", [block.label for block in file.blocks if block.attached])
    once("sections", "name", [section.name for section in file.sections])
    once("turns", "id", [turn.id for turn in file.turns])
    once("conversations", "id", [row.id for row in file.conversations])
    once("passages", "id", [passage.id for passage in file.passages])
    once("documents", "hash", [document.hash for document in file.documents])
    keys = [event.key for turn in file.turns for event in turn.events] + [
        event.key for event in file.inbox
    ]
    once("events", "key", [key for key in keys if key is not None])
    at_most("conversations", MOST_TURNS, sum(len(row.left_out) for row in file.conversations))
    at_most("blocks", MOST_CHANGES, sum(len(block.history) for block in file.blocks))
    at_most("turns", MOST_EVENTS, sum(len(turn.events) for turn in file.turns))
    at_most("turns", MOST_ENTRIES, sum(len(turn.entries) for turn in file.turns))
    settings = file.agent.settings
    if settings and len(settings.model_dump_json()) > LONGEST_SETTINGS:
        raise AgentFileError(
            "agent.settings", f"expected at most {LONGEST_SETTINGS} characters of JSON"
        )
    for at, block in enumerate(file.blocks):
        where = f"blocks[{at}]"
        size = len(block.value if isinstance(block.value, str) else "\n".join(block.value))
        if size > block.limit:
            raise AgentFileError(
                f"{where}.value", f"expected at most {block.limit} characters, got {size}"
            )
        versions = [change.version for change in block.history]
        if versions != sorted(set(versions)):
            raise AgentFileError(f"{where}.history", "expected versions that rise")
        if not versions or versions[-1] != block.version:
            raise AgentFileError(
                f"{where}.history", f"expected its last line to be version {block.version}"
            )
        if block.history[-1].value != block.value:
            raise AgentFileError(
                f"{where}.history", "expected its last line to hold the block's value"
            )
    for name, text in file.texts.items():
        if sha256(text.encode()).hexdigest() != name:
            raise AgentFileError(f"texts.{name}", "expected the text that has this SHA-256")
    _turns(file)


def _conversations(file: AgentFile) -> dict[str, ConversationPart]:
    """Return the conversations by their ids; a parent comes before its branches.

    Raises:
        AgentFileError: a parent does not, or the main conversation has one.
    """
    known: dict[str, ConversationPart] = {}
    for at, row in enumerate(file.conversations):
        where = f"conversations[{at}]"
        if row.parent not in ("", MAIN, *known) or (row.id == MAIN and (row.parent or row.deleted)):
            raise AgentFileError(f"{where}.parent", "expected a conversation before this one")
        known[row.id] = row
    return known


def _turns(file: AgentFile) -> None:
    counted, handed = 0, set[str]()
    known = _conversations(file)
    last = {turn.conversation: at for at, turn in enumerate(file.turns)}
    waiting: dict[str, set[str]] = {}
    ends: dict[str, list[tuple[int, set[str]]]] = defaultdict(list)
    for at, turn in enumerate(file.turns):
        where = f"turns[{at}]"
        line = turn.conversation
        if line not in known and line != MAIN:
            raise AgentFileError(f"{where}.conversation", "expected one of the `conversations`")
        if turn.state == "open" and at != last[line]:
            raise AgentFileError(f"{where}.state", "expected only the last turn to be open")
        if (turn.state == "open") != (turn.ended is None):
            raise AgentFileError(
                f"{where}.ended", "expected a time for a turn that ended, and none for an open one"
            )
        row = known.get(line)
        if line not in waiting:
            if row is not None and row.upto > counted:
                raise AgentFileError(
                    f"{where}.conversation", "expected what it stands on before it"
                )
            before = ends[row.parent] if row is not None else []
            waiting[line] = next((left for end, left in before if row and end >= row.upto), set())
        left = _answers(where, turn, handed if turn.hidden else waiting[line])
        if not turn.hidden:
            waiting[line] = left
        handed |= left
        ends[line].append((counted + len(turn.entries), left))
        for n, entry in enumerate(turn.entries):
            counted += 1
            if isinstance(entry, SummedPart) and entry.payload.upto >= counted:
                raise AgentFileError(
                    f"{where}.entries[{n}].payload.upto", f"expected less than {counted}"
                )
            packed = (
                entry.payload.packed if isinstance(entry, ToldPart) and entry.kind == "user" else ""
            )
            if (
                packed and unpacked(packed).kind != "user_message"
            ):  # to a model, it is another kind of event
                raise AgentFileError(
                    f"{where}.entries[{n}].payload.packed", "expected the type `user_message`"
                )


def _answers(where: str, turn: TurnPart, waiting: set[str]) -> set[str]:
    """Return the calls that are open after a turn, of those `waiting` for a client before it and its own.

    Raises:
        AgentFileError: a call has no answer, because endpoints reject such requests.
    """
    open_calls, has_replied = {*waiting}, False
    for n, entry in enumerate(turn.entries):
        if isinstance(entry, AnsweredPart):
            if entry.payload.call_id not in open_calls:
                raise AgentFileError(
                    f"{where}.entries[{n}].payload.call_id", "expected a call that waits for it"
                )
            open_calls.discard(entry.payload.call_id)
        elif isinstance(entry, ReplyPart):
            if has_replied or not turn.hidden:  # a hidden turn may follow one that is hidden, too
                _require_answers(where, n, open_calls)
            call_ids = [call.id for call in entry.payload.calls]
            once(f"{where}.entries[{n}].payload.calls", "id", call_ids)
            open_calls, has_replied = set(call_ids), True
    if has_replied and turn.state not in (
        "open",
        "client_calls",
    ):  # a client answers in the next turn
        _require_answers(where, len(turn.entries), open_calls)
    return open_calls


def _require_answers(where: str, n: int, open_calls: set[str]) -> None:
    if open_calls:
        name = one_line(min(open_calls), 60)
        raise AgentFileError(
            f"{where}.entries", f"expected an answer of the call `{name}` before entry {n}"
        )


_TAGS = ("told", "assistant", "call", "result", "summary", "other")
_FORMS = ("constrained-str", "list[constrained-str]")


def path_of(place: Sequence[int | str]) -> str:
    """Return a position in the file, such as `turns[3].entries[0].kind`."""
    path = ""
    for at, part in enumerate(place):
        if isinstance(part, int):
            path += f"[{part}]"
        # The other parts name a shape that was tried instead of a position in the file.
        elif part not in _FORMS and not (part in _TAGS and at > 1 and place[at - 2] == "entries"):
            path += f".{one_line(part, 60)}" if path else one_line(part, 60)
    return path


Words = Callable[[str, float | None, Sequence[str]], str]
"""Returns the index text of a passage, from its text, its time (None for a piece of a source) and its tags."""


def agent_of(raw: dict[str, Any], words: Words) -> WholeAgent:  # Any: JSON
    """Convert a document to an agent.

    Raises:
        AgentFileError: the document is invalid; it has the first error and its place.
    """
    try:
        file = AgentFile.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=True)[0]
        raise AgentFileError(path_of(first["loc"]), misfit_sentence(first)) from error
    check(file)
    name = file.agent.name
    turns: list[WholeTurn] = []
    for at, turn in enumerate(file.turns):
        entries: list[Entry] = []
        for n, part in enumerate(turn.entries):
            payload = (
                part.payload
                if isinstance(part.payload, dict)
                else part.payload.model_dump(exclude_unset=True)
            )
            _require_readable(f"turns[{at}].entries[{n}].payload", part.kind, payload)
            entries.append(Entry(part.kind, payload, at=part.at))
        events = tuple(_event(event) for event in turn.events)
        turns.append(WholeTurn(**(_values(turn) | {"events": events, "entries": tuple(entries)})))
    conversations = [
        WholeConversation(**(_values(row) | {"origin": _origin_text(row.origin)}))
        for row in file.conversations
    ]
    blocks: list[WholeBlock] = []
    for at, block in enumerate(file.blocks):
        values = _values(block)
        access = {name: values.pop(name) for name in ("attached", "readers", "writers")}
        history = tuple(
            BlockChange(block.id, **_values(change)) for change in values.pop("history")
        )
        row = BlockRow(**values)
        try:
            from_row(row)
        except Misfit as error:
            raise AgentFileError(f"blocks[{at}]", error.message.rstrip(".")) from error
        blocks.append(WholeBlock(row, history, **access))
    passages: list[PassageRow] = []
    for passage in file.passages:
        indexed = passage.words
        if indexed is None:
            indexed = words(passage.text, None if passage.document else passage.at, passage.tags)
        passages.append(PassageRow(agent=name, **(_values(passage) | {"words": indexed})))
    return WholeAgent(
        name=name,
        settings=file.agent.settings.model_dump(exclude_unset=True)
        if file.agent.settings
        else None,
        turns=tuple(turns),
        inbox=tuple(_event(event) for event in file.inbox),
        blocks=tuple(blocks),
        sections=tuple(SectionRow(**_values(section)) for section in file.sections),
        passages=tuple(passages),
        documents=tuple(
            DocumentRow(agent=name, **_values(document)) for document in file.documents
        ),
        pins=tuple(sorted(file.agent.pins)),
        texts=dict(file.texts),
        conversations=tuple(conversations),
    )


def _origin_text(origin: OriginPart) -> str:
    told = {name: text for name, text in origin if text}
    return dump(told) if told else ""


def _require_readable(where: str, kind: str, payload: Payload) -> None:
    """Require the shape in which an entry is read from the store: there, another one is damage.

    Raises:
        AgentFileError: the payload has another.
    """
    try:
        read_entry(Entry(kind, payload))
    except Misfit as error:
        raise AgentFileError(
            where, f"expected the fields of an entry of the kind `{kind}`"
        ) from error


def _values(part: FilePart) -> dict[str, Any]:  # Any: JSON
    """Return the fields of a part as a row has them, with tuples instead of lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in part}


def _event(event: EventPart) -> WholeEvent:
    return WholeEvent(
        **(_values(event) | {"payload": event.payload.model_dump(exclude_unset=True)})
    )


Json = dict[str, Any]  # Any: JSON


def document_of(whole: WholeAgent) -> Json:
    """Return the document of an agent."""
    blocks, turns = list[Json](), list[Json]()
    for block in whole.blocks:
        access = {
            "attached": block.attached,
            "readers": [*block.readers],
            "writers": [*block.writers],
        }
        history = [_part(ChangePart, change) for change in block.history]
        blocks.append(
            _part(BlockPart, block.row, history=history, limit=from_row(block.row).limit, **access)
        )
    for turn in whole.turns:
        events = [_event_part(event) for event in turn.events]
        entries = [_part(OtherPart, entry) for entry in turn.entries]
        part = _part(TurnPart, turn, events=events, entries=entries)
        if turn.conversation == MAIN:  # as in files of before
            del part["conversation"]
        turns.append(part)
    others = [
        _part(ConversationPart, row, origin=read_json(row.origin) if row.origin else {})
        for row in whole.conversations
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "agent": _part(AgentPart, whole, pins=sorted(whole.pins)),
        "blocks": blocks,
        "sections": [_part(SectionPart, section) for section in whole.sections],
        "turns": turns,
        **({"conversations": others} if others else {}),
        "inbox": [_event_part(event) for event in whole.inbox],
        "passages": [_part(PassagePart, passage) for passage in whole.passages],
        "documents": [_part(DocumentPart, document) for document in whole.documents],
        "texts": dict(sorted(whole.texts.items())),
    }


def _part(part_class: type[FilePart], row: object, **others: object) -> Json:
    """Return a part of the document: the `others`, and the remaining fields as the row has them."""
    part = dict(others)
    for key, name in _names(part_class):
        if key not in part:
            value = getattr(row, name)
            part[key] = [*value] if isinstance(value, tuple) else value
    return part


@cache
def _names(part_class: type[FilePart]) -> tuple[tuple[str, str], ...]:
    """Return the key of each field in the file, with its name in the rows."""
    return tuple((field.alias or name, name) for name, field in part_class.model_fields.items())


def _event_part(event: WholeEvent) -> Json:
    return {key: value for key, value in _part(EventPart, event).items() if value is not None}


Item = tuple[str, Any]  # Any: JSON
"""A small part of an agent with its kind, as the process that parses files sends it to the host."""


@dataclass(frozen=True, slots=True)
class _Head:
    """An agent without its parts, and the counts of its report; it is sent last."""

    name: str
    settings: dict[str, Any] | None  # Any: JSON
    pins: tuple[str, ...]
    kind: str
    mapped: tuple[tuple[str, str, int], ...]
    left: tuple[tuple[str, str, int], ...]
    inbox: tuple[dict[str, str], ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A journal entry with its payload as JSON text; `upto` of a summary is a separate field."""

    kind: str
    text: str
    at: float
    upto: int | None


@dataclass(frozen=True, slots=True)
class _KeptText:
    """A text that entries refer to by hash."""

    hash: str
    text: str


_SHAPES: Final[dict[str, TypeAdapter[Any]]] = {
    "change": TypeAdapter(BlockChange),
    "block": TypeAdapter(WholeBlock),
    "section": TypeAdapter(SectionRow),
    "event": TypeAdapter(WholeEvent),
    "entry": TypeAdapter(_Line),
    "turn": TypeAdapter(WholeTurn),
    "conversation": TypeAdapter(WholeConversation),
    "waiting": TypeAdapter(WholeEvent),
    "passage": TypeAdapter(PassageRow),
    "document": TypeAdapter(DocumentRow),
    "text": TypeAdapter(_KeptText),
    "agent": TypeAdapter(_Head),
}


def items_of(whole: WholeAgent, report: AgentReport) -> Iterator[Item]:
    """Yield an agent as items: parts of an item come before it, and the head comes last."""
    for block in whole.blocks:
        yield from (_item("change", change) for change in block.history)
        yield _item("block", replace(block, history=()))
    for turn in whole.turns:
        yield from (_item("event", _as_text(event)) for event in turn.events)
        for entry in turn.entries:
            payload = entry.payload
            summary = read_as(SummaryEntry, entry)
            if summary is not None:
                payload = {key: value for key, value in payload.items() if key != "upto"}
            upto = summary.upto if summary is not None else None
            yield _item("entry", _Line(entry.kind, dump(payload), entry.at, upto))
        yield _item("turn", replace(turn, events=(), entries=()))
    yield from (_item("waiting", _as_text(event)) for event in whole.inbox)
    for name, parts in (
        ("section", whole.sections),
        ("conversation", whole.conversations),
        ("passage", whole.passages),
        ("document", whole.documents),
    ):
        yield from (_item(name, part) for part in parts)
    yield from (_item("text", _KeptText(hash, text)) for hash, text in whole.texts.items())
    mapped, left = (
        tuple((*key, n) for key, n in counted.items()) for counted in (report.mapped, report.left)
    )
    told = (report.kind, mapped, left, tuple(report.inbox), report.waiting)
    yield _item("agent", _Head(whole.name, whole.settings, whole.pins, *told))


def _item(name: str, part: object) -> Item:
    return name, _SHAPES[name].dump_python(part, mode="json")


def _as_text(event: WholeEvent) -> WholeEvent:
    return replace(event, payload=dump(event.payload))


class Arriving:
    """A builder of agents from items; an agent is complete with its head."""

    def __init__(self) -> None:
        self.agents: list[tuple[WholeAgent, AgentReport]] = []
        self.refused: AgentFileError | None = None
        self._parts: defaultdict[str, list[Any]] = defaultdict(
            list
        )  # Any: a part of one of the shapes

    def take(self, item: Any) -> None:  # Any: JSON
        """Process the next item.

        Raises:
            ValueError: it is not a valid item.
        """
        name, value = item
        if name == "refused":
            where, what = map(str, value)
            self.refused = AgentFileError(where, what)
            return
        part = _SHAPES[name].validate_python(value)
        match part:
            case WholeBlock():
                part = replace(part, history=self._those("change"))
            case WholeTurn():
                part = _columns(
                    replace(part, events=self._those("event"), entries=self._those("entry"))
                )
            case WholeEvent() | _Line() | PassageRow():
                part = _columns(part)
            case _Head():
                mapped, left = (
                    Counter({(a, b): n for a, b, n in lines}) for lines in (part.mapped, part.left)
                )
                report = AgentReport(
                    part.kind, part.name, mapped, left, list(part.inbox), part.waiting
                )
                whole = WholeAgent(
                    name=part.name,
                    settings=part.settings,
                    turns=Made(self._those("turn"), _made_turn),
                    inbox=tuple(WholeEvent(*row) for row in self._those("waiting")),
                    blocks=self._those("block"),
                    sections=self._those("section"),
                    passages=Made(self._those("passage"), PassageRow),
                    documents=self._those("document"),
                    pins=part.pins,
                    texts={text.hash: text.text for text in self._those("text")},
                    conversations=self._those("conversation"),
                )
                self.agents.append((whole, report))
                return
        self._parts[name].append(part)

    def _those(self, name: str) -> tuple[Any, ...]:  # Any: a part of one of the shapes
        return tuple(self._parts.pop(name, ()))


def _columns(part: WholeTurn | WholeEvent | _Line | PassageRow) -> tuple[Any, ...]:  # Any: columns
    return tuple(getattr(part, field.name) for field in fields(part))


def _made_turn(*columns: Any) -> WholeTurn:  # Any: columns
    turn: Any = WholeTurn(*columns)  # Any: its events and entries are columns, too
    whole: WholeTurn = replace(
        turn, events=Made(turn.events, WholeEvent), entries=Made(turn.entries, _made_entry)
    )
    return whole


def _made_entry(kind: str, text: str, at: float, upto: int | None) -> EntryText:
    return EntryText(kind, {}, at=at, text=text, upto=upto)

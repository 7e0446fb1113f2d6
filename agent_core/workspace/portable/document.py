"""The schema of agent files, which are written in this format and validated before use.

The published JSON Schema (`docs/agent-file.schema.json`) is generated from these classes.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from . import caps
from .packed import is_packed

FORMAT = "knapper-agent"
VERSION = 1
LONGEST = 16 << 20
"""The maximum number of characters in one text."""
SHAPED = ("user", "notice", "assistant", "call", "result", "summary")
"""The kinds of entries with a payload in a fixed format."""


class FilePart(BaseModel):
    """A part of the file: unknown fields are rejected, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


class EntryPayload(BaseModel):
    """The payload of an entry; it may hold more than the program relies on."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


Text: TypeAlias = Annotated[str, Field(max_length=LONGEST)]
Piece: TypeAlias = Annotated[str, Field(max_length=caps.LONGEST_PASSAGE)]
Short: TypeAlias = Annotated[str, Field(max_length=1000)]
Id: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,100}$")]
Hash: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Agents: TypeAlias = Annotated[
    list[Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9_-]{1,64})$")]],
    Field(max_length=caps.MOST_PINS, fail_fast=True, description="Names of agents, or * for all."),
]
Time: TypeAlias = Annotated[float, Field(ge=0, le=1e11, description="Seconds since 1970.")]
Count: TypeAlias = Annotated[int, Field(ge=0, le=1 << 40)]
Place: TypeAlias = Annotated[int, Field(ge=-(1 << 40), le=1 << 40)]
Payload: TypeAlias = dict[str, Any]  # Any: JSON
Value: TypeAlias = Text | Annotated[list[Text], Field(max_length=caps.MOST_LINES, fail_fast=True)]


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
    pins: Annotated[list[Name], Field(max_length=caps.MOST_PINS, fail_fast=True)] = []


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
    label: Annotated[str, Field(pattern=r"^[\w./-]{1,64}$")]
    value: Value
    limit: Annotated[int, Field(ge=1, le=1 << 40)]
    description: Text = ""
    read_only: bool = False
    shared: bool = False
    readers: Agents = ["*"]
    writers: Agents = ["*"]
    attached: bool = True
    position: Place = 0
    version: Annotated[int, Field(ge=1, le=1 << 40)]
    edited: Time
    history: Annotated[list[ChangePart], Field(max_length=caps.MOST_CHANGES, fail_fast=True)]


class SectionPart(FilePart):
    """A section of the system message that is the agent's own."""

    name: Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")]
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

    calls: Annotated[list[CallPart], Field(fail_fast=True)]
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
    """A sentence that a summary kept, with its source: `user`, a function's name with `()`, or none."""

    by: Annotated[str, Field(pattern=r"^(user|a function|[^\W\d]\w{0,63}\(\))?$")]
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

    model_config = ConfigDict(json_schema_extra={"not": {"properties": {"kind": {"enum": list(SHAPED)}}}})

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
    events: Annotated[list[EventPart], Field(min_length=1, fail_fast=True)]
    entries: Annotated[list[AnyEntry], Field(max_length=caps.MOST_ENTRIES, fail_fast=True)]


class PassagePart(FilePart):
    """A piece of text in archival memory; `words` is what its index reads, recomputed if it is missing."""

    id: Id
    text: Piece
    at: Time
    words: Piece | None = None
    tags: Annotated[list[Short], Field(max_length=caps.MOST_TAGS, fail_fast=True)] = []
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
    blocks: Annotated[list[BlockPart], Field(max_length=caps.MOST_BLOCKS, fail_fast=True)] = []
    sections: Annotated[list[SectionPart], Field(max_length=caps.MOST_SECTIONS, fail_fast=True)] = []
    turns: Annotated[list[TurnPart], Field(max_length=caps.MOST_TURNS, fail_fast=True)] = []
    inbox: Annotated[list[EventPart], Field(max_length=caps.MOST_WAITING, fail_fast=True)] = Field(
        [], description="What came and was not taken up yet."
    )
    passages: Annotated[list[PassagePart], Field(max_length=caps.MOST_PASSAGES, fail_fast=True)] = []
    documents: Annotated[list[DocumentPart], Field(max_length=caps.MOST_DOCUMENTS, fail_fast=True)] = []
    texts: Annotated[dict[Hash, Text], Field(max_length=caps.MOST_TEXTS)] = Field(
        {}, description="Texts that entries name by their SHA-256."
    )

"""The contents of memory, as higher layers see them: blocks, sections, passages, the message index, vectors.

Values, and the writes that ride on a journal entry or are applied alone. The conversation itself is the
journal; `RecallMessage`s and vectors are derived from it, and recomputed if missing.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Shelf: TypeAlias = Literal["recall", "archival"]
"""The two stores that are searched: what was said, and passages."""

Value: TypeAlias = str | tuple[str, ...]
"""What a block holds: a text, or lines that are edited one by one."""


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block as it is. `limit` is in characters; `version` is 1 for a new one and rises by one with each edit.

    `position` orders the blocks of one agent; a shared block may stand elsewhere in another.
    """

    id: str
    label: str
    value: Value
    limit: int
    description: str = ""
    read_only: bool = False
    shared: bool = False
    position: int = 0
    version: int = 1
    edited: float = 0.0


@dataclass(frozen=True, slots=True)
class BlockChange:
    """A line of a block's history: the new value, the action in words, by whom, in which turn."""

    block: str
    version: int
    value: Value
    action: str
    by: str
    agent: str
    turn: str
    at: float


@dataclass(frozen=True, slots=True)
class SaveBlock:
    """A compare-and-set write: the block must be at `block.version - 1` (0: not there yet); a line of history is added.

    A new block belongs to `agent`. Raises BlockConflict, a ManifestConflict, where somebody else was first.
    """

    block: BlockRow
    agent: str
    action: str
    by: str = "agent"
    turn: str = ""


@dataclass(frozen=True, slots=True)
class AttachBlock:
    """A write that attaches a shared block to another agent, at this position; it is in its context from the next step
    on.
    """

    agent: str
    block: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class DetachBlock:
    """A write that detaches a block from an agent; a block without agents stays on record, with its history."""

    agent: str
    block: str


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A part of the system message: parts are ordered by `position`, then by name. `limit` is in characters."""

    name: str
    position: int
    text: str
    limit: int = 4000
    edited: float = 0.0


@dataclass(frozen=True, slots=True)
class SaveSection:
    """A write that sets a section of an agent's system message; a later one of the same name replaces it."""

    agent: str
    section: SectionRow


@dataclass(frozen=True, slots=True)
class DropSection:
    """A write that removes a section."""

    agent: str
    name: str


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A piece of text in archival memory. The caller sets all but `seq`; `id` is a uuid7.

    `document` is the content hash of the source that it was cut from and `n` its place there (neighbours are
    n ± 1), both empty for what the agent inserted itself. `words` is what the text index reads: the text without
    stop words, with dates and names. `source` and `place` say where it is from, as an answer cites it.
    """

    id: str
    agent: str
    text: str
    words: str
    at: float
    tags: tuple[str, ...] = ()
    source: str = ""
    place: str = ""
    document: str = ""
    n: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SavePassages:
    """A write that stores passages; one with an existing id is the same one and changes nothing."""

    passages: tuple[PassageRow, ...]


@dataclass(frozen=True, slots=True)
class DropPassages:
    """A write that deletes passages of an agent, with their vectors."""

    agent: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A source that was or is being read, once per agent and content hash; `done` of `total` passages are stored."""

    hash: str
    agent: str
    name: str
    kind: str
    at: float
    done: int = 0
    total: int = 0
    complete: bool = False


@dataclass(frozen=True, slots=True)
class SaveDocument:
    """A write that stores how far a source was read; a later one of the same agent and hash replaces it."""

    document: DocumentRow


@dataclass(frozen=True, slots=True)
class DropDocument:
    """A write that forgets a source and deletes its passages."""

    agent: str
    hash: str


@dataclass(frozen=True, slots=True)
class RecallMessage:
    """One message as recall knows it; `seq` is that of its journal entry. `n` counts the agent's messages from 0.

    `session` rises after a long silence, `speaker` is user, assistant or a name. The form of the message as numbers:
    `length` in content words, `asks` whether it ends as a question, `timed` whether it names a time. `words` as in
    `PassageRow`.
    """

    seq: int
    agent: str
    n: int
    text: str
    words: str
    at: float
    speaker: str
    session: int = 0
    length: int = 0
    asks: bool = False
    timed: bool = False
    turn: str = ""


@dataclass(frozen=True, slots=True)
class SaveSaid:
    """A write that indexes messages; one with a `seq` that is already indexed is skipped."""

    rows: tuple[RecallMessage, ...]


@dataclass(frozen=True, slots=True)
class SaveVectors:
    """A write that stores vectors of a space (model and size), as little-endian float32, by `seq`; a later one replaces
    it.
    """

    shelf: Shelf
    space: str
    vectors: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class DropVectors:
    """A write that deletes every vector not of this space, since another model embeds now."""

    shelf: Shelf
    space: str


@dataclass(frozen=True, slots=True)
class SaveAgent:
    """A write that stores an agent's settings, as JSON: preset, memory class, style of summaries."""

    agent: str
    settings: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropAgent:
    """A write that deletes an agent: its conversation, memory, passages, sources and pins; shared blocks stay."""

    agent: str


MemoryWrite: TypeAlias = (
    SaveAgent
    | DropAgent
    | SaveBlock
    | AttachBlock
    | DetachBlock
    | SaveSection
    | DropSection
    | SavePassages
    | DropPassages
    | SaveDocument
    | DropDocument
    | SaveSaid
    | SaveVectors
    | DropVectors
)

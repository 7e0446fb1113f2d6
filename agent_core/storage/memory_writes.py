"""What memory keeps, as the rooms above see it: blocks, sections, passages, the index of what was said, vectors.

Values, and the writes that ride on a journal entry or are applied alone. The conversation itself is the
journal; `Said` and vectors are derived from it, and made anew where they lack.
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
    """A line of a block's history: what it became, what was done in words, by whom, in which turn."""

    block: str
    version: int
    value: Value
    what: str
    by: str
    agent: str
    turn: str
    at: float


@dataclass(frozen=True, slots=True)
class SaveBlock:
    """Compare-and-set: the block must be at `block.version - 1` (0: not there yet); a line of history goes with it.

    A new block belongs to `agent`. Raises BlockConflict, a ManifestConflict, where somebody else was first.
    """

    block: BlockRow
    agent: str
    what: str
    by: str = "agent"
    turn: str = ""


@dataclass(frozen=True, slots=True)
class AttachBlock:
    """Let another agent have a shared block, at this place; it is in its context from the next step on."""

    agent: str
    block: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class DetachBlock:
    """Take a block from an agent; a block that nobody has any more stays on record, with its history."""

    agent: str
    block: str


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A part of the system message: parts stand in the order of `position`, then of name. `limit` is in characters."""

    name: str
    position: int
    text: str
    limit: int = 4000
    edited: float = 0.0


@dataclass(frozen=True, slots=True)
class SaveSection:
    """Set a section of an agent's system message; a later one of the same name takes its place."""

    agent: str
    section: SectionRow


@dataclass(frozen=True, slots=True)
class DropSection:
    """Take a section away."""

    agent: str
    name: str


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A piece of text in archival memory. The caller gives all but `seq`; `id` is a uuid7.

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
    """Keep passages; one whose id is there already is the same one and changes nothing."""

    passages: tuple[PassageRow, ...]


@dataclass(frozen=True, slots=True)
class DropPassages:
    """Delete passages of an agent, with their vectors."""

    agent: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A source that was or is being read, once per agent and content hash; `done` of `total` passages are kept."""

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
    """Keep how far a source was read; a later one of the same agent and hash takes its place."""

    document: DocumentRow


@dataclass(frozen=True, slots=True)
class DropDocument:
    """Forget a source and delete its passages."""

    agent: str
    hash: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message as recall knows it; `seq` is its journal entry's. `n` counts the agent's messages from 0.

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
    """Index messages; one whose `seq` is indexed already is passed over."""

    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class SaveVectors:
    """Keep vectors of a space (model and size), as little-endian float32, by `seq`; a later one takes the place."""

    shelf: Shelf
    space: str
    vectors: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class DropVectors:
    """Forget every vector that is not of this space: another model embeds now."""

    shelf: Shelf
    space: str


@dataclass(frozen=True, slots=True)
class SaveAgent:
    """What an agent is apart from its conversation, as JSON: preset, memory class, how it is summarised."""

    agent: str
    settings: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropAgent:
    """Delete an agent whole: its conversation, memory, passages, sources and pins; shared blocks stay."""

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

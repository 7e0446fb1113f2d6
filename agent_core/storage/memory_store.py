"""Memory in the store: blocks, sections, passages, the index of messages, vectors, and their searches.

The conversation itself is the journal; `RecallMessage`s and vectors are derived from it, and recomputed if missing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from .subject import Subject, Write

Shelf: TypeAlias = Literal["recall", "archival"]
"""The two searchable stores: messages and passages."""

Value: TypeAlias = str | tuple[str, ...]
"""The value of a block: a text, or lines that are edited individually."""


@dataclass(frozen=True, slots=True)
class BlockRow:
    """The current state of a block. `limit` is in characters; `version` starts at 1 and rises by 1 with each edit.

    `position` orders the blocks of one agent; a shared block may have another position in another agent. `writable` is
    not stored: it tells whether the agent of this row may change the block.
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
    writable: bool = True


@dataclass(frozen=True, slots=True)
class BlockAccess:
    """The agents that may read or change a shared block: names, or `*`. Its `owner` may do both."""

    owner: str
    readers: tuple[str, ...] = ("*",)
    writers: tuple[str, ...] = ("*",)

    def may_write(self, agent: str) -> bool:
        """Return whether an agent may change the block."""
        return agent == self.owner or not {"*", agent}.isdisjoint(self.writers)

    def may_read(self, agent: str) -> bool:
        """Return whether an agent may read the block; the right to change it includes the right to read it."""
        return self.may_write(agent) or not {"*", agent}.isdisjoint(self.readers)


@dataclass(frozen=True, slots=True)
class BlockChange:
    """A line of a block's history: the new value, a description of the action, its author and turn."""

    block: str
    version: int
    value: Value
    action: str
    by: str
    agent: str
    turn: str
    at: float


@dataclass(frozen=True, slots=True)
class SaveBlock(Write):
    """A compare-and-set write: the block must be at `block.version - 1` (0: missing). It also adds a line of history.

    A new block belongs to `agent`. Raises BlockConflict, a ManifestConflict, if someone else was first.
    """

    block: BlockRow
    agent: str
    action: str
    by: str = "agent"
    turn: str = ""


@dataclass(frozen=True, slots=True)
class AttachBlock(Write):
    """A write that attaches a shared block to another agent, at this position, from the agent's next step."""

    agent: str
    block: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class LimitBlock(Write):
    """A write that sets who may read and who may change a shared block; an agent without read access loses it."""

    block: str
    readers: tuple[str, ...]
    writers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DetachBlock(Write):
    """A write that detaches a block from an agent; a block without agents stays stored, with its history."""

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
class SaveSection(Write):
    """A write that sets a section of an agent's system message; a later one of the same name replaces it."""

    agent: str
    section: SectionRow


@dataclass(frozen=True, slots=True)
class DropSection(Write):
    """A write that removes a section."""

    agent: str
    name: str


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A piece of text in archival memory. The caller sets all but `seq`; `id` is a UUIDv7.

    `document` is the content hash of its source and `n` its index there (neighbors are n ± 1); both are empty for a
    passage that the agent inserted itself. `words` is the input of the word index: the text without stop words, with
    dates and names. `source` and `place` are its origin, as cited in an answer.
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
class SavePassages(Write):
    """A write that stores passages; a passage with an existing id is skipped."""

    passages: tuple[PassageRow, ...]


@dataclass(frozen=True, slots=True)
class DropPassages(Write):
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
class SaveDocument(Write):
    """A write that stores the progress of reading a source; a later one of the same agent and hash replaces it."""

    document: DocumentRow


@dataclass(frozen=True, slots=True)
class CopyDocument(Write):
    """A write that gives another agent a source, with its passages and their vectors."""

    hash: str
    owner: str
    agent: str


@dataclass(frozen=True, slots=True)
class DropDocument(Write):
    """A write that forgets a source and deletes its passages."""

    agent: str
    hash: str


@dataclass(frozen=True, slots=True)
class RecallMessage:
    """One message in the recall index; `seq` is that of its journal entry. `n` counts the agent's messages from 0.

    `session` rises after a long silence; `speaker` is user, assistant or a name. Features of the message: `length` in
    content words, `asks` whether it ends as a question, `timed` whether it names a time. `words` as in `PassageRow`.
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
class SaveSaid(Write):
    """A write that indexes messages; a `seq` that is already indexed is skipped."""

    rows: tuple[RecallMessage, ...]


@dataclass(frozen=True, slots=True)
class SaveVectors(Write):
    """A write that stores vectors of a space (model and size) by `seq`, as little-endian float32; the last counts."""

    shelf: Shelf
    space: str
    vectors: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class DropVectors(Write):
    """A write that deletes the vectors of all other spaces, because the embedding model changed."""

    shelf: Shelf
    space: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A result of a search: a row's `seq`, and a score that is higher for a better match."""

    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of an agent's memory; `edited` is the time of its last block edit, 0 for never.

    The index of messages is complete up to the entry `indexed`.
    """

    messages: int
    passages: int
    edited: float
    indexed: int = 0


class MemoryStore(Subject, Protocol):
    """The memory of agents."""

    async def blocks(self, agent: str) -> list[BlockRow]:
        """Return the blocks of an agent, in order."""

    async def block_versions(self, agent: str) -> dict[str, int]:
        """Return the version of each of the agent's shared blocks, by id: a cheap query for every step."""

    async def shared_blocks(self) -> list[BlockRow]:
        """Return every block that agents may share, by label."""

    async def block_access(self, block: str) -> BlockAccess:
        """Return who may read and change a block."""

    async def block_history(self, block: str) -> list[BlockChange]:
        """Return every change of a block, oldest first."""

    async def block_ids(self, agent: str) -> dict[str, str]:
        """Return the labels of all blocks that an agent ever had, by id; two may have the same label."""

    async def sections(self, agent: str) -> list[SectionRow]:
        """Return the agent's own sections, in order."""

    async def memory_counts(self, agent: str) -> Counts:
        """Return the size of an agent's memory."""

    async def search_words(self, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
        """Return the rows with any of these words (stemmed alike), best first; `words` has no stop words."""

    async def search_vector(self, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int) -> list[Hit]:
        """Return the rows nearest to a vector, by cosine, best first."""

    async def cosines(
        self, shelf: Shelf, agent: str, space: str, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine of each of these rows that has a vector."""

    async def vector_trouble(self) -> str:
        """Return the reason why vectors cannot be searched; "" if they can."""

    async def messages(self, agent: str, seqs: Collection[int]) -> list[RecallMessage]:
        """Return indexed messages by `seq`, in order."""

    async def messages_beside(self, agent: str, numbers: Collection[int]) -> list[RecallMessage]:
        """Return indexed messages by `n`, in order: neighbors of hits."""

    async def messages_between(
        self, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[RecallMessage]]:
        """Return the number of messages from `start` until before `end`, and a page of them, oldest first."""

    async def last_message(self, agent: str) -> RecallMessage | None:
        """Return the newest indexed message; the index is complete up to it."""

    async def passages(self, seqs: Collection[int]) -> list[PassageRow]:
        """Return passages by `seq`, in order."""

    async def list_passages(self, agent: str, tag: str, offset: int, limit: int) -> tuple[int, list[PassageRow]]:
        """Return the number of an agent's passages (with a tag, if given), and a page of them, newest first."""

    async def passage_ids(self, agent: str, begins: str) -> list[str]:
        """Return the ids of the agent's passages with this prefix; at most ten."""

    async def documents(self, agent: str) -> list[DocumentRow]:
        """Return the sources of an agent, oldest first."""

    async def unembedded(self, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
        """Return (`seq`, text) of rows without a vector of this space, oldest first."""

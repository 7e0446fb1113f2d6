"""The questions that memory asks of the store; what they are about is in `memory_writes.py`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .memory_writes import BlockChange, BlockRow, DocumentRow, PassageRow, Said, SectionRow, Shelf


@dataclass(frozen=True, slots=True)
class Hit:
    """What a search found: a row's `seq`, and a score that is higher for what fits better."""

    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Counts:
    """How much an agent remembers; `edited` is when a block of its was last edited, 0 for never."""

    messages: int
    passages: int
    edited: float


class MemoryStore(Protocol):
    """The questions that memory asks of the store. Writes go through `Store.append` and `Store.apply`."""

    async def agent_settings(self, agent: str) -> dict[str, Any] | None:  # Any: JSON
        """What was saved of an agent; None for one that nothing was saved of."""

    async def blocks(self, agent: str) -> list[BlockRow]:
        """The blocks of an agent, in their order."""

    async def versions(self, agent: str) -> dict[str, int]:
        """The version of each of the agent's shared blocks, by id: cheap, asked at every step."""

    async def shared_blocks(self) -> list[BlockRow]:
        """Every block that agents may share, by label."""

    async def block_history(self, block: str) -> list[BlockChange]:
        """Every change of a block, oldest first."""

    async def block_ids(self, agent: str) -> dict[str, str]:
        """Every block that an agent ever had, label by id: also those whose label is now another's."""

    async def sections(self, agent: str) -> list[SectionRow]:
        """The agent's own sections, in their order."""

    async def counts(self, agent: str) -> Counts:
        """How much an agent remembers."""

    async def search_words(self, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
        """The rows that hold any of these words (stemmed alike), best first; `words` have no stop words."""

    async def search_vector(self, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int) -> list[Hit]:
        """The rows nearest to a vector, by cosine, best first."""

    async def cosines(
        self, shelf: Shelf, agent: str, space: str, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine of each of these rows of an agent that has a vector."""

    async def vector_trouble(self) -> str:
        """Return why vectors cannot be searched; an empty text where they can be."""

    async def said(self, agent: str, seqs: Collection[int]) -> list[Said]:
        """Indexed messages by `seq`, in order."""

    async def said_beside(self, agent: str, numbers: Collection[int]) -> list[Said]:
        """Indexed messages by `n`, in order: neighbours of hits."""

    async def said_between(
        self, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[Said]]:
        """How many messages were said from `start` until before `end`, and a page of them, oldest first."""

    async def last_said(self, agent: str) -> Said | None:
        """The newest indexed message: the index is complete up to it."""

    async def passages(self, seqs: Collection[int]) -> list[PassageRow]:
        """Passages by `seq`, in order."""

    async def passages_beside(self, agent: str, places: Collection[tuple[str, int]]) -> list[PassageRow]:
        """Passages by (document, n), in order: neighbours of hits."""

    async def list_passages(self, agent: str, tag: str, offset: int, limit: int) -> tuple[int, list[PassageRow]]:
        """How many passages an agent has (with a tag, if one is given), and a page of them, newest first."""

    async def passage_ids(self, agent: str, begins: str) -> list[str]:
        """The ids of the agent's passages that begin so; at most ten."""

    async def documents(self, agent: str) -> list[DocumentRow]:
        """The sources of an agent, oldest first."""

    async def unembedded(self, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
        """Rows without a vector of this space, `seq` and text, oldest first."""

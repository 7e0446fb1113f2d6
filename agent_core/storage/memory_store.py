"""The queries of memory to the store; `memory_writes.py` has their types."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .memory_writes import BlockChange, BlockRow, DocumentRow, PassageRow, RecallMessage, SectionRow, Shelf


@dataclass(frozen=True, slots=True)
class Hit:
    """A result of a search: a row's `seq`, and a score that is higher for a better match."""

    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of an agent's memory; `edited` is the time of its last block edit, 0 for never."""

    messages: int
    passages: int
    edited: float


class MemoryStore(Protocol):
    """The queries of memory to the store. Writes go through `Store.append` and `Store.apply`."""

    async def agent_settings(self, agent: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the saved settings of an agent; None if none were saved."""

    async def blocks(self, agent: str) -> list[BlockRow]:
        """Return the blocks of an agent, in order."""

    async def versions(self, agent: str) -> dict[str, int]:
        """Return the version of each of the agent's shared blocks, by id: a cheap query, made at every step."""

    async def shared_blocks(self) -> list[BlockRow]:
        """Return every block that agents may share, by label."""

    async def block_history(self, block: str) -> list[BlockChange]:
        """Return every change of a block, oldest first."""

    async def block_ids(self, agent: str) -> dict[str, str]:
        """Return every block that an agent ever had, label by id: including those with a label that is now
        another's.
        """

    async def sections(self, agent: str) -> list[SectionRow]:
        """Return the agent's own sections, in order."""

    async def counts(self, agent: str) -> Counts:
        """Return the size of an agent's memory."""

    async def search_words(self, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
        """Return the rows with any of these words (stemmed alike), best first; `words` contain no stop words."""

    async def search_vector(self, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int) -> list[Hit]:
        """Return the rows nearest to a vector, by cosine, best first."""

    async def cosines(
        self, shelf: Shelf, agent: str, space: str, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine of each of these rows that has a vector."""

    async def vector_trouble(self) -> str:
        """Return why vectors cannot be searched; an empty text where they can be."""

    async def said(self, agent: str, seqs: Collection[int]) -> list[RecallMessage]:
        """Return indexed messages by `seq`, in order."""

    async def said_beside(self, agent: str, numbers: Collection[int]) -> list[RecallMessage]:
        """Return indexed messages by `n`, in order: neighbors of hits."""

    async def said_between(
        self, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[RecallMessage]]:
        """Return the number of messages from `start` until before `end`, and a page of them, oldest first."""

    async def last_said(self, agent: str) -> RecallMessage | None:
        """Return the newest indexed message: the index is complete up to it."""

    async def passages(self, seqs: Collection[int]) -> list[PassageRow]:
        """Return passages by `seq`, in order."""

    async def passages_beside(self, agent: str, places: Collection[tuple[str, int]]) -> list[PassageRow]:
        """Return passages by (document, n), in order: neighbors of hits."""

    async def list_passages(self, agent: str, tag: str, offset: int, limit: int) -> tuple[int, list[PassageRow]]:
        """Return the number of an agent's passages (with a tag, if given), and a page of them, newest first."""

    async def passage_ids(self, agent: str, begins: str) -> list[str]:
        """Return the ids of the agent's passages with this prefix; at most ten."""

    async def documents(self, agent: str) -> list[DocumentRow]:
        """Return the sources of an agent, oldest first."""

    async def unembedded(self, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
        """Return rows without a vector of this space, `seq` and text, oldest first."""

"""`MemoryStore` on SQLite: the questions of memory, on the thread and the connection of the store.

What searches is imported when something is searched.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from . import memory_lookups as lookups
from . import vector_index
from .connection import Session
from .memory_store import Counts, Hit
from .memory_writes import BlockChange, BlockRow, DocumentRow, PassageRow, Said, SectionRow, Shelf

T = TypeVar("T")


class Read(Protocol):
    """Runs a question where the connection is."""

    def __call__(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        """What it returns."""


class SqliteMemory:
    """`MemoryStore`; made by `SqliteStore`."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def agent_settings(self, agent: str) -> dict[str, Any] | None:  # Any: JSON
        """What was saved of an agent."""
        return await self._read(lookups.agent_settings, agent)

    async def blocks(self, agent: str) -> list[BlockRow]:
        """The blocks of an agent."""
        return await self._read(lookups.blocks, agent)

    async def versions(self, agent: str) -> dict[str, int]:
        """The versions of its shared blocks."""
        return await self._read(lookups.versions, agent)

    async def shared_blocks(self) -> list[BlockRow]:
        """Every block that agents may share."""
        return await self._read(lookups.shared_blocks)

    async def block_history(self, block: str) -> list[BlockChange]:
        """Every change of a block."""
        return await self._read(lookups.block_history, block)

    async def block_ids(self, agent: str) -> dict[str, str]:
        """Every block that it has or had."""
        return await self._read(lookups.block_ids, agent)

    async def sections(self, agent: str) -> list[SectionRow]:
        """Its own sections."""
        return await self._read(lookups.sections, agent)

    async def counts(self, agent: str) -> Counts:
        """How much it remembers."""
        return await self._read(lookups.counts, agent)

    async def search_words(self, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
        """By words."""
        return await self._read(_search_words, shelf, agent, words, limit)

    async def search_vector(self, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int) -> list[Hit]:
        """By meaning."""
        return await self._read(_search_vector, (shelf, agent, space), vector, limit)

    async def cosines(
        self, shelf: Shelf, agent: str, space: str, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:
        """Of some rows."""
        return await self._read(_cosines, (shelf, agent, space), vector, seqs)

    async def vector_trouble(self) -> str:
        """Return why vectors cannot be searched."""
        return await self._read(vector_index.trouble)

    async def said(self, agent: str, seqs: Collection[int]) -> list[Said]:
        """Messages by number."""
        return await self._read(lookups.said, agent, seqs)

    async def said_beside(self, agent: str, numbers: Collection[int]) -> list[Said]:
        """Messages by place."""
        return await self._read(lookups.said_beside, agent, numbers)

    async def said_between(
        self, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[Said]]:
        """Messages by time."""
        return await self._read(lookups.said_between, agent, (start, end), offset, limit)

    async def last_said(self, agent: str) -> Said | None:
        """The newest message."""
        return await self._read(lookups.last_said, agent)

    async def passages(self, seqs: Collection[int]) -> list[PassageRow]:
        """Passages by number."""
        return await self._read(lookups.passages, seqs)

    async def passages_beside(self, agent: str, places: Collection[tuple[str, int]]) -> list[PassageRow]:
        """Passages by document and place."""
        return await self._read(lookups.passages_beside, agent, places)

    async def list_passages(self, agent: str, tag: str, offset: int, limit: int) -> tuple[int, list[PassageRow]]:
        """Passages, newest first."""
        return await self._read(lookups.list_passages, agent, tag, offset, limit)

    async def passage_ids(self, agent: str, begins: str) -> list[str]:
        """A few ids that begin so."""
        return await self._read(lookups.passage_ids, agent, begins)

    async def documents(self, agent: str) -> list[DocumentRow]:
        """Its sources."""
        return await self._read(lookups.documents, agent)

    async def unembedded(self, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
        """Rows without a vector."""
        return await self._read(lookups.unembedded, shelf, space, limit)


def _search_words(session: Session, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
    from . import searching  # noqa: PLC0415 whoever does not search does not wait for it

    return searching.words(session, shelf, agent, words, limit)


def _search_vector(session: Session, place: tuple[Shelf, str, str], vector: bytes, limit: int) -> list[Hit]:
    from . import searching  # noqa: PLC0415 as above

    return searching.nearest(session, place, vector, limit)


def _cosines(session: Session, place: tuple[Shelf, str, str], vector: bytes, seqs: Collection[int]) -> dict[int, float]:
    from . import searching  # noqa: PLC0415 as above

    return searching.cosines(session, place, vector, seqs)

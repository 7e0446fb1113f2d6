"""`MemoryStore` on SQLite: the queries of memory, on the store's thread and connection.

What searches is imported when something is searched.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from . import memory_lookups as lookups
from . import vector_index
from .connection import SqlSession
from .memory_store import Counts, Hit
from .memory_writes import BlockChange, BlockRow, DocumentRow, PassageRow, RecallMessage, SectionRow, Shelf

T = TypeVar("T")


class Read(Protocol):
    """Callable that runs a query on the thread of the connection."""

    def __call__(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        """Return the result of the work."""


class SqliteMemory:
    """`MemoryStore`, created by `SqliteStore`."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def agent_settings(self, agent: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the saved settings of an agent."""
        return await self._read(lookups.agent_settings, agent)

    async def blocks(self, agent: str) -> list[BlockRow]:
        """Return the blocks of an agent."""
        return await self._read(lookups.blocks, agent)

    async def versions(self, agent: str) -> dict[str, int]:
        """Return the versions of the agent's shared blocks."""
        return await self._read(lookups.versions, agent)

    async def shared_blocks(self) -> list[BlockRow]:
        """Return every block that agents may share."""
        return await self._read(lookups.shared_blocks)

    async def block_history(self, block: str) -> list[BlockChange]:
        """Return every change of a block."""
        return await self._read(lookups.block_history, block)

    async def block_ids(self, agent: str) -> dict[str, str]:
        """Return the ids of every block that the agent has or had."""
        return await self._read(lookups.block_ids, agent)

    async def sections(self, agent: str) -> list[SectionRow]:
        """Return the agent's own sections."""
        return await self._read(lookups.sections, agent)

    async def counts(self, agent: str) -> Counts:
        """Return how much the agent remembers."""
        return await self._read(lookups.counts, agent)

    async def search_words(self, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
        """Search by words."""
        return await self._read(_search_words, shelf, agent, words, limit)

    async def search_vector(self, shelf: Shelf, agent: str, space: str, vector: bytes, limit: int) -> list[Hit]:
        """Search by meaning."""
        return await self._read(_search_vector, (shelf, agent, space), vector, limit)

    async def cosines(
        self, shelf: Shelf, agent: str, space: str, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:
        """Return the cosines of given rows."""
        return await self._read(_cosines, (shelf, agent, space), vector, seqs)

    async def vector_trouble(self) -> str:
        """Return why vectors cannot be searched."""
        return await self._read(vector_index.trouble)

    async def said(self, agent: str, seqs: Collection[int]) -> list[RecallMessage]:
        """Return messages by number."""
        return await self._read(lookups.said, agent, seqs)

    async def said_beside(self, agent: str, numbers: Collection[int]) -> list[RecallMessage]:
        """Return messages by place."""
        return await self._read(lookups.said_beside, agent, numbers)

    async def said_between(
        self, agent: str, start: float, end: float, offset: int, limit: int
    ) -> tuple[int, list[RecallMessage]]:
        """Return messages by time."""
        return await self._read(lookups.said_between, agent, (start, end), offset, limit)

    async def last_said(self, agent: str) -> RecallMessage | None:
        """Return the newest message."""
        return await self._read(lookups.last_said, agent)

    async def passages(self, seqs: Collection[int]) -> list[PassageRow]:
        """Return passages by number."""
        return await self._read(lookups.passages, seqs)

    async def passages_beside(self, agent: str, places: Collection[tuple[str, int]]) -> list[PassageRow]:
        """Return passages by document and place."""
        return await self._read(lookups.passages_beside, agent, places)

    async def list_passages(self, agent: str, tag: str, offset: int, limit: int) -> tuple[int, list[PassageRow]]:
        """Return passages, newest first."""
        return await self._read(lookups.list_passages, agent, tag, offset, limit)

    async def passage_ids(self, agent: str, begins: str) -> list[str]:
        """Return a few ids that begin with this text."""
        return await self._read(lookups.passage_ids, agent, begins)

    async def documents(self, agent: str) -> list[DocumentRow]:
        """Return the agent's sources."""
        return await self._read(lookups.documents, agent)

    async def unembedded(self, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
        """Return rows without a vector."""
        return await self._read(lookups.unembedded, shelf, space, limit)


def _search_words(session: SqlSession, shelf: Shelf, agent: str, words: Sequence[str], limit: int) -> list[Hit]:
    from . import searching  # noqa: PLC0415 whoever does not search does not wait for it

    return searching.words(session, shelf, agent, words, limit)


def _search_vector(session: SqlSession, place: tuple[Shelf, str, str], vector: bytes, limit: int) -> list[Hit]:
    from . import searching  # noqa: PLC0415 as above

    return searching.nearest(session, place, vector, limit)


def _cosines(
    session: SqlSession, place: tuple[Shelf, str, str], vector: bytes, seqs: Collection[int]
) -> dict[int, float]:
    from . import searching  # noqa: PLC0415 as above

    return searching.cosines(session, place, vector, seqs)

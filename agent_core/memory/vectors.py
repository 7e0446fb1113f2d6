"""Vectors of stored rows, computed where they are missing and searched for nearest neighbors, and of short texts.

If the model is unavailable, search continues with words only, and `trouble` has the reason.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import KnapperError
from agent_core.storage import DropVectors, Hit, MemoryStore, SaveVectors, Shelf

if TYPE_CHECKING:
    from .embedding import Embedder

BATCH: Final = 256


class ShelfVectors:
    """The use of an embedding model for messages or passages."""

    def __init__(self, store: MemoryStore, shelf: Shelf, embedder: "Embedder | None") -> None:
        self.trouble = ""
        self._store = store
        self._shelf: Shelf = shelf
        self._embedder = embedder

    @property
    def recipe(self) -> str:
        """The name of the weights to use now."""
        return "none" if self._embedder is None or self.trouble else self._embedder.recipe

    async def embed(self) -> int:
        """Compute vectors for at most `BATCH` texts without one; return their number."""
        if self._embedder is None:
            return 0
        missing = await self._store.unembedded(self._shelf, self._embedder.space, BATCH)
        vectors = await self._of_all([text for _, text in missing])
        if not vectors:
            return 0
        pairs = tuple((seq, vector) for (seq, _), vector in zip(missing, vectors, strict=True))
        await self._store.apply([SaveVectors(self._shelf, self._embedder.space, pairs)])
        return len(pairs)

    async def embed_all(self) -> int:
        """Compute all missing vectors, then remove those of other models; return the number computed."""
        total = 0
        while count := await self.embed():
            total += count
        if self._embedder is not None and not self.trouble:
            await self._store.apply([DropVectors(self._shelf, self._embedder.space)])
        return total

    async def of(self, text: str) -> bytes | None:
        """Return the vector of a question, or None if there is no model."""
        return next(iter(await self._of_all([text])), None)

    async def near(
        self,
        agent: str,
        vector: bytes | None,
        limit: int,
        candidates: Collection[int] | None = None,
    ) -> list[Hit]:
        """Return the rows nearest to a vector, best first; `candidates` restricts them."""
        if vector is None or self._embedder is None:
            return []
        if candidates is not None:
            cosines = await self.cosines(agent, vector, candidates)
            return [
                Hit(seq, cosines[seq]) for seq in nlargest(limit, cosines, key=cosines.__getitem__)
            ]
        return await self._store.search_vector(
            self._shelf, agent, self._embedder.space, vector, limit
        )

    async def cosines(
        self, agent: str, vector: bytes | None, seqs: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine of each of these rows with a vector."""
        if vector is None or self._embedder is None:
            return {}
        return await self._store.cosines(self._shelf, agent, self._embedder.space, vector, seqs)

    async def _of_all(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text; empty if there is no model."""
        if self._embedder is None or not texts:
            return []
        if trouble := await self._store.vector_trouble():
            self.trouble = trouble
            return []
        try:
            vectors = await self._embedder.embed(texts)
        except KnapperError as error:
            self.trouble = str(error)
            return []
        self.trouble = ""
        return vectors


_MOST: Final = 2_000  # texts; beyond that, the cache is cleared
_READ: Final = 500  # characters of a text
_WAIT_S: Final = 5.0


class TextVectors:
    """The vectors of short texts that are compared with each other; they are cached, but not stored."""

    def __init__(self, embedder: "Embedder | None") -> None:
        self._embedder = embedder
        self._known: dict[str, bytes] = {}

    async def of(self, texts: Collection[str]) -> Mapping[str, bytes]:
        """Return a vector for each text, or nothing if the model is not available soon; words alone decide then."""
        if self._embedder is None:
            return {}
        if len(self._known) > _MOST:
            self._known = {}
        begun = {text: text[:_READ] for text in texts}
        missing = [text for text in dict.fromkeys(begun.values()) if text not in self._known]
        try:
            async with asyncio.timeout(_WAIT_S):
                made = await self._embedder.embed(missing)
        except (KnapperError, TimeoutError):
            return {}
        self._known.update(zip(missing, made, strict=True))
        return {text: self._known[beginning] for text, beginning in begun.items()}

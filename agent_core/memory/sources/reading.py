"""Reading of sources in a separate process, one after another; a source that takes too long or too much ends it.

What comes back is a claim: text and places of limited length, and nothing else.
"""

from types import TracebackType
from typing import Any, Final, Self

from agent_core.base.reader_process import NotRead, ReaderProcess, pieces

from .cutting import LONGEST, Chunk, Cut, Unreadable

_MOST_CHUNKS: Final = 400_000
_MOST_BYTES: Final = 4 << 30
_DIVIDE: Final = "Divide it, or convert it to plain text first."


class SourceReader:
    """A process that reads sources; it is started by the first source and ends with the block."""

    def __init__(self, within_s: float = 60.0) -> None:
        self._process = ReaderProcess(f"{__package__}.kinds", within_s)

    @property
    def pid(self) -> int | None:
        """The process that reads; None if none does."""
        return self._process.pid

    async def __aenter__(self) -> Self:
        await self._process.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._process.__aexit__(kind, error, trace)

    async def read(self, name: str, data: bytes, content_type: str = "") -> Cut:
        """Return a source as chunks.

        Raises:
            Unreadable: it is no text, or not what it says it is, or takes too long or too much to read.
        """
        order, chunks = {"name": name, "content_type": content_type}, _Chunks()
        try:
            await self._process.read(order, pieces(data), chunks.take, _MOST_BYTES)
        except NotRead as error:
            raise Unreadable(error.message, fix=_DIVIDE) from error
        return chunks.cut()


class _Chunks:
    """What comes of one source, item by item."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._last: dict[str, Any] = {}  # Any: JSON

    def take(self, item: dict[str, Any]) -> None:  # Any: JSON
        """Take the next item."""
        if "chunk" not in item:
            self._last = item
            return
        text, place = item["chunk"]
        if len(self._chunks) >= _MOST_CHUNKS or len(text) > 2 * LONGEST:
            raise Unreadable("It contains more than may be kept of one source.", fix="Divide it.")
        self._chunks.append(Chunk(str(text), str(place)))

    def cut(self) -> Cut:
        """Return the chunks, or raise what the child said instead."""
        if "error" in self._last:
            raise Unreadable(str(self._last["error"]), fix=str(self._last["fix"]))
        return Cut(str(self._last["kind"]), tuple(self._chunks), tuple(map(str, self._last["notes"])))

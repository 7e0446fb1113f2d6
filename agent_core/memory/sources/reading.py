"""Reading of sources in a separate process, one after another; a source that takes too long or too much ends it.

The results are untrusted: only text and places of limited length are accepted.
"""

from typing import Any, Final

from agent_core.base.reader_process import NotRead, ReaderProcess, pieces

from .cutting import LONGEST, Chunk, Cut, Unreadable

_MOST_CHUNKS: Final = 400_000
_MOST_BYTES: Final = 4 << 30
_DIVIDE: Final = "Divide it, or convert it to plain text first."


class SourceReader(ReaderProcess):
    """A process that reads sources; it is started by the first source and ends with the block."""

    def __init__(self, within_s: float = 60.0) -> None:
        super().__init__(f"{__package__}.kinds", within_s)

    async def cut(self, name: str, data: bytes, content_type: str = "") -> Cut:
        """Return a source as chunks.

        Raises:
            Unreadable: it is not text, not what it claims to be, or takes too long or too much to read.
        """
        chunks: list[Chunk] = []
        last: dict[str, Any] = {}  # Any: JSON

        def take(item: dict[str, Any]) -> None:  # Any: JSON
            if "chunk" not in item:
                last.update(item)
                return
            text, place = item["chunk"]
            if len(chunks) >= _MOST_CHUNKS or len(text) > 2 * LONGEST:
                raise Unreadable("It contains more than may be kept of one source.", fix="Divide it.")
            chunks.append(Chunk(str(text), str(place)))

        try:
            await self.read({"name": name, "content_type": content_type}, pieces(data), take, _MOST_BYTES)
        except NotRead as error:
            raise Unreadable(error.message, fix=_DIVIDE) from error
        if "error" in last:
            raise Unreadable(str(last["error"]), fix=str(last["fix"]))
        return Cut(str(last["kind"]), tuple(chunks), tuple(map(str, last["notes"])))

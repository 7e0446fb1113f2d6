"""The process that reads sources: limited in memory, without a key, network access or writable files."""

from collections.abc import Iterator
from typing import Any, Final

from agent_core.base.reader_process import serve

from .kinds import read
from .parts import Unreadable

_MEMORY: Final = 1 << 30


def _answer(order: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:  # Any: JSON
    try:
        cut = read(order["name"], data, order["content_type"])
    except Unreadable as error:
        yield {"error": error.message, "fix": error.fix}
        return
    yield from ({"chunk": [_whole(chunk.text), _whole(chunk.place)]} for chunk in cut.chunks)
    yield {"kind": cut.kind, "notes": [_whole(note) for note in cut.notes]}


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


if __name__ == "__main__":
    serve(_answer, _MEMORY)

"""The process in which agents' files are read; `moves.py` asks it."""

import gc
from collections.abc import Iterator
from typing import Any, Final

from agent_core.base.reader_process import serve

from .errors import AgentFileError
from .items import Item, items_of
from .opened import Around, agents_in

_MEMORY: Final = 3 << 30


def _answer(order: dict[str, Any], data: bytes) -> Iterator[Item]:  # Any: JSON
    try:
        for whole, report in agents_in(data.decode("utf-8", "surrogatepass"), Around(**order)):
            yield from items_of(whole, report)
    except AgentFileError as error:
        yield "refused", [error.where, error.what]


if __name__ == "__main__":
    gc.disable()  # a parsed file is one large tree without circles; walking it again and again takes minutes
    serve(_answer, _MEMORY)

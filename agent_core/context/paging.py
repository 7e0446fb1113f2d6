"""The pages of long texts that `read_on` returns.

The whole stands in storage under its entry's number, which is its name here: `text-` and the number in hex.
"""

import re
from collections.abc import Callable
from typing import Final

from agent_core.base.errors import UsageError
from agent_core.storage import TurnStore

from .history import TEXT_NAME, page_size

_PAGED: Final = ("user", "notice", "assistant", "result")


class PageReader:
    """Returns the pages of texts that one agent was shown in part; `page_chars` is read for each page."""

    def __init__(self, store: TurnStore, agent: str, page_chars: Callable[[], int]) -> None:
        self._store = store
        self._agent = agent
        self._page_chars = page_chars

    async def page(self, name: str, page: int) -> str:
        """Return a page of a long text, with its place among the others.

        Raises:
            UsageError: nothing has this name, or it has no such page.
        """
        text = await self._whole(name)
        size = page_size(self._page_chars())
        pages = max(-(-len(text) // size), 1)
        if not 1 <= page <= pages:
            raise UsageError(f"`{name}` has {pages} page{'' if pages == 1 else 's'}.", fix="Ask for one of them.")
        more = f" Next: read_on(name={name!r}, page={page + 1})." if page < pages else " This is its end."
        return f"Page {page} of {pages} of {name}.{more}\n{text[(page - 1) * size : page * size]}"

    async def _whole(self, name: str) -> str:
        seq = _number(name)
        entries = await self._store.history(self._agent, since=seq - 1, kinds=_PAGED, most=1) if seq > 0 else []
        entry = next((row for row in entries if row.seq == seq), None)
        if entry is None:
            raise UsageError(f"There is no long text named {name!r}.", fix="Take the name from where it was shown.")
        whole = await self._store.text(entry.payload["whole"]) if "whole" in entry.payload else None
        return str(whole if whole is not None else entry.payload["text"])


def _number(name: str) -> int:
    match = re.fullmatch(rf"(?:{TEXT_NAME})?([0-9a-f]{{1,15}})", name.strip().lower())
    return int(match[1], 16) if match else 0

"""Pages of a conversation for clients: what is read, held and sent at once is bounded, however long the history is.

All doors that show a history read it here. A client that has more to read asks again, or its stream reads the next page
when the client has taken the last.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from typing import Any, Final, TypeAlias

from agent_core.base.records import replace
from agent_core.storage import (
    LARGEST_NUMBER,
    MAIN,
    Entry,
    HistoryPage,
    TurnStore,
    agent_of,
    id_of,
)
from agent_core.storage.subject import dump
from agent_core.storage.turn_store import SAID

PAGE_BYTES: Final = 2 << 20
"""The maximum size of a page in stored bytes. What a client may send in one message fits."""
MOST_HELD: Final = 16 << 20
"""The maximum size of all pages that the clients of one token are reading; other readers of that token wait."""
_MOST_ROWS: Final = 500
_WIDEST: Final = 4  # bytes of a character
CUT: Final = "cut"
"""The key in the payload of an entry that is not whole; its text says what is missing, and where it is."""

Hold: TypeAlias = Callable[[int], Awaitable[Callable[[], None]]]
"""Waits until a client's request may hold so many bytes. Returns a function that releases them before its end."""


async def hold_freely(_size: int) -> Callable[[], None]:
    """Let a reader in this process hold what it reads."""
    return lambda: None


async def read_page(  # noqa: PLR0913 as in the store
    store: TurnStore,
    line: str,
    *,
    since: int = 0,
    before: int = LARGEST_NUMBER,
    kinds: Collection[str] = SAID,
    count: int = _MOST_ROWS,
    is_newest: bool = False,
    with_removed: bool = False,
) -> HistoryPage:
    """Return the first page of a conversation between two numbers, or with `is_newest` the last one.

    An entry that is larger than a page is cut: it keeps the beginnings of its texts, and says what is missing.
    """
    page = await store.history_page(
        line,
        since=since,
        before=before,
        kinds=kinds,
        count=count,
        most_bytes=PAGE_BYTES,
        is_newest=is_newest,
        with_removed=with_removed,
    )
    if len(page.entries) != 1:
        return page
    return replace(page, entries=[await asyncio.to_thread(_cut, line, page.entries[0])])


async def read_pages(
    store: TurnStore,
    line: str,
    *,
    kinds: Collection[str],
    since: int = 0,
    before: int = LARGEST_NUMBER,
    is_newest: bool = False,
    with_removed: bool = False,
) -> AsyncGenerator[list[Entry], None]:
    """Yield a conversation a page at a time; with `is_newest`, the newest page and the newest entry come first."""
    is_last = False
    while not is_last:
        page = await read_page(
            store,
            line,
            since=since,
            before=before,
            kinds=kinds,
            is_newest=is_newest,
            with_removed=with_removed,
        )
        is_last = page.is_last
        if not page.entries:
            return
        if is_newest:
            before = page.entries[0].seq
        else:
            since = page.entries[-1].seq
        yield page.entries[::-1] if is_newest else page.entries


def _cut(line: str, entry: Entry) -> Entry:
    """Return an entry that fits on a page, the same one if it does."""
    if len(dump(entry.payload).encode()) <= PAGE_BYTES:
        return entry
    left = PAGE_BYTES // _WIDEST
    kept, lacking = dict[str, Any](), list[str]()  # Any: JSON
    for name, value in entry.payload.items():
        part, lost = _shorten(value, left // 2)
        left -= len(part) if isinstance(part, str) else len(dump(part))
        if lost and not isinstance(part, str | list):
            lacking.append(f"`{name[:80]}`")
            continue
        kept[name] = part
        if lost:
            lacking.append(f"{lost:,} characters of `{name[:80]}`")
    path = f"/api/v1/agents/{agent_of(line)}/messages?after={entry.seq - 1}&count=1"
    if id_of(line) != MAIN:
        path = f"{path}&conversation={id_of(line)}"
    why = f"[Cut here: {', '.join(lacking[:8])} left out. Whole: GET {path}]"
    text = kept.get("text")
    kept |= {CUT: why, "text": f"{text}\n{why}" if isinstance(text, str) and text else why}
    return replace(entry, payload=kept)


def _shorten(value: Any, most: int) -> tuple[Any, int]:  # Any: JSON
    """Return a value of at most so many characters, and how many are missing; None if nothing of it can be kept.

    Of the calls of a reply, names stay, and their arguments are cut.
    """
    if isinstance(value, str):
        return value[:most], max(len(value) - most, 0)
    size = len(dump(value))
    if size <= most:
        return value, 0
    kept, left = list[Any](), most
    is_calls = isinstance(value, list) and all(
        isinstance(call, dict) and "arguments" in call for call in value
    )
    for call in value if is_calls else ():
        few = {name: str(call.get(name, ""))[: left // 4] for name in ("id", "name", "arguments")}
        left -= sum(map(len, few.values())) + 40  # and the keys
        if left < 0:
            break
        kept.append(few)
    return (kept if kept else None), size - (len(dump(kept)) if kept else 0)

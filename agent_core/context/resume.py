"""A conversation taken up from storage: the newest visible summary, and every entry after what it covers."""

from collections.abc import Callable, Sequence

from ..messages import Message
from ..storage import Entry, Store, Turn
from .history import History, Summary
from .room import KIND

ReadEntries = Callable[[Sequence[Entry]], Sequence[Message]]
"""Entries of a journal → what the model reads of them."""


async def resume(store: Store, agent: str, history: History, read: ReadEntries) -> None:
    """Make the history what storage says that it is, as after a restart or when turns were taken out of it."""
    history.clear()
    found = await store.history(agent, kinds=(KIND,))
    since = 0
    if found:
        summary = Summary.read(found[-1].payload, found[-1].seq, is_imported=found[-1].is_imported)
        history.compact(summary)
        since = summary.upto
    for entry in await store.history(agent, since=since):
        history.add(entry.turn, read([entry]), entry.seq, entry.payload.get("chars", 0))


async def pop(store: Store, agent: str) -> list[Entry]:
    """Take the last turn in which something was said out of the history, with summaries made after it; its entries."""
    while entries := await store.hide_last_turn(agent):
        if any(entry.kind != KIND for entry in entries):
            return entries
    return []


async def claim(store: Store, agent: str, owner: str) -> Turn | None:
    """The turn that was left open, or one for what waits; a summary that was asked for and not made is given up."""
    while (claimed := await store.next(agent, owner)) is not None and claimed.event.kind == KIND:
        await store.finish(claimed.id, claimed.attempt)
    return claimed

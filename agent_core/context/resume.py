"""Restores a conversation from storage: the newest visible summary, and every entry after what it covers."""

from collections.abc import Callable, Sequence

from agent_core.base.messages import Message
from agent_core.storage import ClaimedTurn, Entry, TurnStore

from .history import History, Summary
from .room import KIND

ReadEntries = Callable[[Sequence[Entry]], Sequence[Message]]
"""Entries of a journal → what the model reads of them."""


async def resume(store: TurnStore, agent: str, history: History, read: ReadEntries) -> None:
    """Rebuild the history from storage, as after a restart or when turns were removed from it."""
    history.clear()
    entries = await store.history(agent, kinds=(KIND,))
    since = 0
    if entries:
        summary = Summary.read(entries[-1].payload, entries[-1].seq, is_imported=entries[-1].is_imported)
        history.compact(summary)
        since = summary.upto
    for entry in await store.history(agent, since=since):
        history.add(entry.turn, read([entry]), entry.seq, entry.payload.get("chars", 0))


async def pop(store: TurnStore, agent: str) -> list[Entry]:
    """Remove the last turn in which something was said, with later summaries, from the history; return its entries."""
    while entries := await store.hide_last_turn(agent):
        if any(entry.kind != KIND for entry in entries):
            return entries
    return []


async def claim(store: TurnStore, agent: str, owner: str) -> ClaimedTurn | None:
    """Return the open turn, or a new one for what is waiting; a requested summary that was never made is abandoned."""
    while (claimed := await store.next(agent, owner)) is not None and claimed.event.kind == KIND:
        await store.finish(claimed.id, claimed.attempt)
    return claimed

"""A conversation in a real store, at times that the test sets."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent_core.base.clock import Clock
from agent_core.memory.archival import Archival
from agent_core.memory.embedding import Embedder
from agent_core.memory.recall import Recall
from agent_core.storage import Entry, Post, Store, open_store


@dataclass
class Talk:
    """The conversation of one agent, and a clock that shows the time that was set."""

    store: Store
    clock: Clock
    at: list[float]

    async def say(
        self, when: str, *messages: tuple[str, str], calls: list[dict[str, Any]] | None = None
    ) -> None:
        """Store one turn with these messages by their speakers."""
        self.at[0] = datetime.fromisoformat(when).timestamp()
        await self.store.post(Post("ann", "message", {"text": ""}))
        turn = await self.store.next("ann", "test")
        assert turn is not None
        await self.store.append(
            turn.id, turn.attempt, turn.n, [_entry(who, text, calls) for who, text in messages]
        )
        await self.store.finish(turn.id, turn.attempt)

    def recall(self, embedder: Embedder | None = None) -> Recall:
        """Reopen the agent's recall memory."""
        return Recall(self.store, "ann", embedder, self.clock)

    def archival(self, embedder: Embedder | None = None) -> Archival:
        """Reopen the agent's archival memory."""
        return Archival(self.store, "ann", embedder, self.clock)


def _entry(who: str, text: str, calls: list[dict[str, Any]] | None) -> Entry:
    if who in ("assistant", "notice"):
        return Entry(who, {"text": text, "calls": calls or []})
    if who == "result":
        return Entry(who, {"call_id": "1", "name": "add_up", "text": text})
    return Entry("user", {"text": text} if who == "user" else {"text": text, "speaker": who})


def open_talk(folder: Path) -> Talk:
    """Return an empty conversation."""
    at = [datetime(2026, 5, 20, 12).timestamp()]
    clock = Clock(now=lambda: at[0])
    return Talk(open_store(folder / "state.db", clock=clock), clock, at)

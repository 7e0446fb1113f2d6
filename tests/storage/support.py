"""Shared by the storage tests: a clock under the test's control, and the first steps of a turn."""

from dataclasses import dataclass, field
from itertools import count

from agent_core.storage import (
    ClaimedTurn,
    Entry,
    Post,
    SaveVersion,
    SetManifest,
    Store,
    Write,
    content_hash,
)


@dataclass
class ManualClock:
    """Time that advances only on request; counted names."""

    time: float = 1_000_000.0
    names: "count[int]" = field(default_factory=lambda: count(1))
    prefix: str = "id"

    def now(self) -> float:
        return self.time

    def new_id(self) -> str:
        return f"{self.prefix}-{next(self.names)}"


async def begin(store: Store, agent: str = "main", owner: str = "here") -> ClaimedTurn:
    """Return a claimed turn of a new event."""
    await store.post(Post(agent, "user", {"text": "hello"}))
    turn = await store.next(agent, owner)
    assert turn is not None
    return turn


async def say(store: Store, *texts: str, agent: str = "main") -> ClaimedTurn:
    """Store a finished turn with these entries."""
    turn = await begin(store, agent)
    await store.append(turn.id, turn.attempt, 0, [user(text) for text in texts])
    await store.finish(turn.id, turn.attempt)
    return turn


def user(text: str) -> Entry:
    return Entry("user", {"text": text})


def texts(entries: list[Entry]) -> list[str]:
    return [entry.payload["text"] for entry in entries]


def saving(module: str, source: str, expected: str | None = None) -> list[Write]:
    """Return the writes of a module's new version and of the manifest that points to it."""
    version = content_hash(source)
    return [SaveVersion(module, version, source), SetManifest(module, expected, version)]

"""Conversations and notes with questions, read from files and saved where the product keeps them: a real store.

Two file formats: conversations (`sessions` of messages, questions with `evidence`) and notes (`scenario`, questions
with the text of their `source`). The files are given by path and are not part of the project.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

from agent_core.base.clock import Clock
from agent_core.memory.archival import Archival
from agent_core.memory.embedding import Embedder, EmbeddingUnavailable, embedder
from agent_core.memory.recall import Recall
from agent_core.memory.vectors import ShelfVectors
from agent_core.storage import Entry, MemoryStore, Post, Store, open_store
from tests.kit.postgres import Server

AGENT: Final = "reader"
MODELS: Final = ("wordllama", "e5", "minilm", "none")
_DATE: Final = "%I:%M %p on %d %B, %Y"
_DAY: Final = 86_400.0
_ENOUGH: Final = 0.8
_FEWEST: Final = 2


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the `seq` of each row that answers it."""

    text: str
    category: int
    gold: frozenset[int]


@dataclass(slots=True)
class Hands:
    """A clock that shows the time that was set."""

    at: float = 0.0
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Clock(now=lambda: self.at)


@dataclass(frozen=True, slots=True)
class Read:
    """One conversation or set of notes as the product stores it."""

    name: str
    memory: Any  # Any: Recall or Archival, depending on the file's format
    kept: MemoryStore
    questions: tuple[Question, ...]


def load(path: Path) -> list[dict[str, Any]]:  # Any: JSON
    """Return the conversations or scenarios of a file."""
    read: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return read


async def model_named(name: str) -> Embedder | None:
    """Return the model of that name, loaded: search works without it, but then no figures may carry its name.

    Raises:
        EmbeddingUnavailable: it cannot be used here.
    """
    model = embedder(name)
    if model is not None:
        await model.embed(["word"])
    return model


def checked(vectors: ShelfVectors) -> None:
    """Raise EmbeddingUnavailable if some search or text had to do without vectors."""
    if vectors.trouble:
        raise EmbeddingUnavailable(vectors.trouble)


def is_talk(one: dict[str, Any]) -> bool:  # Any: JSON
    """Check whether it is a conversation between people, with dates and speakers."""
    return "sessions" in one


@asynccontextmanager
async def reading(
    one: dict[str, Any],  # Any: JSON
    embedder: Embedder | None,
    server: Server | None = None,
) -> AsyncIterator[Read]:
    """Save a conversation or scenario in a fresh store, indexed and embedded: a file, or a database."""
    hands = Hands()
    with TemporaryDirectory() as folder:
        store = open_store(
            _database(server) if server else Path(folder) / "state.db", clock=hands.clock
        )
        try:
            put = _talk if is_talk(one) else _notes
            yield await put(one, store, hands, embedder)
        finally:
            await store.close()


def _database(server: Server) -> str:
    name = f"recall_{uuid4().hex}"
    server.execute(f"create database {name}")
    return server.url(name)


async def _talk(
    one: dict[str, Any], store: Store, hands: Hands, embedder: Embedder | None
) -> Read:  # Any: JSON
    ids: list[str] = []
    for session in one["sessions"]:
        hands.at = datetime.strptime(session["date_time"], _DATE).timestamp()
        ids += [message["id"] for message in session["messages"]]
        await _say(store, [_entry(message) for message in session["messages"]])
    hands.at += _DAY
    recall = Recall(store, AGENT, embedder, hands.clock)
    await recall.catch_up()
    await recall.vectors.embed_all()
    checked(recall.vectors)
    seqs = dict(zip(ids, [entry.seq for entry in await store.history(AGENT)], strict=True))
    asked = [
        Question(
            each["question"],
            each["category"],
            frozenset(seqs[id] for id in each["evidence"] if id in seqs),
        )
        for each in one["questions"]
    ]
    return Read(one["id"], recall, store, tuple(each for each in asked if each.gold))


def _entry(message: dict[str, Any]) -> Entry:  # Any: JSON
    caption = message.get("image_caption")
    text = f"{message['text']} [photo: {caption}]" if caption else message["text"]
    return Entry("user", {"text": text, "speaker": message["speaker"]})


async def _say(store: Store, entries: list[Entry]) -> None:
    """Store one turn with these messages."""
    await store.post(Post(AGENT, "message", {"text": ""}))
    turn = await store.next(AGENT, "bench")
    assert turn is not None
    await store.append(turn.id, turn.attempt, turn.n, entries)
    await store.finish(turn.id, turn.attempt)


async def _notes(
    one: dict[str, Any], store: Store, hands: Hands, embedder: Embedder | None
) -> Read:  # Any: JSON
    archival = Archival(store, AGENT, embedder, hands.clock)
    texts = [text for talk in one["conversations"] for text in talk["messages"] if text.strip()]
    for text in texts:
        hands.at += 1
        await store.apply((await archival.insert(text)).writes)
    await archival.vectors.embed_all()
    checked(archival.vectors)
    _, newest = await store.list_passages(AGENT, (), 0, len(texts))
    seqs = [row.seq for row in reversed(newest)]
    words = [_triples(text) for text in texts]
    asked = [
        Question(
            each["question"], 0, frozenset(seqs[place] for place in _sources(each["source"], words))
        )
        for each in one["questions"]
    ]
    return Read(one["scenario"], archival, store, tuple(each for each in asked if each.gold))


def _triples(text: str) -> set[tuple[str, str, str]]:
    words = re.findall(r"[^\W_]+", text.lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def _sources(source: str | list[str], texts: list[set[tuple[str, str, str]]]) -> Iterable[int]:
    """Return the texts that share nearly as many word triples with the source as the best one."""
    wanted = set().union(
        *(_triples(part) for part in ([source] if isinstance(source, str) else source))
    )
    shared = [len(wanted & text) for text in texts]
    most = max(shared)
    return [
        place for place, count in enumerate(shared) if most >= _FEWEST and count >= _ENOUGH * most
    ]

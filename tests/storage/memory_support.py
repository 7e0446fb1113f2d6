"""Shared by the tests of passages and searches: quickly made rows, and plain scores for comparison."""

import struct
from collections import defaultdict
from collections.abc import Sequence
from math import log

from agent_core.storage import Hit, PassageRow, RecallMessage, SavePassages, Store


def passage(id: str, words: str, agent: str = "main", **more: object) -> PassageRow:
    return PassageRow(id, agent, f"text: {words}", words, 1.0, **more)  # type: ignore[arg-type]


async def insert(store: Store, *words: str, agent: str = "main", prefix: str = "p") -> None:
    rows = (
        passage(f"{prefix}{n}", text, agent, document=prefix, n=n) for n, text in enumerate(words)
    )
    await store.apply([SavePassages(tuple(rows))])


def message(seq: int, text: str = "hello", agent: str = "main", **more: object) -> RecallMessage:
    more = {"n": seq, "at": float(seq), "speaker": "user", **more}
    return RecallMessage(seq, agent, text=text, words=text, line=agent, **more)  # type: ignore[arg-type]


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


async def found(store: Store, hits: Sequence[Hit]) -> list[str]:
    """Return the ids of the passages found, best first."""
    names = {row.seq: row.id for row in await store.passages([hit.seq for hit in hits])}
    return [names[hit.seq] for hit in hits]


def rarity(rows: Sequence[str], asked: Sequence[str]) -> dict[int, float]:
    """Return the score of each row that has one: BM25 with each word counted once, regardless of length."""
    scores: dict[int, float] = defaultdict(float)
    for word in set(asked):
        holding = [place for place, row in enumerate(rows) if word in row.split()]
        for place in holding:
            scores[place] += log(1 + (len(rows) - len(holding) + 0.5) / (len(holding) + 0.5))
    return scores

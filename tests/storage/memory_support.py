"""What the tests of passages and searches share: rows that are quickly made, and a plain BM25 to compare with."""

import struct
from collections import Counter
from collections.abc import Sequence
from math import log

from agent_core.storage import Hit, PassageRow, Said, SavePassages, Store


def passage(id: str, words: str, agent: str = "main", **more: object) -> PassageRow:
    return PassageRow(id, agent, f"text: {words}", words, 1.0, **more)  # type: ignore[arg-type]


async def insert(store: Store, *words: str, agent: str = "main", prefix: str = "p") -> None:
    rows = (passage(f"{prefix}{n}", text, agent, document=prefix, n=n) for n, text in enumerate(words))
    await store.apply([SavePassages(tuple(rows))])


def message(seq: int, text: str = "hello", agent: str = "main", **more: object) -> Said:
    more = {"n": seq, "at": float(seq), "speaker": "user", **more}
    return Said(seq, agent, text=text, words=text, **more)  # type: ignore[arg-type]


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


async def found(store: Store, hits: Sequence[Hit]) -> list[str]:
    """The ids of the passages that were hit, best first."""
    names = {row.seq: row.id for row in await store.memory.passages([hit.seq for hit in hits])}
    return [names[hit.seq] for hit in hits]


def bm25(rows: Sequence[str], asked: Sequence[str]) -> dict[int, float]:
    """The score of each row that has one, as the textbook has it."""
    counts = [Counter(row.split()) for row in rows]
    average = sum(map(Counter.total, counts)) / len(counts)
    scores: dict[int, float] = Counter()  # type: ignore[assignment]
    for word in set(asked):
        holding = sum(word in count for count in counts)
        weight = log(1 + (len(rows) - holding + 0.5) / (holding + 0.5))
        for place, count in enumerate(counts):
            if times := count[word]:
                norm = 1.2 * (1 - 0.75 + 0.75 * count.total() / average)
                scores[place] += weight * times * 2.2 / (times + norm)
    return scores

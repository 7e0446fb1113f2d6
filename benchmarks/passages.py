"""Search among many passages: `python -m benchmarks.passages [PATH …] [--passages N] [--postgresql] [--json]`.

Sentences come from the files (JSON, JSON lines or text; also `BENCH_SENTENCES`, paths separated by `:`) and are
recombined until there are enough distinct passages; without files they are generated from a vocabulary by Zipf's law.
Vectors come from the default model. The references are FTS5 and a product with all vectors.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from agent_core.base.clock import Clock
from agent_core.storage import PassageRow, SavePassages, SaveVectors, Store, open_store
from benchmarks.measure import Row, line, median_ms, timed
from benchmarks.passages_texts import Floats, Texts, embed, exact_scores, texts
from tests.kit.postgres import Server

SMALL, BATCH, SPACE = 10, 1000, "bench"
PATHS = "BENCH_SENTENCES"
TOP = 10
SAME = 1e-3


@dataclass(frozen=True, slots=True)
class Vectors:
    """One vector for each passage and each question."""

    passages: Floats
    questions: Floats


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passages", description=__doc__)
    given = os.environ.get(PATHS, "")
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[Path(one) for one in given.split(":") if one]
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=60, help="questions of each kind")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    parser.add_argument(
        "--postgresql", action="store_true", help="in a database of the run's own, not in a file"
    )
    options = parser.parse_args()
    found = texts(options.paths, options.passages, options.rounds)
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        ExitStack() as stack,
    ):  # the disk of the workspace
        server = Server.make() if options.postgresql else None
        if server:
            stack.callback(server.remove)
        rows, shares = asyncio.run(measure(Path(folder), found, server))
    if options.json:
        print(
            json.dumps(
                {"rows": [{**asdict(row), "met": row.is_met} for row in rows], "shares": shares}
            )
        )
        return
    for row in rows:
        print(line(row))
    for name, share in shares.items():
        print(f"{name:60} {share:8.4f}")


async def measure(
    folder: Path, found: Texts, server: Server | None = None
) -> tuple[list[Row], dict[str, float]]:
    """Return all rows and all shares."""
    vectors = Vectors(await embed(found.passages), await embed(found.questions))
    path = server.url() if server else folder / "state.db"
    async with open_store(path, clock=Clock()) as store:
        small = len(found.passages) // SMALL
        await fill(store, "small", found.words[:small], vectors.passages[:small])
        bulk = await timed(fill(store, "large", found.words, vectors.passages)) / len(found.words)
    rows = [Row("a passage in bulk, with its vector, on disk", 1000 * bulk, aim=0.1)]
    async with open_store(path, clock=Clock()) as store:
        search = Search(store, vectors, _fts(folder / "fts.db", found.words))
        rows += await search.first()
        rows += await search.by_words("natural questions", found.asked)
        rows += await search.by_words("very frequent words", found.frequent)
        rows += await search.by_meaning(found.asked)
        shares = await search.shares(found)
        rows += await search.after_adding(found.asked)
        rows += await search.for_comparison(found.asked)
    return rows, shares


async def fill(store: Store, agent: str, words: Sequence[str], vectors: Floats) -> None:
    """Store passages and their vectors, a thousand per transaction."""
    before = await store.unembedded("archival", SPACE, 1)
    assert not before
    for start in range(0, len(words), BATCH):
        rows = (
            PassageRow(f"{agent}-{start + n}", agent, one, one, 0.0)
            for n, one in enumerate(words[start : start + BATCH])
        )
        await store.apply([SavePassages(tuple(rows))])
        fresh = await store.unembedded("archival", SPACE, BATCH)
        pairs = zip(fresh, vectors[start : start + BATCH], strict=True)
        await store.apply(
            [SaveVectors("archival", SPACE, tuple((seq, one.tobytes()) for (seq, _), one in pairs))]
        )


def _fts(path: Path, words: Sequence[str]) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.execute("create virtual table found using fts5(words, content='', tokenize='porter')")
    with db:
        db.executemany("insert into found (rowid, words) values (?, ?)", enumerate(words, 1))
    return db


class Taken:
    """The wall-clock and CPU times of one operation; other processes disturb CPU time less."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.worked: list[float] = []

    async def add(self, act: Awaitable[object]) -> None:
        """Add a measurement."""
        began = time.process_time()
        self.seconds.append(await timed(act))
        self.worked.append(time.process_time() - began)

    @property
    def ms(self) -> float:
        """The median in milliseconds."""
        return median_ms(self.seconds)

    @property
    def worked_ms(self) -> float:
        """The median CPU milliseconds."""
        return median_ms(self.worked)

    def times(self, other: "Taken") -> float:
        """Return the ratio to the other operation's CPU time."""
        return self.worked_ms / other.worked_ms


class Search:
    """Times the questions one after another, alternating with what they are compared with."""

    def __init__(self, store: Store, vectors: Vectors, fts: apsw.Connection) -> None:
        self._store, self._vectors, self._fts = store, vectors, fts

    async def first(self) -> list[Row]:
        """Return the one-time cost for a process."""
        words = await timed(self._words("large", ["first"]))
        return [
            Row("words: the first search of a process", 1000 * words),
            Row(
                "vectors: the first search of a process", 1000 * await timed(self._near("large", 0))
            ),
        ]

    async def _words(self, agent: str, words: Sequence[str]) -> list[int]:
        return [hit.seq for hit in await self._store.search_words("archival", agent, words, TOP)]

    async def _near(self, agent: str, number: int) -> list[int]:
        vector = self._vectors.questions[number].tobytes()
        return [
            hit.seq
            for hit in await self._store.search_vector("archival", agent, SPACE, vector, TOP)
        ]

    async def _match(self, words: Sequence[str]) -> list[tuple[Any, ...]]:  # Any: columns
        asked = " OR ".join(f'"{word}"' for word in words)
        return list(
            self._fts.execute(
                "select rowid from found where found match ? order by rank limit 10", (asked,)
            )
        )

    async def by_words(self, what: str, asked: Sequence[Sequence[str]]) -> list[Row]:
        """Compare with fewer passages, and with FTS5."""
        for agent in ("large", "small"):
            await self._words(agent, asked[0])
        large, small, fts = Taken(), Taken(), Taken()
        for words in asked:
            await large.add(self._words("large", words))
            await small.add(self._words("small", words))
        for (
            words
        ) in asked:  # separately: a process that has just worked long waits for the CPU first
            await fts.add(self._match(words))
        return [
            Row(f"words: {what}", large.ms, aim=5),
            Row(
                "  in processor time",
                large.worked_ms,
                "among a tenth",
                large.times(small),
                SMALL / 2,
            ),
            Row("  by FTS5 and its bm25", fts.ms, "ours, processor time", fts.times(large)),
        ]

    async def by_meaning(self, asked: Sequence[Sequence[str]]) -> list[Row]:
        """Compare a search by meaning only with a product over every vector, and with a search that adds words."""
        near, small, product, both = Taken(), Taken(), Taken(), Taken()
        for number, words in enumerate(asked):
            await near.add(self._near("large", number))
            await small.add(self._near("small", number))
            await both.add(self._both(number, words))
        for number in range(len(asked)):  # separately: the product's own threads spin for a while
            await product.add(self._product(number))
        return [
            Row("vectors", near.ms),
            Row("  in processor time", near.worked_ms, "among a tenth", near.times(small)),
            Row(
                "  by a product with all float32",
                product.ms,
                "ours, processor time",
                product.times(near),
            ),
            Row("words and vectors", both.ms, aim=30),
            Row("  in processor time", both.worked_ms),
        ]

    async def _both(self, number: int, words: Sequence[str]) -> None:
        await self._words("large", words)
        await self._near("large", number)

    async def _product(self, number: int) -> set[int]:
        scores = self._vectors.passages @ self._vectors.questions[number]
        return set(np.argpartition(scores, -TOP)[-TOP:].tolist())

    async def after_adding(self, asked: Sequence[Sequence[str]]) -> list[Row]:
        """Add a passage, then search."""
        added, searched = [], []
        for number, words in enumerate(asked):
            row = PassageRow(f"later-{number}", "large", "one more", "one more", 0.0)
            added.append(await timed(self._store.apply([SavePassages((row,))])))
            searched.append(await timed(self._words("large", words)))
        return [
            Row("one more passage", median_ms(added)),
            Row("words: right after one more passage", median_ms(searched)),
        ]

    async def for_comparison(self, asked: Sequence[Sequence[str]]) -> list[Row]:
        """Return the cost of any query to the store: on a busy machine, most of what a search takes."""
        idle = Taken()
        for _ in asked:
            await idle.add(self._store.memory_counts("large"))
        return [
            Row("a question that computes nothing", idle.ms),
            Row("  in processor time", idle.worked_ms),
        ]

    async def shares(self, found: Texts) -> dict[str, float]:
        """Return the share of the exact top ten that was found; rows of `large` are numbered after those of `small`."""
        offset = len(found.words) // SMALL + 1
        near = [
            len(
                {seq - offset for seq in await self._near("large", number)}
                & await self._product(number)
            )
            for number in range(len(found.questions))
        ]
        shares = {"vectors: recall@10 against all float32": sum(near) / TOP / len(near)}
        for what, asked in (
            ("natural questions", found.asked),
            ("very frequent words", found.frequent),
        ):
            best = exact_scores(found.words, asked)
            hits = [
                await self._store.search_words("archival", "large", words, TOP) for words in asked
            ]
            pairs = [
                pair
                for ours, exact in zip(hits, best, strict=True)
                for pair in zip(ours, exact, strict=True)
            ]
            same = sum(abs(hit.score - score) < SAME for hit, score in pairs)
            shares[f"words: first ten as by an exact search, {what}"] = same / len(pairs)
        return shares


if __name__ == "__main__":
    main()

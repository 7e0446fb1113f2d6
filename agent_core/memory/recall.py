"""Recall: everything that was said, found by words, meaning and time.

The journal is the truth; the index of words and the vectors follow it when something is searched, and in the
background after a turn. A search gathers a few hundred rows and sums their signals by the weights.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..aside import aside
from ..clock import Clock
from ..embedding import Embedder
from ..storage import MemoryStore, Said, SaveSaid, Store
from . import asked, dates, hints, words
from .found import Found, Item, page_of
from .gathered import Evidence, Row, row
from .said import KINDS, derive, lines
from .vectors import BATCH, Vectors
from .weighing import Weighing
from .weights import pool

PAGE: Final = 10
_CACHED: Final = 20_000
_MESSAGES: Final = "messages"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows in their order, best first; `found` of them hold the words or are near, as many as are shown."""

    asked: asked.Asked
    rows: list[Said]
    found: int


class Recall:
    """The record of one agent's conversation."""

    def __init__(  # noqa: PLR0913 what it stands on, one thing each
        self,
        store: Store,
        kept: MemoryStore,
        agent: str,
        embedder: Embedder | None,
        clock: Clock,
        *,
        gap_minutes: float = 60,
    ) -> None:
        self.vectors = Vectors(store, kept, "recall", embedder)
        self.weighing = Weighing(embedder)
        self._store = store
        self._kept = kept
        self._agent = agent
        self._clock = clock
        self._gap_minutes = gap_minutes
        self._rows: dict[int, Row] = {}
        self._places: dict[int, int] = {}
        self._speakers: set[str] = set()
        self._following = asyncio.Lock()

    async def catch_up(self) -> int:
        """Index what was said since the last time, and embed it; how many messages were new.

        More than a batch of vectors that lack is left to `vectors.embed_all`, in the background.
        """
        async with self._following:
            last = await self._kept.last_said(self._agent)
            entries = await self._store.history(self._agent, since=last.seq if last else 0, kinds=KINDS)
            found = lines(entries)
            size = sum(len(each.text) for each in found)
            said = await aside(size, derive, self._agent, found, last, self._gap_minutes)
            for start in range(0, len(said), BATCH):
                await self._store.apply([SaveSaid(tuple(said[start : start + BATCH]))])
            await self.vectors.embed()
        return len(said)

    async def search(self, query: str, page: int = 0, count: int = PAGE) -> Found:
        """The messages that fit a question best, a page of them from 0."""
        await self.catch_up()
        ranking = await self.rank(query)
        rows, question = ranking.rows[: ranking.found], ranking.asked
        shown = page_of(rows, page, count)
        notes = hints.of(question, [each.text for each in shown], self.vectors.trouble)
        return Found(_MESSAGES, _items(shown), page, len(rows), count, frozenset(question.terms), notes)

    async def between(self, start: float, end: float, page: int = 0, count: int = PAGE) -> Found:
        """The messages from `start` until before `end`, oldest first."""
        await self.catch_up()
        total, rows = await self._kept.said_between(self._agent, start, end, max(page, 0) * count, count)
        return Found(_MESSAGES, _items(rows), page, total, count)

    async def on_dates(self, first: str, last: str, page: int = 0, count: int = PAGE) -> Found:
        """The messages from the begin of one time until the end of another, each as people write it.

        Raises:
            UsageError: one of them is no date that can be read.
        """
        now = self._clock.now()
        start, end = dates.read(first, now), dates.read(last or first, now)
        return await self.between(min(start[0], end[0]), max(start[1], end[1]), page, count)

    async def rank(self, query: str) -> Ranking:
        """Every row that may fit, in the order of the weighted sum of its signals."""
        evidence, hits = await self.gather(query)
        order = await self.weighing.order(evidence, self.vectors.recipe)
        return Ranking(evidence.asked, [evidence.rows[place].said for place in order], len(hits))

    async def gather(self, query: str) -> tuple[Evidence, set[int]]:
        """The rows to weigh, and which of them a search found."""
        limits, query = pool("recall"), asked.heard(query)
        if len(self._rows) > _CACHED:
            self._rows.clear()
            self._places.clear()
        sought = words.content(query) or words.split(query)
        worded = await self._kept.search_words("recall", self._agent, sought, limits["words"])
        if not self._speakers:
            await self._load(hit.seq for hit in worded)
        question = asked.read(query, self._speakers, self._clock.now())
        vector = await self.vectors.of(question.about)
        near = await self.vectors.near(self._agent, vector, limits["vectors"])
        hits = {hit.seq for hit in [*worded, *near]}
        await self._load(hits)
        ranked = [hit.seq for hit in [*worded[: limits["beside"]], *near[: limits["beside"]]]]
        rows = await self._with_neighbours(hits, ranked, limits["around"])
        cosines = await self.vectors.cosines(self._agent, vector, [each.said.seq for each in rows])
        total = (await self._kept.counts(self._agent)).messages
        evidence = Evidence(question, rows, frozenset(hit.seq for hit in worded), cosines, total)
        return evidence, hits

    async def _with_neighbours(self, hits: Collection[int], best: Iterable[int], around: int) -> list[Row]:
        numbers = {self._rows[seq].said.n for seq in hits if seq in self._rows}
        for seq in best:
            n = self._rows[seq].said.n
            numbers.update(range(max(0, n - around), n + around + 1))
        missing = [n for n in numbers if n not in self._places]
        await self._keep(await self._kept.said_beside(self._agent, missing) if missing else [])
        return [self._rows[self._places[n]] for n in sorted(numbers) if n in self._places]

    async def _load(self, seqs: Iterable[int]) -> None:
        """Rows that are needed and not at hand; what was said never changes, so that what was read stays."""
        missing = [seq for seq in seqs if seq not in self._rows]
        await self._keep(await self._kept.said(self._agent, missing) if missing else [])

    async def _keep(self, said: Sequence[Said]) -> None:
        rows = await aside(sum(len(each.text) for each in said), lambda: [*map(row, said)])
        for each in rows:
            self._rows[each.said.seq] = each
            self._speakers.add(each.said.speaker)
            self._places[each.said.n] = each.said.seq


def _items(rows: Iterable[Said]) -> tuple[Item, ...]:
    return tuple(Item(each.seq, each.text, each.at, each.speaker) for each in rows)

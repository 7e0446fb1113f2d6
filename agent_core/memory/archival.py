"""Archival memory: passages that an agent stored, or that were cut from its sources, found by words and meaning.

A passage is not part of a dialog: its words and its meaning count, and the neighboring passages a little.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import UsageError
from agent_core.base.receipt import Receipt
from agent_core.storage import DropPassages, MemoryStore, PassageRow, Plan, SavePassages

from . import words
from .search import (
    FoundItem,
    ParsedQuery,
    ResultPage,
    bounded,
    heard,
    page_of,
    pool,
    read_query,
    weights,
)
from .vectors import ShelfVectors

if TYPE_CHECKING:
    from agent_core.base.clock import Clock

    from .embedding import Embedder

PAGE: Final = 5
_PASSAGES: Final = "passages"
_SHOWN_ID: Final = 18  # the time in milliseconds and twelve random bits
_ID_FROM: Final = 4


class Archival:
    """The passages of one agent."""

    def __init__(
        self, store: MemoryStore, agent: str, embedder: "Embedder | None", clock: "Clock"
    ) -> None:
        self.vectors = ShelfVectors(store, "archival", embedder)
        self._store = store
        self._agent = agent
        self._clock = clock

    async def insert(self, content: str, tags: Iterable[str] = ()) -> Plan:
        """Return the planned edit that stores a passage of the agent's own.

        Raises:
            UsageError: the content is empty.
        """
        text = content.strip()
        if not text:
            raise UsageError("`content` is empty, so there is nothing to keep.")
        passage = self.passage(text, tags=_tags(tags))
        total = (await self._store.memory_counts(self._agent)).passages + 1
        many = f"{total} passage{'s' * (total != 1)}"
        message = f"Kept as {passage.id[:_SHOWN_ID]}; archival memory now holds {many}."
        did = Receipt.from_json({"remembered": ["archival memory"]})
        return Plan(message, writes=(SavePassages((passage,)),), did=did)

    def passage(
        self,
        text: str,
        source: str = "",
        place: str = "",
        document: str = "",
        n: int = 0,
        *,
        tags: tuple[str, ...] = (),
        id: str = "",
    ) -> PassageRow:
        """Return a passage to save: at position `n` of a document, given by its content hash, or the agent's own."""
        now = self._clock.now()
        indexed = words.indexed(text, None if document else now, tags)
        return PassageRow(
            id or self._clock.new_id(),
            self._agent,
            text,
            indexed,
            now,
            tags,
            source,
            place,
            document,
            n,
        )

    async def delete(self, id: str) -> Plan:
        """Return the planned edit that deletes the passage with this id prefix.

        Raises:
            UsageError: there is none, or there are several.
        """
        begins = id.strip()
        ids = await self._store.passage_ids(self._agent, begins) if len(begins) >= _ID_FROM else []
        if len(ids) != 1:
            many = f"{len(ids)} passages begin so: {', '.join(ids)}." if ids else ""
            raise UsageError(
                f"No one passage has the id `{id}`. {many}".strip(), fix="Use an id from a search."
            )
        return Plan(
            f"Deleted {ids[0][:_SHOWN_ID]}.", writes=(DropPassages(self._agent, (ids[0],)),)
        )

    async def search(
        self, query: str, tags: Iterable[str] = (), page: int = 0, count: int = PAGE
    ) -> ResultPage:
        """Return a page, counted from 0, of the passages that have all of these tags, best match first."""
        await self.vectors.embed()
        required_tags = _tags(tags)
        if not query.strip():  # the newest ones first
            skipped, count = bounded(page, count)
            total, rows = await self._store.list_passages(
                self._agent, required_tags, skipped, count
            )
            return ResultPage(
                _PASSAGES, tuple(map(_item, rows)), page, total, count, is_usual=count == PAGE
            )
        question = await read_query(heard(query), (), self._clock.now())
        ranked = await self.rank(question, required_tags)
        return page_of(
            _PASSAGES,
            question,
            ranked,
            _item,
            page,
            count,
            usual=PAGE,
            trouble=self.vectors.trouble,
        )

    async def rank(self, query: ParsedQuery, tags: Collection[str] = ()) -> list[PassageRow]:
        """Return the passages with all of these tags that contain a word of the query or are similar to it."""
        limits = pool("archival")
        candidates = await self._store.tagged(self._agent, tags) if tags else None
        worded = await self._store.search_words(
            "archival", self._agent, query.words, limits["words"], candidates
        )
        vector = await self.vectors.of(query.text)
        neighbors = await self.vectors.near(self._agent, vector, limits["vectors"], candidates)
        rows = await self._store.passages({hit.seq for hit in [*worded, *neighbors]})
        cosines = await self.vectors.cosines(self._agent, vector, [row.seq for row in rows])
        total = (
            (await self._store.memory_counts(self._agent)).passages
            if candidates is None
            else len(candidates)
        )
        from . import signals  # noqa: PLC0415 - imports numpy, at the first search

        measured = signals.measure_passages(
            rows, query, {hit.seq for hit in worded}, cosines, total
        )
        order = signals.ordered(measured, weights("archival", self.vectors.recipe), len(rows))
        return [rows[place] for place in order]


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))


def _item(row: PassageRow) -> FoundItem:
    who = ", ".join(filter(None, (row.source, row.place)))
    return FoundItem(row.seq, row.text, row.at, who, row.id[:_SHOWN_ID], row.tags)

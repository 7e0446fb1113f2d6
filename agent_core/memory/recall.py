"""Recall memory: all messages of an agent's conversations, found by words, meaning and time.

One that is deleted, or private to the token that began it, is found in itself alone, and finds itself alone.

The journal is the source of truth; the word index and the vectors are updated before a search, and in the background
after a turn. A search gathers a few hundred rows and ranks them by the weighted sum of their signals; the numeric code
is imported at the first search.

Only the journal's messages from the user and the assistant count. Notices, calls and the answers of functions are left
out: they are the program's words, repeat the content of files and functions, and would outweigh what people said.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.messages import SEND
from agent_core.base.offload import PER_ENTRY, aside, one_at_a_time
from agent_core.base.records import dataclass, field, replace
from agent_core.storage import Entry, RecallMessage, SaveSaid, Store, agent_of
from agent_core.storage.journal import MessageEntry, ReplyEntry, read_entry
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from . import dates, words
from .search import (
    CountedMessage,
    FoundItem,
    RecallEvidence,
    ResultPage,
    bounded,
    coverage,
    heard,
    page_of,
    pool,
    read_query,
    row,
    weights,
)
from .vectors import BATCH, ShelfVectors

if TYPE_CHECKING:
    from agent_core.base.clock import Clock

    from .embedding import Embedder
    from .signals import Lexicon


KINDS: Final = (MessageEntry.kind, ReplyEntry.kind)
_SESSION_GAP_S: Final = 3_600.0  # a longer silence begins a session, for search


@dataclass(frozen=True, slots=True)
class JournalMessage:
    """A message in the journal; `seq` is that of its entry."""

    seq: int
    speaker: str
    text: str
    at: float
    turn: str = ""


async def read_messages(entries: Sequence[Entry]) -> list[JournalMessage]:
    """Return the messages among entries, as `lines` does, without blocking the event loop."""
    return await aside(len(entries) * PER_ENTRY, lines, entries)


def lines(entries: Iterable[Entry]) -> list[JournalMessage]:
    """Return the messages among entries, with a named speaker if set; the sent text replaces the text of a reply."""
    messages: list[JournalMessage] = []
    for entry in entries:
        if entry.kind not in KINDS:
            continue
        said = read_entry(entry)
        if not isinstance(said, MessageEntry | ReplyEntry):
            continue
        calls = said.calls if isinstance(said, ReplyEntry) else ()
        sent = [argument(call.arguments, "message") for call in calls if call.name == SEND]
        if text := ("\n".join(filter(None, sent)) or said.text).strip():
            speaker = said.speaker or entry.kind
            messages.append(JournalMessage(entry.seq, speaker, text, entry.at, entry.turn))
    return messages


def argument(arguments: str, key: str) -> str:
    """Return one argument of a journaled call as text, or "" if it has none."""
    try:
        data = read_json(arguments, LOOSE)
    except Malformed:
        return ""
    return str(data.get(key, "")) if isinstance(data, dict) else ""


def derive(
    line: str, scope: str, messages: Sequence[JournalMessage], last: RecallMessage | None
) -> list[RecallMessage]:
    """Return the rows for these messages of a conversation, which follow `last`. A long silence begins a session.

    They are found in the lane of `scope`.
    """
    rows = []
    for message in messages:
        begins = last is not None and message.at - last.at > _SESSION_GAP_S
        last = RecallMessage(
            seq=message.seq,
            agent=scope,
            n=last.n + 1 if last else 0,
            text=message.text,
            words=words.indexed(message.text, message.at),
            at=message.at,
            speaker=message.speaker,
            session=last.session + begins if last else 0,
            length=len(words.content(message.text)),
            asks=words.asks(message.text),
            timed=dates.are_named(message.text),
            turn=message.turn,
            line=line,
        )
        rows.append(last)
    return rows


PAGE: Final = 10
_CACHED: Final = 20_000
_MAX_PRIVATE_CONVERSATIONS: Final = 50  # of an agent that one search of its owner looks through
_MESSAGES: Final = "messages"


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """Cached messages by sequence number, and the sequence numbers by conversation and position in it."""

    rows: dict[int, CountedMessage] = field(default_factory=dict)
    places: dict[tuple[str, int], int] = field(default_factory=dict)


class Recall:
    """The record of what was said, as one conversation of an agent finds it."""

    def __init__(
        self,
        store: Store,
        line: str,
        embedder: "Embedder | None",
        clock: "Clock",
    ) -> None:
        """Create the record for the conversation of a line; the agent's name is that of the main one."""
        self.vectors = ShelfVectors(store, "recall", embedder)
        self._embedder = embedder
        self._words = embedder.lexicon if embedder else None
        self._lexicon: Lexicon | None = None
        self._store = store
        self._line = line
        self._scope = line
        self._clock = clock
        self._read = ReadMessages()
        self._speakers: set[str] = set()
        self._following = asyncio.Lock()

    @property
    def scope(self) -> str:
        """The lane in which it found messages last: the agent's, or the conversation's own."""
        return self._scope

    async def catch_up(self) -> int:
        """Index and embed new messages; return their number.

        Beyond one batch, missing vectors are left to `vectors.embed_all`, in the background.
        """
        async with self._following:
            scope = await self._store.recall_scope(self._line)
            if scope != self._scope:  # it was deleted or brought back, or this is its first look
                self._scope = scope
                self._read = ReadMessages()
            count = 0
            for line in await self._store.unindexed_lines(self._line):
                count += await self._catch_up(line)
            await self.vectors.embed()
        return count

    async def _catch_up(self, line: str) -> int:
        """Index the new messages of one conversation; return their number."""
        last = await self._store.last_message(line)
        since = last.seq if last else await self._store.branched_at(line)
        messages = await read_messages(await self._store.history(line, since=since, kinds=KINDS))
        size = sum(len(message.text) for message in messages)
        # The word lists for times take a fifth of a second to load, once.
        rows = await one_at_a_time(derive, line, self._scope, messages, last) if size else []
        for start in range(0, len(rows), BATCH):
            await self._store.apply([SaveSaid(tuple(rows[start : start + BATCH]))])
        return len(rows)

    async def search(self, query: str, page: int = 0, count: int = PAGE) -> ResultPage:
        """Return a page, counted from 0, of the messages that fit a question best."""
        await self.catch_up()
        evidence, hits = await self.gather(query)
        rows = (await self.ranked(evidence))[: len(hits)]
        start, most = bounded(page, count)
        names = await self._names(rows[start : start + most])
        return page_of(
            _MESSAGES,
            evidence.question,
            rows,
            partial(_item, names=names),
            page,
            count,
            usual=PAGE,
            trouble=self.vectors.trouble,
        )

    async def search_private(self, query: str, page: int = 0, count: int = PAGE) -> ResultPage:
        """Return a page of the messages that fit a question best in conversations that are private to a token.

        Only the owner of the workspace may see them. They come from the conversations that were used last.
        """
        start, most = bounded(page, count)
        pages = list[ResultPage]()
        terms = set[str]()
        found = list[tuple[int, int, FoundItem]]()
        for conversation in await self._store.private_conversations(
            agent_of(self._line), _MAX_PRIVATE_CONVERSATIONS
        ):
            own = Recall(self._store, conversation.line, self._embedder, self._clock)
            results = await own.search(query, 0, start + most)
            where = conversation.name or conversation.id
            pages.append(results)
            terms |= results.terms
            for place, item in enumerate(results.items):
                covered = coverage(item.text, results.terms)
                found.append((-covered, place, replace(item, where=where)))
        found.sort(key=itemgetter(0, 1))
        items = tuple(item for _, _, item in found[start : start + most])
        missing = [set(results.missing) for results in pages if results.items]
        return ResultPage(
            "private messages",
            items,
            page,
            sum(results.total for results in pages),
            count,
            terms=frozenset(terms),
            missing=tuple(sorted(set.intersection(*missing))) if missing else (),
            trouble=next((results.trouble for results in pages if results.trouble), ""),
            is_usual=count == PAGE,
        )

    async def between(
        self, start: float, end: float, page: int = 0, count: int = PAGE
    ) -> ResultPage:
        """Return the messages from `start` until before `end`, oldest first."""
        skipped, count = bounded(page, count)
        await self.catch_up()
        total, rows = await self._store.messages_between(self._scope, start, end, skipped, count)
        item = partial(_item, names=await self._names(rows))
        return ResultPage(
            _MESSAGES, tuple(map(item, rows)), page, total, count, is_usual=count == PAGE
        )

    async def _names(self, rows: Sequence[RecallMessage]) -> dict[str, str]:
        """Return the names of the conversations of messages, by line, but of this one."""
        names: dict[str, str] = {}
        for line in {message.line for message in rows} - {self._line}:
            found = await self._store.conversation(line)
            names[line] = found.name or found.id if found else line
        return names

    async def on_dates(self, first: str, last: str, page: int = 0, count: int = PAGE) -> ResultPage:
        """Return the messages from the beginning of one time to the end of another, each as people write it.

        Raises:
            UsageError: one of them is not a readable date.
        """
        now = self._clock.now()
        start, end = [await one_at_a_time(dates.read, text, now) for text in (first, last or first)]
        return await self.between(min(start[0], end[0]), max(start[1], end[1]), page, count)

    async def ranked(self, evidence: RecallEvidence) -> list[RecallMessage]:
        """Return the rows by the weighted sum of their signals, best first; among equals, the newest first."""
        from .signals import ordered  # noqa: PLC0415 - imports numpy, at the first search

        signals, rows = await self.signals(evidence), len(evidence.rows)
        order = ordered(signals, weights("recall", self.vectors.recipe), rows)
        return [evidence.rows[place].utterance for place in order]

    async def signals(self, evidence: RecallEvidence) -> dict[str, Any]:  # Any: numpy arrays
        """Return every signal by name, with one number per row."""
        from .signals import Lexicon, measure  # noqa: PLC0415 - as above

        if self._words is None:
            return measure(evidence)
        self._lexicon = self._lexicon or Lexicon(self._words)
        words = {row.utterance.seq: row.words for row in evidence.rows}
        return measure(evidence, await self._lexicon.likeness(evidence.question.words, words))

    async def gather(self, query: str) -> tuple[RecallEvidence, set[int]]:
        """Return the rows to rank, and the numbers of those that a search found."""
        limits, query = pool("recall"), heard(query)
        if len(self._read.rows) > _CACHED:
            self._read = ReadMessages()
        read = self._read  # a concurrent search may replace it
        sought = words.content(query) or words.split(query)
        worded = await self._store.search_words("recall", self._scope, sought, limits["words"])
        if not self._speakers:
            await self._load(read, (hit.seq for hit in worded))
        question = await read_query(query, self._speakers, self._clock.now())
        vector = await self.vectors.of(question.about)
        neighbors = await self.vectors.near(self._scope, vector, limits["vectors"])
        hits = {hit.seq for hit in [*worded, *neighbors]}
        await self._load(read, hits)
        ranked = [hit.seq for hit in [*worded[: limits["beside"]], *neighbors[: limits["beside"]]]]
        around = limits["around"]
        places = {read.rows[seq].place for seq in hits if seq in read.rows}
        for seq in ranked:
            if seq in read.rows:
                line, n = read.rows[seq].place
                places.update(
                    (line, beside) for beside in range(max(0, n - around), n + around + 1)
                )
        missing: dict[str, list[int]] = {}
        for line, n in places - read.places.keys():
            missing.setdefault(line, []).append(n)
        for line, numbers in missing.items():
            await self._keep(read, await self._store.messages_beside(line, numbers))
        # A message that was deleted since it was found is left out.
        found = [read.rows[read.places[place]] for place in places if place in read.places]
        first: dict[str, int] = {}  # the oldest conversation comes first, as its messages do
        for each in found:
            message = each.utterance
            first[message.line] = min(first.get(message.line, message.seq), message.seq)
        rows = sorted(found, key=lambda each: (first[each.place[0]], each.place))
        cosines = await self.vectors.cosines(
            self._scope, vector, [entry.utterance.seq for entry in rows]
        )
        total = (await self._store.memory_counts(self._line)).messages
        return RecallEvidence(
            question, rows, frozenset(hit.seq for hit in worded), cosines, total
        ), hits

    async def _load(self, read: ReadMessages, seqs: Iterable[int]) -> None:
        """Load rows that are not cached. Messages never change, so the cache stays valid."""
        missing = [seq for seq in seqs if seq not in read.rows]
        await self._keep(read, await self._store.messages(self._scope, missing) if missing else [])

    async def _keep(self, read: ReadMessages, utterances: Sequence[RecallMessage]) -> None:
        rows = await aside(
            sum(len(utterance.text) for utterance in utterances), lambda: [*map(row, utterances)]
        )
        for entry in rows:
            read.rows[entry.utterance.seq] = entry
            read.places[entry.place] = entry.utterance.seq
            self._speakers.add(entry.utterance.speaker)


def _item(message: RecallMessage, names: Mapping[str, str]) -> FoundItem:
    where = names.get(message.line, "")
    return FoundItem(message.seq, message.text, message.at, message.speaker, where=where)

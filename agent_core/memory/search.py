"""A search of memory: the query with its words, speakers and times, the data for ranking, and the results. Pure values.

The data for ranking are rows, cosines and weights; the weights and their origin are in `weights.toml`. Results are
written as the model reads them.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from agent_core.base.clock import shown_time
from agent_core.base.language import stem
from agent_core.base.offload import one_at_a_time
from agent_core.base.records import dataclass
from agent_core.base.untrusted import visible
from sandbox.wire.strict_json import read_toml

from . import dates
from .words import STOP, content, counted_stems, forms, split, stems

if TYPE_CHECKING:
    from agent_core.storage import RecallMessage


LONGEST: Final = 1_000
"""Maximum characters of a question."""
_KEPT: Final = re.compile(r"[^\W_]+(?:'s)?")
_ROLES: Final = {"user": frozenset({"user", "human"}), "assistant": frozenset({"assistant"})}


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed question. `terms` are the stems of its content words, `forms` those in other languages.

    `about` is its text without the `names` of speakers.
    """

    text: str
    words: tuple[str, ...]
    terms: tuple[str, ...]
    forms: Mapping[str, str]
    names: frozenset[str]
    named: frozenset[str]
    about: str
    times: tuple[dates.TimeMention, ...]


def heard(query: str) -> str:
    """Return the part of a question that is searched for; each word is compared with every row."""
    return query[:LONGEST]


async def read_query(text: str, speakers: Collection[str], now: float) -> ParsedQuery:
    """Parse a question; `speakers` are the authors of the searched messages.

    Times are searched in up to two hundred languages, which takes a second.
    """
    return await one_at_a_time(_read_query, text, frozenset(speakers), now)


def _read_query(text: str, speakers: Collection[str], now: float) -> ParsedQuery:
    spoken = set(split(text))
    names = {
        name: _ROLES.get(name, frozenset(word for word in split(name) if word not in STOP))
        for name in speakers
    }
    words = {stem(word): word for word in reversed(content(text) or split(text))}
    all_names: frozenset[str] = frozenset().union(*names.values())
    # Names would dominate a vector that is an average.
    unnamed = " ".join(
        word for word in _KEPT.findall(text) if word.lower().removesuffix("'s") not in all_names
    )
    return ParsedQuery(
        text,
        tuple(words.values()),
        tuple(words),
        forms(words.values()),
        all_names,
        frozenset(name for name, forms in names.items() if forms & spoken),
        unnamed or text,
        tuple(dates.mentions(text, now)),
    )


@dataclass(frozen=True, slots=True)
class CountedMessage:
    """A message with its words and counted stems."""

    utterance: "RecallMessage"
    words: tuple[str, ...]
    counts: Mapping[str, int]
    size: int

    @property
    def place(self) -> tuple[str, int]:
        """Its conversation, by its line, and its number there."""
        return self.utterance.line, self.utterance.n


@dataclass(frozen=True, slots=True)
class RecallEvidence:
    """The evidence for a question: rows by conversation and `n`, those with its words, cosines, the number of all."""

    question: ParsedQuery
    rows: Sequence[CountedMessage]
    worded: frozenset[int]
    cosines: Mapping[int, float]
    total: int


def row(message: "RecallMessage") -> CountedMessage:
    """Return a message prepared for scoring."""
    words = message.words.split()
    counts = counted_stems(message.words)
    return CountedMessage(message, tuple(dict.fromkeys(words)), counts, len(words))


Weights: TypeAlias = Mapping[str, float]


@cache
def weights(shelf: str, recipe: str) -> Weights:
    """Return the weights for a store and an embedding model; a model without weights gets those for words only."""
    tables = _tables()[shelf]
    return tables.get(recipe, tables["none"])


@cache
def pool(shelf: str) -> Mapping[str, int]:
    """Return the sizes of a search: rows by words and by vectors, and the neighbors `around` the best `beside` rows."""
    return {name: int(value) for name, value in _tables()["pool"][shelf].items()}


@cache
def _tables() -> dict[str, dict[str, Weights]]:
    return read_toml(files(__package__).joinpath("weights.toml").read_text("utf-8"))


# Search results as the model reads them: counted, paged, with times, speakers and sources.
# A note below them names the words of the question that they do not contain.

T = TypeVar("T")

MOST: Final = 100  # results per page
_LAST: Final = 1 << 40  # page
EXCERPT: Final = 600
PASSAGE: Final = 1_300  # a passage of a source is shown whole
_LOOKED_AT: Final = 50_000  # characters of a text that are searched for an excerpt
_READ_FOR_HINTS: Final = 20_000  # characters of each result
_SHOWN: Final = 4  # words that no result contains
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class FoundItem:
    """A message or passage that was found; `id` names a passage, `who` is a speaker or a source with its place.

    `where` names the conversation of a message, if it is not the one that searched.
    """

    seq: int
    text: str
    at: float
    who: str
    id: str = ""
    tags: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A page of results, from 0; `terms` are the stems of the question, `notes` are sentences about the search.

    `missing` are words of the question that no result on the page contains, `trouble` is the reason for a search by
    words only.
    """

    item_kind: str
    items: tuple[FoundItem, ...]
    page: int
    total: int
    count: int
    terms: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    trouble: str = ""
    is_usual: bool = True  # whether the page has the default size

    @property
    def pages(self) -> int:
        """The number of pages."""
        return -(-self.total // self.count)

    def __str__(self) -> str:
        pages = f"pages 0 to {self.pages - 1}"
        if not self.total:
            heading = f"No {self.item_kind} found."
        elif not self.items:
            heading = f"There is no page {self.page}: {self.total} {self.item_kind} on {pages}."
        else:
            count = "" if self.is_usual else f" with count={self.count}"
            more = (
                f"; page={self.page + 1}{count} has the next."
                if self.page + 1 < self.pages
                else "."
            )
            heading = f"Showing {len(self.items)} of {self.total} {self.item_kind} (page {self.page}, {pages}){more}"
        lines = [heading]
        for item in self.items:
            ids = f"id {item.id}" * bool(item.id), f"tags {', '.join(item.tags)}" * bool(item.tags)
            where = f"in the conversation “{visible(item.where)}”" * bool(item.where)
            about = " · ".join(filter(None, (shown_time(item.at), item.who, where, *ids)))
            limit = PASSAGE if item.id else EXCERPT
            is_all = item.id or len(item.text) <= limit
            whole = "" if is_all else f" [read_on(name='text-{item.seq:x}', page=1) has all of it]"
            lines.append(f"- {about}: {excerpt(item.text, self.terms, limit)}{whole}")
        return "\n".join([*lines, *self.notes])


def bounded(page: int, count: int) -> tuple[int, int]:
    """Return how many results precede a requested page, and how many it has; both fit into the store's numbers."""
    count = min(max(count, 1), MOST)
    return min(max(page, 0), _LAST) * count, count


def page_of(  # noqa: PLR0913 - the parts of a page
    item_kind: str,
    query: ParsedQuery,
    ranked: Sequence[T],
    item: Callable[[T], FoundItem],
    page: int,
    count: int,
    *,
    usual: int,
    trouble: str,
) -> ResultPage:
    """Return a page, counted from 0, of all rows found, best first; `usual` is the default number of results.

    Its notes follow the results; there are none if the results contain all requested words.
    """
    start, count = bounded(page, count)
    items = tuple(map(item, ranked[start : start + count]))
    result_terms = {term for found in items for term in stems(split(found.text[:_READ_FOR_HINTS]))}
    named = {name.lower() for name in query.named} | {
        name.lower() for time in query.times for name in split(time.text)
    }
    missing = [
        word for word in query.words if stem(word) not in result_terms and word not in named
    ][:_SHOWN]
    notes = [f"Searched by words alone: {trouble}"] if trouble else []
    if not items:
        notes.append("Try other words, or fewer.")
    elif missing:
        notes.append(
            f"No result contains: {', '.join(missing)}. Search for it alone, or in other words."
        )
    told, terms = (tuple(notes), tuple(missing), trouble), frozenset(query.terms)
    return ResultPage(
        item_kind, items, page, len(ranked), count, terms, *told, is_usual=count == usual
    )


def excerpt(text: str, terms: Collection[str], limit: int = EXCERPT) -> str:
    """Return a text on one line. Of a long one, return the part with the most query terms."""
    text = visible(" ".join(text[:_LOOKED_AT].split()))
    if len(text) <= limit:
        return text
    places = [match.start() for match in _WORD.finditer(text) if stem(match[0].lower()) in terms]
    starts = [max(0, place - limit // 4) for place in places] or [0]
    term_counts = {
        start: bisect_left(places, start + limit) - bisect_left(places, start) for start in starts
    }
    best = max(starts, key=lambda start: (term_counts[start], -start))
    return (
        f"{'… ' * (best > 0)}{text[best : best + limit].strip()}{' …' * (best + limit < len(text))}"
    )


def coverage(text: str, terms: Collection[str]) -> int:
    """Return how many of the stems of a question are in a text."""
    return len({*stems(split(text[:_READ_FOR_HINTS]))} & {*terms})

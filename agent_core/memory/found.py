"""What a search found, as the model reads it: counted, paged, with times, who said it and where it is from."""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ..clock import shown_time
from ..untrusted import visible
from .stem import stem

T = TypeVar("T")

EXCERPT: Final = 600
PASSAGE: Final = 1_300  # a passage of a source is shown whole
_LOOKED_AT: Final = 50_000  # characters of a text, for the part of it that is shown
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Item:
    """A message or passage that was found; `id` names a passage, `who` is a speaker or a source with its place."""

    seq: int
    text: str
    at: float
    who: str
    id: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A page of results, from 0; `terms` are stems of what was asked, `notes` are sentences about the search."""

    what: str
    items: tuple[Item, ...]
    page: int
    total: int
    count: int
    terms: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.count)

    def __str__(self) -> str:
        return "\n".join([_heading(self), *(_line(item, self.terms) for item in self.items), *self.notes])


def page_of(ranked: Sequence[T], page: int, count: int) -> Sequence[T]:
    """The rows of a page."""
    start = max(page, 0) * count
    return ranked[start : start + count]


def _heading(found: Found) -> str:
    if not found.total:
        return f"No {found.what} found."
    if not found.items:
        return f"There is no page {found.page}: {found.total} {found.what} on pages 0 to {found.pages - 1}."
    shown = (
        f"Showing {len(found.items)} of {found.total} {found.what} (page {found.page}, pages 0 to {found.pages - 1})"
    )
    return shown + (f"; page={found.page + 1} has the next." if found.page + 1 < found.pages else ".")


def _line(item: Item, terms: Collection[str]) -> str:
    at = shown_time(item.at)
    about = (at, item.who, f"id {item.id}" * bool(item.id), f"tags {', '.join(item.tags)}" * bool(item.tags))
    limit = PASSAGE if item.id else EXCERPT
    whole = "" if item.id or len(item.text) <= limit else f" [read_on(name='text-{item.seq:x}', page=1) has all of it]"
    return f"- {' · '.join(filter(None, about))}: {excerpt(item.text, terms, limit)}{whole}"


def excerpt(text: str, terms: Collection[str], limit: int = EXCERPT) -> str:
    """A text of one line; of a long one the part that holds most of the asked terms."""
    text = visible(" ".join(text[:_LOOKED_AT].split()))
    if len(text) <= limit:
        return text
    places = [match.start() for match in _WORD.finditer(text) if stem(match[0].lower()) in terms]
    starts = [max(0, place - limit // 4) for place in places] or [0]
    held = {start: bisect_left(places, start + limit) - bisect_left(places, start) for start in starts}
    best = max(starts, key=lambda start: (held[start], -start))
    return f"{'… ' * (best > 0)}{text[best : best + limit].strip()}{' …' * (best + limit < len(text))}"

"""Search for functions as people and models see it: what matches, why, what it needs, how it differs from others."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.memory.embedding import Embedder, EmbeddingUnavailable

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot
    from agent_core.storage import CallOwners

    from .index import FunctionIndex
    from .requests import RequestStore

COUNT: Final = 5
MANY: Final = 40
"""From more functions on, nearly every message is a need."""

MOST: Final = 50
_ALIKE: Final = 0.35  # the cosine from which two descriptions are neighbors
_TOLD: Final = 3  # words in common
_NEIGHBORS: Final = 10  # looked at for one that it neither calls nor hides
_DESCRIBED: Final = 120
_BLANK: Final = "\n\n"
_REQUEST_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Ranked:
    """A function with its score, the words that it shares with the need, and the likest request that it served."""

    name: str
    score: float
    shared: tuple[str, ...] = ()
    request: str = ""


@dataclass(frozen=True, slots=True)
class FunctionMatch:
    """One result: `differs` is empty if no other function is similar; `needs` are the functions that it calls."""

    function: "Function"
    score: float
    why: str
    differs: str
    needs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:  # Any: the published shape
        """Return the published shape."""
        return {
            "name": self.function.name,
            "description": self.function.description.partition("\n")[0],
            "score": round(self.score, 3),
            "why": self.why,
            "differs": self.differs,
            "needs": [*self.needs],
        }


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The result of a search; `trouble` says why only words were compared, if they were."""

    query: str
    results: tuple[FunctionMatch, ...]
    trouble: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: the published shape
        """Return the published shape."""
        return {"query": self.query, "results": [match.to_json() for match in self.results]}


class FunctionSearch:
    """Searches the functions of a workspace."""

    def __init__(
        self, embedder: Embedder | None, store: "RequestStore | None", snapshot: Callable[[], "Snapshot"]
    ) -> None:
        """Create the search; the index is made when it is first asked."""
        self._embedder = embedder
        self._store = store
        self._snapshot = snapshot

    @cached_property
    def index(self) -> "FunctionIndex":
        """The index that ranks."""
        from .index import FunctionIndex  # noqa: PLC0415 - numpy is loaded with the first search

        return FunctionIndex(self._embedder, self._store)

    async def prepare(self) -> None:
        """Load in a thread what the first search would load, if there are many functions."""
        if len(self._snapshot().functions) <= MANY:
            return
        await asyncio.to_thread(lambda: self.index)
        with suppress(EmbeddingUnavailable):  # the search will say it
            if self._embedder is not None:
                await self._embedder.embed(["."])

    async def search(
        self, need: str, count: int | None = None, hidden: Collection[str] = (), owners: "CallOwners" = None
    ) -> SearchReport:
        """Return the functions that serve a need, best first; what the best one calls follows it.

        All requests that were served rank; those of `owners` are quoted.

        Raises:
            UsageError: the need is empty.
        """
        if not need.strip():
            raise UsageError("The need is empty.", fix="Say what the function is for: search_functions('sum a column')")
        snapshot, count = self._snapshot(), max(1, min(COUNT if count is None else count, MOST))
        ranked = await self.index.rank(need, snapshot, count, hidden)
        ranked = [candidate for candidate in ranked if candidate.score >= self.index.least]
        ranked = self._with_needs(ranked, hidden)[:count]
        if owners is not None:
            theirs = await self.index.served(owners)
            ranked = [row if (row.name, row.request) in theirs else replace(row, request="") for row in ranked]
        near = await self.index.neighbors([candidate.name for candidate in ranked], snapshot, _NEIGHBORS)
        matches = [self._match(candidate, snapshot, hidden, near.get(candidate.name, [])) for candidate in ranked]
        return SearchReport(need, tuple(matches), self.index.trouble)

    async def likely(self, message: str, count: int, hidden: Collection[str] = ()) -> list[str]:
        """Return the names of the functions that a message probably needs, best first, for the model to be shown."""
        if not message.strip():
            return []
        ranked = await self.index.rank(message, self._snapshot(), count, hidden)
        return [candidate.name for candidate in self._with_needs(ranked, hidden)[:count]]

    def _with_needs(self, ranked: list[Ranked], hidden: Collection[str]) -> list[Ranked]:
        """Return each candidate with what it needs behind it: whoever calls a function may have to call these first."""
        by_name = {candidate.name: candidate for candidate in ranked}
        order = dict[str, Ranked]()
        for candidate in ranked:
            order.setdefault(candidate.name, candidate)
            for name in self.index.needs(candidate.name):
                order.setdefault(name, by_name.get(name, Ranked(name, candidate.score)))
        return [candidate for name, candidate in order.items() if name not in hidden]

    def _match(
        self, ranked: Ranked, snapshot: "Snapshot", hidden: Collection[str], near: Sequence[tuple[str, float]]
    ) -> FunctionMatch:
        name = ranked.name
        needs = tuple(need for need in self.index.needs(name) if need not in hidden)
        others = [other for other, cosine in near if cosine >= _ALIKE and other not in (*needs, *hidden)]
        differs = _difference(snapshot.functions[name], snapshot.functions[others[0]]) if others else ""
        return FunctionMatch(snapshot.functions[name], ranked.score, _why(ranked), differs, needs)


def _difference(function: "Function", other_function: "Function") -> str:
    """Return what the nearest neighbor does instead, or what it takes if both say the same."""
    if other_function.description != function.description:
        return f"`{other_function.name}`: {one_line(other_function.description.partition(_BLANK)[0], _DESCRIBED)}"
    takes = [", ".join(each.parameters.get("properties", {})) or "nothing" for each in (function, other_function)]
    return f"the same description as `{other_function.name}`, which takes {takes[1]}; this one takes {takes[0]}"


def _why(ranked: Ranked) -> str:
    reasons = []
    if ranked.shared:
        reasons.append(f"shares {', '.join(f'“{word}”' for word in ranked.shared[:_TOLD])}")
    if ranked.request:
        reasons.append(f"was called for “{one_line(ranked.request, _REQUEST_CHARS)}”")
    return "; ".join(reasons) or "similar in meaning"

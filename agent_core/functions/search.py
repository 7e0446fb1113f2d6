"""Search for functions that serve a need: by words, by meaning, and by the requests that they served.

`FunctionSearch` explains the results; `FunctionIndex` follows the snapshot and ranks functions. A score adds the
similarity in meaning, the shared words, and the similarity to requests that the function has served, and subtracts a
penalty for crowded places: a vector that is close to many others is also close to many requests, and rarely what they
mean. The weights were tuned on published sets of tools (docs/search.md).

Words are ranked by BM25F (Zaragoza et al., TREC 2004): frequencies are normalized by field length and weighted before
the fields are added, so that a word in a name counts for more than one in a long description.

Two functions may be confused if a request of one finds the other one first. The requests of a function are the first
sentence of its description and those of the turns in which it was called.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.base.errors import UsageError
from agent_core.base.offload import PER_ENTRY, aside
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from agent_core.memory import words
from agent_core.memory.embedding import Embedder, EmbeddingUnavailable
from agent_core.registry.function import first_sentence
from sandbox.wire.lines import lines_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.storage import CallOwners

    from .foreign import ForeignFunction


NEED_CHARS: Final = 2_000
"""The number of characters of a need that are read."""

DESCRIPTION_CHARS: Final = 250
"""The number of characters of a description that are read, so that one full of words matches few needs."""

_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
"""An identifier in a source."""

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+")


def wanted(need: str) -> list[str]:
    """Return the stems of a need's words."""
    return words.stems(words.content(need))


def spoken(function: "Function") -> list[tuple[str, str]]:
    """Return the words of a function's name and description, each with its stem."""
    said = _words_of(function.name, function.description)
    return list(zip(words.stems(said), said, strict=True))


def described(name: str, description: str) -> list[str]:
    """Return the stems of the words of a function's name and description."""
    return words.stems(_words_of(name, description))


def _words_of(name: str, description: str) -> list[str]:
    return words.content(f"{_split(name)} {description[:DESCRIPTION_CHARS]}")


def fields(function: "Function", linked: Iterable[str]) -> list[list[str]]:
    """Return the stems of a function's name, its description, and everything else, with the names `linked` to it."""
    calls = " ".join(example.call for example in function.examples)
    rest = (
        f"{_parameters(function)} {function.module} {calls} {' '.join(map(_split, sorted(linked)))}"
    )
    texts = (_split(function.name), function.description[:DESCRIPTION_CHARS], rest)
    return [words.stems(words.content(text)) for text in texts]


def mentioned(
    functions: Mapping[str, "Function"], snapshot: "Snapshot"
) -> dict[str, frozenset[str]]:
    """Return the functions whose names appear in the source or description of each, without parsing it."""
    lines, named = dict[str, list[str]](), dict[str, frozenset[str]]()
    for name, function in functions.items():
        module = function.module
        if module not in lines:
            lines[module] = (
                lines_of(snapshot.modules[module].text) if module in snapshot.modules else []
            )
        own = "".join(lines[module][function.line - 1 : function.end_line])
        names = snapshot.functions.keys() & {*_IDENTIFIER.findall(own)}
        named[name] = frozenset(names - {name})
    return named


def views(function: "Function") -> tuple[str, str, str]:
    """Return three texts to embed: name with description, description alone, and both with the parameters."""
    name, description = _split(function.name), function.description[:DESCRIPTION_CHARS]
    short = f"{name}. {description}"
    return short, description or name, f"{short} {_parameters(function)}"


def _split(name: str) -> str:
    return _HUMP.sub(" ", name)


def _parameters(function: "Function") -> str:
    properties = function.parameters.get("properties", {})
    return " ".join(
        f"{_split(name)} {schema.get('description', '')}" for name, schema in properties.items()
    )


Floats: TypeAlias = npt.NDArray[np.float32]
_SATURATION = 1.2  # for repeated words


class WordIndex:
    """Documents, each identified by a small number (a slot)."""

    def __init__(self, weights: Sequence[float], slopes: Sequence[float]) -> None:
        """Create an empty index; `slopes` (0 to 1) are the strength of length normalization per field."""
        self._weights = np.array(weights, np.float32)
        self._slopes = np.array(slopes, np.float32)
        self._lengths = np.zeros((0, len(weights)), np.float32)
        self._words: dict[int, tuple[str, ...]] = {}
        self._postings: dict[str, dict[int, list[int]]] = {}
        self._arrays: dict[str, tuple[npt.NDArray[np.int64], Floats]] = {}

    def put(self, slot: int, fields: Sequence[Sequence[str]]) -> None:
        """Add a document, or replace the one in this slot."""
        self.drop(slot)
        if slot >= len(self._lengths):
            room = max(slot + 1 - len(self._lengths), len(self._lengths), 64)
            self._lengths = np.concatenate(
                [self._lengths, np.zeros((room, len(self._weights)), np.float32)]
            )
        self._lengths[slot] = [len(field) for field in fields]
        for place, field in enumerate(fields):
            for word, count in Counter(field).items():
                counts = self._postings.setdefault(word, {}).setdefault(slot, [0] * len(fields))
                counts[place] = count
                self._arrays.pop(word, None)
        self._words[slot] = tuple({word for field in fields for word in field})

    def drop(self, slot: int) -> None:
        """Remove the document in this slot, if any."""
        for word in self._words.pop(slot, ()):
            del self._postings[word][slot]
            self._arrays.pop(word, None)
        if slot < len(self._lengths):
            self._lengths[slot] = 0

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a word."""
        holding = len(self._postings.get(word, ()))
        return float(np.log1p((len(self._words) - holding + 0.5) / (holding + 0.5)))

    def scores(self, words: Collection[str], size: int) -> Floats:
        """Return the scores of the first `size` slots, divided by the highest score."""
        scores = np.zeros(size, np.float32)
        if not self._words:
            return scores
        average = np.maximum(self._lengths.sum(0) / len(self._words), 1e-6)
        for word in {*words} & self._postings.keys():
            if word not in self._arrays:
                rows = self._postings[word]
                table = np.array([*rows.values()], np.float32).reshape(
                    len(rows), len(self._weights)
                )
                self._arrays[word] = np.fromiter(rows, np.int64, len(rows)), table
            slots, counts = self._arrays[word]
            length = 1 - self._slopes + self._slopes * self._lengths[slots] / average
            frequency = (counts * (self._weights / length)).sum(1)
            scores[slots] += (
                self.weight(word) * frequency * (_SATURATION + 1) / (frequency + _SATURATION)
            )
        best: Any = scores.max(initial=0)  # Any: a numpy scalar
        return scores / best if best > 0 else scores


NEAREST: Final = 3
_COMPARED: Final = 4000  # with at most this many others: beyond that, a sample is as good
_BLOCK: Final = 512
_PAIR_LIMIT: Final = 10  # pairs of one function
_FEW_ROWS: Final = 8


class VectorTable:
    """Vectors of one space. Their length need not be 1: a weighted sum of vectors scores like the weighted scores."""

    def __init__(self) -> None:
        self._vectors: Floats = np.zeros((0, 0), np.float32)
        self._near: Floats = np.zeros((0, NEAREST), np.float32)
        self._live: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._lengths: Floats = np.zeros(0, np.float32)

    def put(self, slots: Sequence[int], vectors: Floats) -> None:
        """Set the vectors of these slots."""
        if not len(slots):
            return
        size = max(slots) + 1
        if size > len(self._vectors):
            room = max(size - len(self._vectors), len(self._vectors) // 2)
            self._vectors = self._vectors.reshape(len(self._vectors), vectors.shape[1])
            self._vectors = np.concatenate(
                [self._vectors, np.zeros((room, vectors.shape[1]), np.float32)]
            )
            self._near = np.concatenate([self._near, np.zeros((room, NEAREST), np.float32)])
            self._live = np.concatenate([self._live, np.zeros(room, np.bool_)])
            self._lengths = np.concatenate([self._lengths, np.zeros(room, np.float32)])
        before = self._live.copy()
        before[list(slots)] = False
        self._vectors[list(slots)] = vectors
        self._lengths[list(slots)] = np.linalg.norm(vectors, axis=-1)
        self._live[list(slots)] = True
        # Find the nearest vectors of the new slots, and update those of the old ones.
        new, old = np.array(slots), np.flatnonzero(before)
        everything = np.concatenate([old, new])
        sample = everything[:: len(everything) // _COMPARED + 1]
        others = _unit(self._vectors[sample])
        for start in range(0, len(new), _BLOCK):
            block = new[start : start + _BLOCK]
            cosines = _unit(self._vectors[block]) @ others.T
            cosines[block[:, None] == sample[None, :]] = 0
            self._near[block] = _top(cosines)
        fresh = _unit(self._vectors[new[:: len(new) // _COMPARED + 1]])
        for start in range(0, len(old), _BLOCK):
            block = old[start : start + _BLOCK]
            cosines = _unit(self._vectors[block]) @ fresh.T
            self._near[block] = _top(np.concatenate([self._near[block], cosines], 1))

    def drop(self, slots: Sequence[int]) -> None:
        """Remove the vectors of these slots."""
        known = [slot for slot in slots if slot < len(self._live)]
        self._live[known] = False
        self._vectors[known] = 0

    def products(self, vector: Floats, size: int) -> Floats:
        """Return the dot products of the first `size` slots with a vector; 0 for empty slots."""
        products = np.zeros(size, np.float32)
        if self._vectors.size:
            known = self._vectors[:size]
            products[: len(known)] = _products(vector[None, :], known)[0]
        return products

    def crowding(self, size: int) -> Floats:
        """Return how crowded the first `size` slots are, 0 to 1."""
        crowding = np.zeros(size, np.float32)
        crowding[: len(self._near)] = self._near[:size].mean(1)
        return crowding

    def neighbors(self, slots: Sequence[int], count: int) -> dict[int, list[tuple[int, float]]]:
        """Return the nearest slots of each slot with cosines, nearest first; slots without a vector are left out."""
        asked = [slot for slot in slots if slot < len(self._live) and self._live[slot]]
        lengths = np.where(self._lengths > 0, self._lengths, 1)
        cosines = self._vectors[asked] @ self._vectors.T / (lengths[asked, None] * lengths)
        cosines[:, ~self._live] = -1
        near: dict[int, list[tuple[int, float]]] = {}
        for slot, row in zip(asked, cosines, strict=True):
            row[slot] = -1
            order = np.argsort(-row)[:count]
            near[slot] = [(int(place), float(row[place])) for place in order if row[place] > -1]
        return near

    def pairs(
        self, least: float, slots: Sequence[int] | None = None
    ) -> Iterator[tuple[int, int, float]]:
        """Yield the pairs of slots with at least this cosine, each once; with `slots`, only pairs with one of them.

        Of a slot with more than `_PAIR_LIMIT` such pairs, the nearest are yielded: else many that say the same would
        take the square of their number.
        """
        live = np.flatnonzero(self._live)
        asked = (
            live if slots is None else np.array([slot for slot in slots if slot in live], np.int64)
        )
        others = _unit(self._vectors[live])
        seen = set[tuple[int, int]]()
        for start in range(0, len(asked), _BLOCK):
            block = asked[start : start + _BLOCK]
            cosines = _products(_unit(self._vectors[block]), others)
            cosines[np.arange(len(block)), np.searchsorted(live, block)] = -1  # its own
            nearest = _nearest(cosines)
            for row, column in np.argwhere(np.take_along_axis(cosines, nearest, 1) >= least):
                one = int(block[row])
                place = nearest[row, column]
                other = int(live[place])
                pair = (min(one, other), max(one, other))
                if pair not in seen:
                    seen.add(pair)
                    yield (*pair, float(cosines[row, place]))


def _products(few: Floats, many: Floats) -> Floats:
    """Return the dot products of the rows of two tables.

    `@` wakes threads, which takes longer than the products of a few rows where all cores are in use.
    """
    return few @ many.T if len(few) > _FEW_ROWS else np.einsum("ij,kj->ik", few, many)


def _nearest(cosines: Floats) -> npt.NDArray[np.int64]:
    """Return the columns of the highest cosines of each row, in the order of the columns."""
    count = min(_PAIR_LIMIT, cosines.shape[1])
    return np.sort(np.argpartition(-cosines, count - 1, axis=1)[:, :count], axis=1)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _top(cosines: Floats) -> Floats:
    count = min(NEAREST, cosines.shape[1])
    top = np.zeros((len(cosines), NEAREST), np.float32)
    top[:, :count] = np.partition(cosines, -count, axis=1)[:, -count:]
    return top


# Search results for people and models: what matches, why, what it needs, how it differs from others.

COUNT: Final = 5
MANY: Final = 40
"""With more functions than this, nearly every message is treated as a need."""

MOST: Final = 50
_ALIKE: Final = 0.35  # the cosine from which two descriptions are neighbors
_TOLD: Final = 3  # shared words that are listed
_NEIGHBORS: Final = 10  # neighbors examined for one that it neither calls nor hides
_DESCRIBED: Final = 120
_BLANK: Final = "\n\n"
_REQUEST_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Ranked:
    """A function with its score, the words shared with the need, and the most similar request that it served."""

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
    """The result of a search; `trouble` says why only words were compared, if so."""

    query: str
    results: tuple[FunctionMatch, ...]
    trouble: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: the published shape
        """Return the published shape."""
        return {"query": self.query, "results": [match.to_json() for match in self.results]}


class FunctionSearch:
    """The search for functions of a workspace."""

    def __init__(
        self,
        embedder: Embedder | None,
        store: "RequestStore | None",
        snapshot: Callable[[], "Snapshot"],
        foreign: "Callable[[], Mapping[str, ForeignFunction]]" = dict,
    ) -> None:
        """Create the search for functions of the workspace and `foreign` ones, with an empty index."""
        self._embedder = embedder
        self._own, self._foreign = snapshot, foreign
        self._joined_from: tuple[object, object] = (None, None)
        self._joined = snapshot()
        self.index = FunctionIndex(embedder, store)

    def _snapshot(self) -> "Snapshot":
        """Return all functions; the same object until something changes. What a model is shown: `StepFunctions`."""
        own, foreign = self._own(), self._foreign()
        if not foreign:
            return own
        if self._joined_from[0] is not own or self._joined_from[1] is not foreign:
            others = {name: row.function for name, row in foreign.items()}
            self._joined_from, self._joined = (
                (own, foreign),
                replace(own, functions=others | {**own.functions}),
            )
        return self._joined

    async def prepare(self) -> None:
        """If there are many functions, load what the first search needs."""
        if len(self._snapshot().functions) <= MANY:
            return
        with suppress(EmbeddingUnavailable):  # the search will report it
            if self._embedder is not None:
                await self._embedder.embed(["."])

    async def search(
        self,
        need: str,
        count: int | None = None,
        hidden: Collection[str] = (),
        owners: "CallOwners" = None,
    ) -> SearchReport:
        """Return the functions that serve a need, best first; functions that a result calls follow it.

        All served requests affect the ranking; only those of `owners` are quoted.

        Raises:
            UsageError: the need is empty.
        """
        if not need.strip():
            raise UsageError(
                "The need is empty.",
                fix="Say what the function is for: list_functions('sum a column')",
            )
        snapshot, count = self._snapshot(), max(1, min(COUNT if count is None else count, MOST))
        ranked = await self.index.rank(need, snapshot, count, hidden)
        ranked = [candidate for candidate in ranked if candidate.score >= self.index.least]
        ranked = self._with_needs(ranked, hidden)[:count]
        if owners is not None:
            theirs = await self.index.served(owners)
            ranked = [
                row if (row.name, row.request) in theirs else replace(row, request="")
                for row in ranked
            ]
        near = await self.index.neighbors(
            [candidate.name for candidate in ranked], snapshot, _NEIGHBORS
        )
        matches = [
            self._match(candidate, snapshot, hidden, near.get(candidate.name, []))
            for candidate in ranked
        ]
        return SearchReport(need, tuple(matches), self.index.trouble)

    async def likely(self, message: str, count: int, hidden: Collection[str] = ()) -> list[str]:
        """Return the names of the functions that a message probably needs, best first, to be shown to the model."""
        if not message.strip():
            return []
        ranked = await self.index.rank(message, self._snapshot(), count, hidden)
        return [candidate.name for candidate in self._with_needs(ranked, hidden)[:count]]

    async def meant(self, message: str, count: int, hidden: Collection[str] = ()) -> list[str]:
        """Return the names of the functions that a message is about: as likely as a result, and for a stated reason.

        The reason is a word that it shares with the message, or with a request that it served.
        """
        ranked = await self.index.rank(message, self._snapshot(), count, hidden)
        return [
            row.name
            for row in ranked
            if row.score >= self.index.least and (row.shared or row.request)
        ]

    def _with_needs(self, ranked: list[Ranked], hidden: Collection[str]) -> list[Ranked]:
        """Return each candidate followed by the functions that it needs, which its caller may have to call first."""
        by_name = {candidate.name: candidate for candidate in ranked}
        order = dict[str, Ranked]()
        for candidate in ranked:
            order.setdefault(candidate.name, candidate)
            for name in self.index.needs(candidate.name):
                order.setdefault(name, by_name.get(name, Ranked(name, candidate.score)))
        return [candidate for name, candidate in order.items() if name not in hidden]

    def _match(
        self,
        ranked: Ranked,
        snapshot: "Snapshot",
        hidden: Collection[str],
        near: Sequence[tuple[str, float]],
    ) -> FunctionMatch:
        function, differs = snapshot.functions[ranked.name], ""
        needs = tuple(need for need in self.index.needs(ranked.name) if need not in hidden)
        others = [
            other for other, cosine in near if cosine >= _ALIKE and other not in (*needs, *hidden)
        ]
        if others:
            other = snapshot.functions[others[0]]
            if other.description != function.description:
                differs = f"`{other.name}`: {one_line(other.description.partition(_BLANK)[0], _DESCRIBED)}"
            else:
                own, its = (
                    ", ".join(each.parameters.get("properties", {})) or "nothing"
                    for each in (function, other)
                )
                differs = f"the same description as `{other.name}`, which takes {its}; this one takes {own}"
        reasons = []
        if ranked.shared:
            reasons.append(f"shares {', '.join(f'“{word}”' for word in ranked.shared[:_TOLD])}")
        if ranked.request:
            reasons.append(f"was called for “{one_line(ranked.request, _REQUEST_CHARS)}”")
        return FunctionMatch(
            function, ranked.score, "; ".join(reasons) or "similar in meaning", differs, needs
        )


# The requests that functions have served: a function scores higher for a need that is similar to one of them.

Embed = Callable[[Sequence[str]], Awaitable[Floats | None]]

_CLOSEST, _ALL, _SHARED = 0.8, 0.8, 0.2
_OF_ONE_FUNCTION, _CALLS_READ = (
    10,
    20,
)  # requests that count, and recent calls of a function that are searched for them
_WORTH, _DOUBTED = (
    1.6,
    2,
)  # the weight of many requests; with `_DOUBTED` requests, it is half of that
_LEAST_USED: Final = 8  # functions needed to estimate how much similarity to requests is usual
_EXPECTED: Final = (
    0.3,
    1.0,
)  # otherwise: base and slope for a function without calls, by its cold score


class RequestStore(Protocol):
    """The part of the store that search needs."""

    async def requests_mark(self) -> str:
        """Return a text that changes when `requests_served` may change; cheap enough for each search."""

    async def requests_served(
        self,
        each: int,
        owners: Collection[str] | None = None,
        *,
        with_private: bool = False,
    ) -> list[tuple[str, str]]:
        """Return (function, request) of the turns in which its newest `each` calls returned, oldest first.

        With `owners`, only turns of these agents; `with_private`, also those of private conversations.
        """


class ServedRequests:
    """The requests of each function, as stored.

    All of them count for the order of what is found. Only those that are not private are ever shown, or sent on.
    """

    def __init__(self, store: RequestStore | None) -> None:
        self._store = store
        self._mark = ""
        self._texts: dict[str, list[str]] = {}
        self._public: dict[str, list[str]] = {}
        self._vectors: dict[str, Floats] = {}
        self._words = WordIndex((1,), (0.5,))
        self._used: list[int] = []
        self._trust: Floats = np.zeros(
            0, np.float32
        )  # for each of these, by the number of served requests
        self._owners: list[int] = []  # indexes into `_used`, for each row of the matrix
        self._matrix: Floats = np.zeros((0, 0), np.float32)
        self._means: Floats = np.zeros((0, 0), np.float32)

    async def learn(self, embed: Embed) -> bool:
        """Load what is stored now, and return whether it differs from before.

        Requests that were forgotten in the store are also dropped here.
        """
        if self._store is None or (mark := await self._store.requests_mark()) == self._mark:
            return False
        self._mark = mark
        self._public = _newest(await self.read())
        texts = _newest(await self.read(with_private=True))
        if texts == self._texts:
            return False
        self._texts = texts
        current = {text for served in texts.values() for text in served}
        self._vectors = {text: vector for text, vector in self._vectors.items() if text in current}
        fresh = [*current - self._vectors.keys()]
        for start in range(0, len(fresh), _BATCH):
            batch = fresh[start : start + _BATCH]
            vectors = await embed(batch)
            if vectors is not None:
                self._vectors.update(zip(batch, vectors, strict=True))
        return True

    async def read(
        self, owners: Collection[str] | None = None, *, with_private: bool = False
    ) -> list[tuple[str, str]]:
        """Return functions with the requests that they served, oldest first; with `owners`, only in their turns."""
        if self._store is None:
            return []
        served = await self._store.requests_served(_CALLS_READ, owners, with_private=with_private)
        return [(name, text[:NEED_CHARS]) for name, text in served]

    def of(self, name: str) -> list[str]:
        """Return the requests that a function served and that may be shown, oldest first."""
        return self._public.get(name, [])

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each function with each request that it served and that may be shown."""
        return ((name, text) for name, texts in self._public.items() for text in texts)

    def place(self, slots: Mapping[str, int]) -> None:
        """Update the slots of the functions."""
        known = {name: texts for name, texts in self._texts.items() if name in slots}
        self._words, self._used = WordIndex((1,), (0.5,)), [slots[name] for name in known]
        for slot, texts in zip(self._used, known.values(), strict=True):
            self._words.put(slot, [[stem for text in texts for stem in wanted(text)]])
        counts = np.array([len(texts) for texts in known.values()], np.float32)
        self._trust = _WORTH * counts / (counts + _DOUBTED)
        pairs = [(place, text) for place, texts in enumerate(known.values()) for text in texts]
        rows = [(place, self._vectors[text]) for place, text in pairs if text in self._vectors]
        self._owners, self._matrix = (
            [place for place, _ in rows],
            np.array([vector for _, vector in rows], np.float32),
        )
        means = np.zeros((len(self._used), *self._matrix.shape[1:]), np.float32)
        if rows:
            np.add.at(means, self._owners, self._matrix)
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-6)
        self._means = means

    def earned(self, stems: Sequence[str], vector: Floats | None, cold: Floats) -> Floats:
        """Return the score that each slot gets from served requests.

        A function that has not been called gets what its cold score predicts, because having been called is no merit.
        Others get more or less than that, weighted by the number of requests they served: a single one may be similar
        to any need.
        """
        if not self._used:
            return np.zeros(len(cold), np.float32)
        own = _SHARED * self._words.scores(stems, len(cold))[self._used]
        if vector is not None and self._owners:
            closest = np.full(len(self._used), -1, np.float32)
            np.maximum.at(closest, self._owners, self._matrix @ vector)
            own += _CLOSEST * closest + _ALL * (self._means @ vector)
        used, (base, slope) = cold[self._used], _EXPECTED
        if len(used) >= _LEAST_USED and float(used.var()) > 0:
            slope = max(float(np.cov(used, own, bias=True)[0, 1] / used.var()), 0.0)
            base = float(own.mean()) - slope * float(used.mean())
        earned = base + slope * cold
        earned[self._used] += self._trust * (own - earned[self._used])
        return np.asarray(earned, np.float32)

    def likest(self, name: str, stems: Sequence[str]) -> str:
        """Return the request of a function that shares the most words with a need; empty if none may be shown."""
        shared = {text: len({*wanted(text)} & {*stems}) for text in self.of(name)}
        best = max(shared, key=lambda text: shared[text], default="")
        return best if shared.get(best) else ""


def _newest(served: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the newest requests of each function, oldest first."""
    texts = dict[str, list[str]]()
    for name, text in served:
        texts.setdefault(name, []).append(text)
    return {name: requests[-_OF_ONE_FUNCTION:] for name, requests in texts.items()}


_WORDS, _CROWDED, _LEXICON = 0.15, 0.1, 0.4
_VIEWS: Final[Mapping[str, tuple[float, float, float]]] = {
    "wordllama": (0.5, 0.5, 0.0),
    "sentence": (0.35, 0.3, 0.35),
    "narrow": (0.35, 0.3, 0.35),
}
"""The weights of the name with the description, the description alone, and both with the parameters, by recipe."""

_MEANT: Final = {"wordllama": 0.16, "sentence": 0.3, "narrow": 0.8}
"""The minimum score of a result, by recipe; without a model, any shared word is enough."""

_BATCH: Final = 256


class FunctionIndex:
    """The functions of the last requested snapshot, ready to be ranked."""

    def __init__(self, embedder: Embedder | None, store: RequestStore | None = None) -> None:
        """Create an empty index. Without an embedder, or if it is unavailable, ranking uses words only."""
        self._embedder = embedder
        self._requests = ServedRequests(store)
        self._lock = asyncio.Lock()
        self._seen: Mapping[str, Function] = {}
        self._alike: list[Mapping[str, Function]] = []  # with the same functions as the last ones
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._words = WordIndex((2, 1, 0.1), (0.3, 0.9, 0.3))
        self._meanings = VectorTable()
        self._lexicon = VectorTable()
        self._callees: Mapping[str, frozenset[str]] = {}
        self._linked: Mapping[str, set[str]] = {}  # callees and callers
        self._best: dict[str, list[str]] = {}
        self.trouble = ""

    @property
    def least(self) -> float:
        """The minimum score of a function that may be meant."""
        return _MEANT.get(self._embedder.recipe if self._embedder else "", 0.01)

    async def rank(
        self,
        need: str,
        snapshot: "Snapshot",
        count: int,
        hidden: Iterable[str] = (),
        *,
        by_text: bool = False,
    ) -> list[Ranked]:
        """Return the functions that a need probably means, best first, without those in `hidden`.

        Ties are in the order of the names. With `by_text`, served requests are ignored.
        """
        need = need[:NEED_CHARS]
        async with self._lock:
            await self._see(snapshot)
            if not by_text:
                await self._learn()
            if not self._slots:
                return []
            stems, vectors = wanted(need), await self._vectors([need])
            vector = None if vectors is None else vectors[0]
            scores = await self._cold(need, stems, vector)
            if not by_text:
                scores = scores + self._requests.earned(stems, vector, scores)
            scores[self._free] = -np.inf
            scores[[self._slots[name] for name in hidden if name in self._slots]] = -np.inf
            is_best = np.isfinite(scores)
            if 0 < count < len(scores):  # with ties of the last one
                is_best &= scores >= np.partition(scores, -count)[-count]
            best = [
                (-round(float(scores[slot]), 6), self._names[slot], slot)
                for slot in np.flatnonzero(is_best)
            ]
            ranked: list[Ranked] = []
            for _, name, slot in sorted(best)[: max(count, 0)]:
                known = dict(spoken(self._seen[name]))
                shared = tuple(known[stem] for stem in dict.fromkeys(stems) if stem in known)
                ranked.append(
                    Ranked(name, float(scores[slot]), shared, self._requests.likest(name, stems))
                )
            return ranked

    async def best_by_text(self, request: str, snapshot: "Snapshot") -> list[str]:
        """Return the names of the few functions whose texts fit a request best. They are kept for this snapshot.

        The same request is one of a function, and a comparison with each of the others that are near it.
        """
        if not self._has_seen(snapshot) or request not in self._best:
            ranked = await self.rank(request, snapshot, _LOOKED_AT, by_text=True)
            names = [each.name for each in ranked]
            if not self._has_seen(snapshot):  # another one came in between
                return names
            self._best[request] = names
        return self._best[request]

    async def served(self, owners: Collection[str]) -> set[tuple[str, str]]:
        """Return the functions with the requests that they served in turns of these agents, as pairs."""
        return {*await self._requests.read(owners)}

    async def neighbors(
        self, names: Iterable[str], snapshot: "Snapshot", count: int
    ) -> dict[str, list[tuple[str, float]]]:
        """Return the functions whose descriptions are most similar to each function's, nearest first, with cosines."""
        async with self._lock:
            await self._see(snapshot)
            near = self._meanings.neighbors(
                [self._slots[name] for name in names if name in self._slots], count
            )
            return {
                self._names[slot]: [(self._names[place], cosine) for place, cosine in places]
                for slot, places in near.items()
            }

    async def near(
        self, snapshot: "Snapshot", least: float, names: Iterable[str] | None = None
    ) -> list[tuple[str, str, float]]:
        """Return the pairs of descriptions with at least this cosine, and the cosine; with `names`, only theirs."""
        async with self._lock:
            await self._see(snapshot)
            slots = (
                None
                if names is None
                else [self._slots[name] for name in names if name in self._slots]
            )
            pairs = self._meanings.pairs(least, slots)
            return [(self._names[one], self._names[other], cosine) for one, other, cosine in pairs]

    async def requests_of(self, name: str, snapshot: "Snapshot") -> list[str]:
        """Return the first sentence of a function's description and the requests that it served."""
        async with self._lock:
            await self._learn()
            said = first_sentence(snapshot.functions[name].description)
            return [*([said] if said else []), *self._requests.of(name)]

    async def recorded(self) -> list[tuple[str, str]]:
        """Return the functions with the requests that they served, as pairs.

        A request that more functions served than a search returns is left out: it says nothing about a description.
        """
        async with self._lock:
            await self._learn()
            served = [*dict.fromkeys(self._requests.pairs())]
        counts = Counter(request for _name, request in served)
        return [(name, request) for name, request in served if counts[request] <= COUNT]

    def needs(self, name: str) -> list[str]:
        """Return the functions that a function calls or names, directly or indirectly; the nearest first."""
        reached = dict[str, None]()
        waiting = [name]
        while waiting:
            nearest = {callee for caller in waiting for callee in self._callees.get(caller, ())}
            waiting = sorted(nearest - reached.keys() - {name})
            reached |= dict.fromkeys(waiting)
        return [*reached]

    def _has_seen(self, snapshot: "Snapshot") -> bool:
        return any(snapshot.functions is functions for functions in self._alike)

    async def _see(self, snapshot: "Snapshot") -> None:
        functions = snapshot.functions
        if self._has_seen(snapshot):
            return
        work = asyncio.ensure_future(aside(PER_ENTRY * len(functions), self._arrange, snapshot))
        try:
            changed, callees, linked = await asyncio.shield(work)
        finally:
            await asyncio.wait(
                [work]
            )  # a canceled search leaves when this is done: nobody sees half of it
        await self._embed([self._slots[name] for name in changed], [*changed.values()])
        if changed or linked != self._linked or functions.keys() != self._seen.keys():
            self._alike = []
            self._best = {}
        # Files that are judged side by side each come with a snapshot of the same functions.
        self._alike = [functions, *self._alike[:1]]
        self._seen, self._callees, self._linked = functions, callees, linked
        self._requests.place(self._slots)

    def _arrange(
        self, snapshot: "Snapshot"
    ) -> tuple[dict[str, "Function"], dict[str, frozenset[str]], dict[str, set[str]]]:
        """Put the words of what has changed in their slots; return it, with what functions call and are linked to."""
        functions = snapshot.functions
        for name in [name for name in self._slots if name not in functions]:
            slot = self._slots.pop(name)
            self._names[slot] = ""
            self._free.append(slot)
            self._words.drop(slot)
            self._meanings.drop([slot])
            self._lexicon.drop([slot])
        changed = {
            name: new
            for name, new in functions.items()
            if _text(self._seen.get(name)) != _text(new)
        }
        callees = {**self._callees, **mentioned(changed, snapshot)}
        callees = {name: callees[name] & functions.keys() for name in functions}
        linked = {name: set(called) for name, called in callees.items()}
        for name, called in callees.items():
            for callee in called:
                linked[callee].add(name)
        for name in [
            name for name in functions if name in changed or linked[name] != self._linked.get(name)
        ]:
            if name not in self._slots:
                slot = self._slots[name] = self._free.pop() if self._free else len(self._names)
                self._names[slot : slot + 1] = [name]  # in a free slot, or at the end
            self._words.put(self._slots[name], fields(functions[name], linked[name]))
        return changed, callees, linked

    async def _learn(self) -> None:
        if await self._requests.learn(self._vectors):
            self._requests.place(self._slots)

    async def _embed(self, slots: Sequence[int], functions: Sequence["Function"]) -> None:
        weights = _VIEWS.get(self._embedder.recipe if self._embedder else "", _VIEWS["wordllama"])
        meanings, firsts = list[Floats](), list[Floats]()
        for start in range(0, len(functions), _BATCH):
            batch = [views(function) for function in functions[start : start + _BATCH]]
            used = [(view, weight) for view, weight in enumerate(weights) if weight]
            parts = [
                (weight, await self._vectors([texts[view] for texts in batch]))
                for view, weight in used
            ]
            vectors = [weight * part for weight, part in parts if part is not None]
            if len(vectors) < len(parts):
                return
            meanings.append(np.sum(vectors, 0))
            lexicon = self._second()
            first = await self._vectors([texts[0] for texts in batch], lexicon) if lexicon else None
            firsts += [] if first is None else [first]
        if meanings:
            await asyncio.to_thread(self._meanings.put, slots, np.concatenate(meanings))
        if firsts and len(firsts) == len(meanings):
            await asyncio.to_thread(self._lexicon.put, slots, np.concatenate(firsts))

    def _second(self) -> Embedder | None:
        """Return the fast model that is used in addition to a slow one, or None."""
        if self._embedder is None or self._embedder.lexicon is self._embedder:
            return None
        return self._embedder.lexicon

    async def _vectors(self, texts: Sequence[str], model: Embedder | None = None) -> Floats | None:
        model = model or self._embedder
        if model is None:
            return None
        try:
            rows = await model.embed(texts)
        except EmbeddingUnavailable as error:
            self.trouble = str(error)
            return None
        return np.frombuffer(b"".join(rows), "<f4").reshape(len(texts), -1)

    async def _cold(self, need: str, stems: Sequence[str], vector: Floats | None) -> Floats:
        """Return the scores of the functions by their texts alone."""
        size = len(self._names)
        scores = _WORDS * self._words.scores(stems, size)
        if vector is None:
            return scores
        scores += self._meanings.products(vector, size) - _CROWDED * self._meanings.crowding(size)
        lexicon = self._second()
        other = await self._vectors([need], lexicon) if lexicon is not None else None
        return (
            scores if other is None else scores + _LEXICON * self._lexicon.products(other[0], size)
        )


def _text(function: "Function | None") -> Any:  # Any: only compared
    if function is None:
        return None
    return (
        function.description,
        function.parameters,
        function.examples,
        function.module,
        function.body_hash,
    )


NEAR: Final = 0.8
"""The cosine from which two functions may be confused (`python -m benchmarks.confusables`)."""

_LOOKED_AT: Final = 5  # results of a request that are examined
_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Confusion:
    """A request of one function that finds the other first; `cosine` is the similarity of their descriptions."""

    name: str
    other: str
    cosine: float
    request: str


async def confusions(
    index: FunctionIndex,
    snapshot: "Snapshot",
    names: Collection[str] | None = None,
    least: float = NEAR,
) -> list[Confusion]:
    """Return the confused pairs, the nearest first and each once; with `names`, only pairs with one of these."""
    near = defaultdict[str, dict[str, float]](dict)
    for name, other, cosine in await index.near(snapshot, least, names):
        near[name][other] = near[other][name] = cosine
    confused: dict[frozenset[str], Confusion] = {}
    for name in sorted(near):
        for request in await index.requests_of(name, snapshot):
            order = await index.best_by_text(request, snapshot)
            before = order[: order.index(name)] if name in order else order
            for other in before:
                if other in near[name]:
                    pair = frozenset((name, other))
                    confused.setdefault(pair, Confusion(name, other, near[name][other], request))
    return sorted(confused.values(), key=lambda pair: (-pair.cosine, pair.name, pair.other))


async def mistaken(index: FunctionIndex, snapshot: "Snapshot", name: str) -> Confusion | None:
    """Return how a function is mistaken for another, or None.

    Either its own first sentence finds another function first, or it is one of a confused pair.
    """
    said = first_sentence(snapshot.functions[name].description)
    best = await index.best_by_text(said, snapshot) if said else []
    if best and best[0] != name:
        return Confusion(name, best[0], 0.0, said)
    return next(iter(await confusions(index, snapshot, [name])), None)


def describe_difference(function: "Function", other_function: "Function") -> str:
    """Return advice on what the first sentence of one function could say that is not true of the other."""
    mine, others = (
        list(each.parameters.get("properties", {})) for each in (function, other_function)
    )
    own, left = (
        [name for name in mine if name not in others],
        [name for name in others if name not in mine],
    )
    differences: list[str] = []
    if own:
        differences.append(
            f"it takes {_list_names(own)}{f' instead of {_list_names(left)}' if left else ''}"
        )
    elif len(mine) < len(others):
        differences.append(f"it needs no {_list_names(left, 'or')}")
    if function.returns and other_function.returns and function.returns != other_function.returns:
        differences.append(f"it returns `{function.returns}`, not `{other_function.returns}`")
    if differences:
        return f"say in its first sentence that {' and '.join(differences)}"
    says = one_line(first_sentence(other_function.description), _SHOWN)
    return f"say in its first sentence what `{other_function.name}` does not do" + (
        f"; that one says “{says}”" if says else ""
    )


def _list_names(names: list[str], word: str = "and") -> str:
    *more, last = [f"`{name}`" for name in names[:3]]
    return f"{', '.join(more)} {word} {last}" if more else last

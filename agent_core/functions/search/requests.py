"""The requests that functions have served: a function scores higher for a need that is similar to one of them."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from .word_index import Floats, WordIndex
from .wording import NEED_CHARS, wanted

Embed = Callable[[Sequence[str]], Awaitable[Floats | None]]

_CLOSEST, _ALL, _WORDS = 0.8, 0.8, 0.2
_OF_ONE_FUNCTION, _CALLS_READ = 10, 20  # requests that count, and recent calls of a function that are searched for them
_WORTH, _DOUBTED = 1.6, 2  # the weight of many requests; with `_DOUBTED` requests, it is half of that
_LEAST_USED: Final = 8  # functions needed to estimate how much similarity to requests is usual
_EXPECTED: Final = (0.3, 1.0)  # otherwise: base and slope for a function without calls, by its cold score
_BATCH: Final = 256


class RequestStore(Protocol):
    """The part of the store that this module needs."""

    async def requests_mark(self) -> str:
        """Return a text that changes when `requests_served` may change; cheap enough for each search."""

    async def requests_served(self, each: int, owners: Collection[str] | None = None) -> list[tuple[str, str]]:
        """Return (function, request) of the turns in which its newest `each` calls returned, oldest first.

        With `owners`, only turns of these agents.
        """


class ServedRequests:
    """The requests of each function, as stored."""

    def __init__(self, store: RequestStore | None) -> None:
        self._store = store
        self._mark = ""
        self._texts: dict[str, list[str]] = {}
        self._vectors: dict[str, Floats] = {}
        self._words = WordIndex((1,), (0.5,))
        self._used: list[int] = []
        self._trust: Floats = np.zeros(0, np.float32)  # for each of these, by the number of served requests
        self._owners: list[int] = []  # indexes into `_used`, for each row of the matrix
        self._matrix: Floats = np.zeros((0, 0), np.float32)
        self._means: Floats = np.zeros((0, 0), np.float32)

    async def learn(self, embed: Embed) -> bool:
        """Load what is stored now, and return whether it differs from before.

        Requests that were forgotten in the store are also dropped here.
        """
        if self._store is None or (mark := await self._store.requests_mark()) == self._mark:
            return False
        self._mark, texts = mark, dict[str, list[str]]()
        for name, text in await self.read():
            texts.setdefault(name, []).append(text)
        texts = {name: served[-_OF_ONE_FUNCTION:] for name, served in texts.items()}
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

    async def read(self, owners: Collection[str] | None = None) -> list[tuple[str, str]]:
        """Return functions with the requests that they served, oldest first; with `owners`, only in their turns."""
        served = [] if self._store is None else await self._store.requests_served(_CALLS_READ, owners)
        return [(name, text[:NEED_CHARS]) for name, text in served]

    def of(self, name: str) -> list[str]:
        """Return the requests that a function served, oldest first."""
        return self._texts.get(name, [])

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each function with each request that it served."""
        return ((name, text) for name, texts in self._texts.items() for text in texts)

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
        self._owners, self._matrix = [place for place, _ in rows], np.array([vector for _, vector in rows], np.float32)
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
        own = _WORDS * self._words.scores(stems, len(cold))[self._used]
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
        """Return the request of a function that shares the most words with a need; empty if none shares any."""
        shared = {text: len({*wanted(text)} & {*stems}) for text in self._texts.get(name, ())}
        best = max(shared, key=lambda text: shared[text], default="")
        return best if shared.get(best) else ""

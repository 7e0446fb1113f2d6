"""Finds functions that are similar to a given one: an index of what they compute and how they are described.

It follows the snapshot: what did not change is not looked at again. Weights are data.
"""

import asyncio
import hashlib
import math
import re
import time
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import TypeVar

from agent_core.base.offload import aside
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from sandbox.wire.lines import lines_of

from .index_store import Bones, IndexStore, Key, find, keep
from .normal_form import normal_form

WEIGHTS: Mapping[str, float] = {"name": 0.25, "description": 0.3, "body": 0.45}
_GRAM, _WINDOW = 4, 2
_SLICE_S = 0.005  # so long an index may be built without letting others act
_NEAREST = 8
_SMALL_WORDS = """
a an and are as at be by for from function given in is it its of on or python return that the this to whether which with
write
"""
_SMALL = frozenset(_SMALL_WORDS.split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("edly", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", ""))
_MARKS = frozenset(["(", ")", ",", "{", "}", ";"])


@dataclass(frozen=True, slots=True)
class Sketch:
    """The compared features of a function: the hash of its form, pieces of its body, the words around it."""

    digest: str
    body: frozenset[int]
    name: frozenset[str]
    description: frozenset[str]
    size: int = 0  # in words of its form
    leans: bool = False  # on a function that its module offers


@dataclass(frozen=True, slots=True)
class Similarity:
    """The similarity of two functions, from 0 to 1: of their bodies, their words, and both together."""

    name: str
    body: float
    words: float
    score: float


def sketch(name: str, description: str, *texts: str, module: str = "") -> Sketch:
    """Return the sketch of the function that the texts define; `module` is read for names they leave open."""
    return _dressed(_bones(name, *texts, module=module), name, description)


def _bones(name: str, *texts: str, module: str = "") -> Bones:
    form = normal_form(name, *texts)
    leans = form is not None and any(word.startswith("?") for word in form.words)
    if leans and module:
        form = normal_form(name, *texts, module) or form
    return Bones(form.digest, _pieces(form.words), len(form.words), leans) if form else Bones(leans=leans)


def _dressed(bones: Bones, name: str, description: str) -> Sketch:
    named, described = _pairs(words(name)), _pairs(words(description)[:60])
    return Sketch(bones.digest, bones.body, named, described, bones.size, bones.leans)


def words(text: str) -> list[str]:
    """Return the meaningful words of a name or a sentence, each without its ending."""
    return [_stem(word.lower()) for word in _WORD.findall(text) if word.lower() not in _SMALL]


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word.removesuffix(ending) + instead
            return stem[:-1] if len(stem) > 3 and stem[-1:] == stem[-2:-1] else stem
    return word


def _pairs(tokens: list[str]) -> frozenset[str]:
    """Return the words and pairs of neighboring words: "celsius to kelvin" is not "kelvin to celsius"."""
    return frozenset([*tokens, *(f"{token} {next_token}" for token, next_token in pairwise(tokens))])


def _pieces(form: tuple[str, ...]) -> frozenset[int]:
    """Return some of the word runs of a form: the one with the least hash of every few (winnowing)."""
    plain = [re.sub(r"^[vP]\d+$", "v", word) for word in form if word not in _MARKS]
    runs = range(max(1, len(plain) - _GRAM + 1))
    hashes = [zlib.crc32("\n".join(plain[at : at + _GRAM]).encode("utf-8", "replace")) for at in runs]
    return frozenset(min(hashes[at : at + _WINDOW]) for at in range(max(1, len(hashes) - _WINDOW + 1)))


class Alike:
    """The functions of the last snapshot that was indexed, ready to be compared."""

    def __init__(self, shelf: IndexStore | None = None) -> None:
        self._shelf = shelf
        self._seen: Mapping[str, Function] = {}
        self._left: frozenset[str] = frozenset()
        self._keys: dict[str, Key] = {}
        self._sketches: dict[str, Sketch] = {}
        self._by_digest: defaultdict[str, set[str]] = defaultdict(set)
        self._by_piece: defaultdict[object, set[str]] = defaultdict(set)

    async def see(self, snapshot: Snapshot, most_s: float = math.inf) -> int:
        """Index a snapshot within the time limit, and return how many functions are left for the next time.

        Nothing may be awaited between this and what is asked of it.
        """
        until = time.monotonic() + most_s
        while self._left or snapshot.functions is not self._seen:
            seen = self._seen
            fresh, pending = await self._fresh(snapshot, until)
            if self._seen is seen:  # nobody else took another one meanwhile
                self._take(snapshot, fresh, pending)
            if snapshot.functions is self._seen and time.monotonic() >= until:
                break
        return len(self._left)

    def _take(self, snapshot: Snapshot, fresh: Mapping[str, tuple[Key, Sketch]], pending: frozenset[str]) -> None:
        stale_names = [
            name for name in self._sketches if name not in snapshot.functions or name in fresh or name in pending
        ]
        for name in stale_names:
            self._forget(name)
        for name, (key, sketch) in fresh.items():
            self._keys[name], self._sketches[name] = key, sketch
            self._by_digest[sketch.digest].add(name)
            for piece in _indexed(sketch):
                self._by_piece[piece].add(name)
        self._seen, self._left = snapshot.functions, pending

    def _forget(self, name: str) -> None:
        old = self._sketches.pop(name)
        del self._keys[name]
        self._by_digest[old.digest].discard(name)
        for piece in _indexed(old):
            self._by_piece[piece].discard(name)

    async def _fresh(self, snapshot: Snapshot, until: float) -> tuple[dict[str, tuple[Key, Sketch]], frozenset[str]]:
        """Return the sketches of changed functions, and the names of those for which there was no time."""
        keys, jobs = dict[str, Key](), list[_Wanted]()
        async for job in _with_pauses(self._other(snapshot)):
            jobs.append(job)
            keys[job.function.name] = job.key
        bones_by_name = await find(self._shelf, keys)
        new_bones: dict[str, Bones] = {}
        async for job in _with_pauses(job for job in jobs if job.function.name not in bones_by_name):
            if time.monotonic() >= until and new_bones:
                break
            new_bones[job.function.name] = await aside(len(job.module), job.bones)
        await keep(self._shelf, {keys[name]: bones for name, bones in new_bones.items()})
        bones_by_name |= new_bones
        sketches = {
            name: _dressed(bones, name, snapshot.functions[name].description) for name, bones in bones_by_name.items()
        }
        return {name: (keys[name], sketch) for name, sketch in sketches.items()}, frozenset(
            keys.keys() - sketches.keys()
        )

    def _other(self, snapshot: Snapshot) -> Iterator["_Wanted"]:
        """Yield the functions that have no current sketch."""
        seen, pending = self._seen, self._left
        changed = (
            function
            for name, function in snapshot.functions.items()
            if seen.get(name) is not function or name in pending
        )
        for module in dict.fromkeys(function.module for function in changed):
            around, source = surroundings(module, snapshot), snapshot.modules[module]
            mark = hashlib.sha256(around.encode("utf-8", "surrogatepass")).hexdigest()
            for function in snapshot.readings[module].functions:
                name, key = function.name, (function.body_hash, mark, source.version)
                if snapshot.functions.get(name) is function and not self._holds(name, key):
                    yield _Wanted(function, key, around, source.text)

    def _holds(self, name: str, key: Key) -> bool:
        """Check whether a function's sketch is stored and would be the same again."""
        stored_key = self._keys.get(name)
        return stored_key is not None and (
            stored_key == key if self._sketches[name].leans else stored_key[:2] == key[:2]
        )

    def copies(self, sketch: Sketch) -> list[str]:
        """Return the functions that compute the same."""
        return sorted(self._by_digest.get(sketch.digest, ())) if sketch.digest else []

    def nearest(self, sketch: Sketch, without: Iterable[str] = ()) -> Similarity | None:
        """Return the function that is most similar to this one."""
        shared: defaultdict[str, float] = defaultdict(float)
        for piece in _indexed(sketch):
            weight = self._weight(piece)
            for name in self._by_piece.get(piece, ()):
                shared[name] += weight
        for name in without:
            shared.pop(name, None)
        likenesses = [
            self._likeness(sketch, name) for name in nlargest(_NEAREST, shared, key=lambda name: (shared[name], name))
        ]
        return max(likenesses, key=lambda likeness: likeness.score, default=None)

    def _weight(self, piece: object) -> float:
        return math.log(1 + len(self._sketches) / (1 + len(self._by_piece.get(piece, ()))))

    def _likeness(self, sketch: Sketch, name: str) -> Similarity:
        other_sketch = self._sketches[name]
        body = len(sketch.body & other_sketch.body) / (len(sketch.body | other_sketch.body) or 1)
        by_name = self._overlap("n", sketch.name, other_sketch.name)
        by_description = self._overlap("d", sketch.description, other_sketch.description)
        w = WEIGHTS
        by_words = (w["name"] * by_name + w["description"] * by_description) / (w["name"] + w["description"])
        return Similarity(name, body, by_words, (1 - w["body"]) * by_words + w["body"] * body)

    def _overlap(self, kind: str, first: frozenset[str], second: frozenset[str]) -> float:
        both = sum(self._weight((kind, word)) for word in first & second)
        return both / (sum(self._weight((kind, word)) for word in first | second) or 1.0)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A function that needs a sketch."""

    function: Function
    key: Key
    around: str
    module: str

    def bones(self) -> Bones:
        own = "".join(lines_of(self.module)[self.function.line - 1 : self.function.end_line])
        return _bones(self.function.name, own, self.around, module=self.module)


T = TypeVar("T")


async def _with_pauses(things: Iterable[T]) -> AsyncIterator[T]:
    """Yield each item, and let other tasks run now and then."""
    since = time.perf_counter()
    for item in things:
        yield item
        if time.perf_counter() - since > _SLICE_S:
            await asyncio.sleep(0)
            since = time.perf_counter()


def _indexed(sketch: Sketch) -> Iterator[object]:
    yield from sketch.body
    yield from (("n", word) for word in sketch.name)
    yield from (("d", word) for word in sketch.description)


def surroundings(module: str, snapshot: Snapshot) -> str:
    """Return a module's text without the functions it exports: imports, constants, helpers."""
    source = snapshot.modules.get(module)
    if source is None:
        return ""
    lines = lines_of(source.text)
    for function in snapshot.readings[module].functions:
        lines[function.line - 1 : function.end_line] = [""] * (function.end_line - function.line + 1)
    return "".join(lines)

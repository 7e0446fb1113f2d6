"""Which functions are like a given one: an index of what they compute and of the words they are described with.

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

from sandbox.lines import lines_of

from ...aside import aside
from ...registry.function import Function
from ...registry.snapshot import Snapshot
from .kept import Bones, Key, Shelf, find, keep
from .normal import normal_form

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
    """What is compared of a function: the hash of its form, pieces of its body, the words around it."""

    digest: str
    body: frozenset[int]
    name: frozenset[str]
    description: frozenset[str]
    size: int = 0  # in words of its form
    leans: bool = False  # on a function that its module offers


@dataclass(frozen=True, slots=True)
class Likeness:
    """How like two functions are, from 0 to 1: their bodies, their words, and both together."""

    name: str
    body: float
    words: float
    score: float


def sketch(name: str, description: str, *texts: str, module: str = "") -> Sketch:
    """The sketch of the function that the texts define; its `module` is read where they leave a name open."""
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
    """The words of a name or a sentence that mean something, each without its ending."""
    return [_stem(word.lower()) for word in _WORD.findall(text) if word.lower() not in _SMALL]


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word.removesuffix(ending) + instead
            return stem[:-1] if len(stem) > 3 and stem[-1:] == stem[-2:-1] else stem
    return word


def _pairs(found: list[str]) -> frozenset[str]:
    """The words and their neighbours: "celsius to kelvin" is not "kelvin to celsius"."""
    return frozenset([*found, *(f"{one} {other}" for one, other in pairwise(found))])


def _pieces(form: tuple[str, ...]) -> frozenset[int]:
    """Some of the runs of words of a form: of every few the one with the least hash (winnowing)."""
    plain = [re.sub(r"^[vP]\d+$", "v", word) for word in form if word not in _MARKS]
    runs = range(max(1, len(plain) - _GRAM + 1))
    hashes = [zlib.crc32("\n".join(plain[at : at + _GRAM]).encode("utf-8", "replace")) for at in runs]
    return frozenset(min(hashes[at : at + _WINDOW]) for at in range(max(1, len(hashes) - _WINDOW + 1)))


class Alike:
    """The functions of the last snapshot that was asked about, ready to be compared."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self._shelf = shelf
        self._seen: Mapping[str, Function] = {}
        self._left: frozenset[str] = frozenset()
        self._keys: dict[str, Key] = {}
        self._sketches: dict[str, Sketch] = {}
        self._by_digest: defaultdict[str, set[str]] = defaultdict(set)
        self._by_piece: defaultdict[object, set[str]] = defaultdict(set)

    async def see(self, snapshot: Snapshot, most_s: float = math.inf) -> int:
        """Take a snapshot, as far as the time goes; how many of its functions are left for the next time.

        Nothing may be awaited between this and what is asked of it.
        """
        until = time.monotonic() + most_s
        while self._left or snapshot.functions is not self._seen:
            seen = self._seen
            fresh, left = await self._fresh(snapshot, until)
            if self._seen is seen:  # nobody else took another one meanwhile
                self._take(snapshot, fresh, left)
            if snapshot.functions is self._seen and time.monotonic() >= until:
                break
        return len(self._left)

    def _take(self, snapshot: Snapshot, fresh: Mapping[str, tuple[Key, Sketch]], left: frozenset[str]) -> None:
        gone = [name for name in self._sketches if name not in snapshot.functions or name in fresh or name in left]
        for name in gone:
            self._forget(name)
        for name, (key, one) in fresh.items():
            self._keys[name], self._sketches[name] = key, one
            self._by_digest[one.digest].add(name)
            for piece in _indexed(one):
                self._by_piece[piece].add(name)
        self._seen, self._left = snapshot.functions, left

    def _forget(self, name: str) -> None:
        old = self._sketches.pop(name)
        del self._keys[name]
        self._by_digest[old.digest].discard(name)
        for piece in _indexed(old):
            self._by_piece[piece].discard(name)

    async def _fresh(self, snapshot: Snapshot, until: float) -> tuple[dict[str, tuple[Key, Sketch]], frozenset[str]]:
        """The sketches of the functions that are not as they were, and those for which the time did not suffice."""
        keys, wanted = dict[str, Key](), list[_Wanted]()
        async for one in _with_pauses(self._other(snapshot)):
            wanted.append(one)
            keys[one.function.name] = one.key
        known = await find(self._shelf, keys)
        made: dict[str, Bones] = {}
        async for one in _with_pauses(one for one in wanted if one.function.name not in known):
            if time.monotonic() >= until and made:
                break
            made[one.function.name] = await aside(len(one.module), one.bones)
        await keep(self._shelf, {keys[name]: bones for name, bones in made.items()})
        known |= made
        found = {name: _dressed(bones, name, snapshot.functions[name].description) for name, bones in known.items()}
        return {name: (keys[name], one) for name, one in found.items()}, frozenset(keys.keys() - found.keys())

    def _other(self, snapshot: Snapshot) -> Iterator["_Wanted"]:
        """The functions whose sketches are not there."""
        seen, left = self._seen, self._left
        changed = (one for name, one in snapshot.functions.items() if seen.get(name) is not one or name in left)
        for module in dict.fromkeys(one.module for one in changed):
            around, source = surroundings(module, snapshot), snapshot.modules[module]
            mark = hashlib.sha256(around.encode("utf-8", "surrogatepass")).hexdigest()
            for function in snapshot.readings[module].functions:
                name, key = function.name, (function.body_hash, mark, source.version)
                if snapshot.functions.get(name) is function and not self._holds(name, key):
                    yield _Wanted(function, key, around, source.text)

    def _holds(self, name: str, key: Key) -> bool:
        """The sketch of a function is there, and would be the same again."""
        held = self._keys.get(name)
        return held is not None and (held == key if self._sketches[name].leans else held[:2] == key[:2])

    def copies(self, one: Sketch) -> list[str]:
        """The functions that compute the same."""
        return sorted(self._by_digest.get(one.digest, ())) if one.digest else []

    def nearest(self, one: Sketch, without: Iterable[str] = ()) -> Likeness | None:
        """The function that is most like this one."""
        shared: defaultdict[str, float] = defaultdict(float)
        for piece in _indexed(one):
            weight = self._weight(piece)
            for name in self._by_piece.get(piece, ()):
                shared[name] += weight
        for name in without:
            shared.pop(name, None)
        found = [
            self._likeness(one, name) for name in nlargest(_NEAREST, shared, key=lambda name: (shared[name], name))
        ]
        return max(found, key=lambda each: each.score, default=None)

    def _weight(self, piece: object) -> float:
        return math.log(1 + len(self._sketches) / (1 + len(self._by_piece.get(piece, ()))))

    def _likeness(self, one: Sketch, name: str) -> Likeness:
        other = self._sketches[name]
        body = len(one.body & other.body) / (len(one.body | other.body) or 1)
        by_name = self._overlap("n", one.name, other.name)
        by_description = self._overlap("d", one.description, other.description)
        w = WEIGHTS
        by_words = (w["name"] * by_name + w["description"] * by_description) / (w["name"] + w["description"])
        return Likeness(name, body, by_words, (1 - w["body"]) * by_words + w["body"] * body)

    def _overlap(self, kind: str, one: frozenset[str], other: frozenset[str]) -> float:
        both = sum(self._weight((kind, word)) for word in one & other)
        return both / (sum(self._weight((kind, word)) for word in one | other) or 1.0)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A function of which there is to be a sketch."""

    function: Function
    key: Key
    around: str
    module: str

    def bones(self) -> Bones:
        own = "".join(lines_of(self.module)[self.function.line - 1 : self.function.end_line])
        return _bones(self.function.name, own, self.around, module=self.module)


T = TypeVar("T")


async def _with_pauses(things: Iterable[T]) -> AsyncIterator[T]:
    """Each of them, letting others act now and then."""
    since = time.perf_counter()
    for one in things:
        yield one
        if time.perf_counter() - since > _SLICE_S:
            await asyncio.sleep(0)
            since = time.perf_counter()


def _indexed(one: Sketch) -> Iterator[object]:
    yield from one.body
    yield from (("n", word) for word in one.name)
    yield from (("d", word) for word in one.description)


def surroundings(module: str, snapshot: Snapshot) -> str:
    """A module's text without the functions that it offers: imports, constants, helpers."""
    source = snapshot.modules.get(module)
    if source is None:
        return ""
    lines = lines_of(source.text)
    for function in snapshot.readings[module].functions:
        lines[function.line - 1 : function.end_line] = [""] * (function.end_line - function.line + 1)
    return "".join(lines)

"""The words of needs and functions, and an index of words over several fields per document.

It ranks by BM25F (Zaragoza et al., TREC 2004): frequencies are normalized by field length and weighted before the
fields are added, so that a word in a name counts for more than one in a long description.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.base.language import language_of
from agent_core.memory import words
from sandbox.wire.lines import lines_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot


NEED_CHARS: Final = 2_000
"""The number of characters of a need that are read."""

DESCRIPTION_CHARS: Final = 600
"""The number of characters of a description that are read: a longer one adds words, not information."""

_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
"""An identifier in a source."""

_ASKING: Final = """
need want help find looking look like know tell give show get make use using provide recommend suggest assist
information any some just also more wants let lets im ive trying try search hey hi
"""
ASKING: Final = frozenset(words.stems(_ASKING.split()))
"""The stems of words that are common in any request."""


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_END: Final = ""
_ARTICLES: Final = _set("the my your our their its every")
_PREPOSITIONS: Final = _set("of to in on for at by from with")
_OBJECTS: Final = _set("me him us them")
_SUBJECTS: Final = _set("I he she we they")
_MODALS: Final = _set("can could will would should shall may might must")
_BE: Final = _set("is are were has had")
_LINKS: Final = _set("and or but because if")
_NEVER_BEHIND: Final = (
    (_ARTICLES, words.STOP - _set("very just then no not here there do as m s t d") | _set("I , ; ? !")),
    (_PREPOSITIONS, _SUBJECTS | _MODALS | _BE | (_PREPOSITIONS - {"to", "by", "from"})),
    (_PREPOSITIONS - {"on", "in", "by", "with"}, _LINKS),
    (_SUBJECTS, _ARTICLES | _PREPOSITIONS | _SUBJECTS | _OBJECTS),
    (_MODALS, _OBJECTS | _BE | _LINKS | _MODALS),
    (_BE, _BE | _MODALS),
    (_set("? !"), words.STOP),
    (_set("a"), _ARTICLES | {"of", "for", "at", "on"}),
    (_ARTICLES | _PREPOSITIONS | _LINKS | _MODALS | {"a", "I"}, {_END}),
)
"""Small English words, and the words that never follow them in a sentence: “the can”, “of and”."""

_TOKEN: Final = re.compile(r"[^\W_]+(?:['’_-]\w+)*|[.,;:!?()]")
_QUOTED: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|“[^”]*”")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+")


def wanted(need: str) -> list[str]:
    """Return the stems of a need's words, without words that are common in any request."""
    stems = words.stems(words.content(need))
    return [stem for stem in stems if stem not in ASKING] or stems


def count_misplaced(description: str) -> int:
    """Return how often a word of a description follows another in a way that no English sentence allows.

    For other languages, return 0.
    """
    if language_of(description) not in ("en", ""):
        return 0
    found = [word.partition("'")[0] for word in _TOKEN.findall(_QUOTED.sub("Q", description))]
    tokens = [word if word.isupper() else word.lower() for word in found]
    return sum(
        any(one in small and other in never for small, never in _NEVER_BEHIND)
        for one, other in pairwise([*tokens, _END])
    )


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
    rest = f"{_parameters(function)} {function.module} {calls} {' '.join(map(_split, sorted(linked)))}"
    texts = (_split(function.name), function.description[:DESCRIPTION_CHARS], rest)
    return [words.stems(words.content(text)) for text in texts]


def mentioned(functions: Mapping[str, "Function"], snapshot: "Snapshot") -> dict[str, frozenset[str]]:
    """Return the functions whose names appear in the source or description of each, without parsing it."""
    lines, named = dict[str, list[str]](), dict[str, frozenset[str]]()
    for name, function in functions.items():
        module = function.module
        if module not in lines:
            lines[module] = lines_of(snapshot.modules[module].text) if module in snapshot.modules else []
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
    return " ".join(f"{_split(name)} {schema.get('description', '')}" for name, schema in properties.items())


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
            self._lengths = np.concatenate([self._lengths, np.zeros((room, len(self._weights)), np.float32)])
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
                table = np.array([*rows.values()], np.float32).reshape(len(rows), len(self._weights))
                self._arrays[word] = np.fromiter(rows, np.int64, len(rows)), table
            slots, counts = self._arrays[word]
            length = 1 - self._slopes + self._slopes * self._lengths[slots] / average
            frequency = (counts * (self._weights / length)).sum(1)
            scores[slots] += self.weight(word) * frequency * (_SATURATION + 1) / (frequency + _SATURATION)
        best: Any = scores.max(initial=0)  # Any: a numpy scalar
        return scores / best if best > 0 else scores

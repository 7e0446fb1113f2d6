"""Tokenizes needs and functions for the search."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_core.base.language import language_of
from agent_core.memory import words
from sandbox.wire.lines import lines_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot

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

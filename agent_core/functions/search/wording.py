"""The words of needs and of functions: what of each a search reads."""

import re
from collections.abc import Iterable
from typing import Final

from agent_core.memory import words
from agent_core.registry.function import Function

NEED_CHARS: Final = 2_000
"""So much of a need is read."""

DESCRIPTION_CHARS: Final = 600
"""So much of a description is read: a longer one covers more words, not more of what is needed."""

IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
"""A name in a source."""

_ASKING: Final = """
need want help find looking look like know tell give show get make use using provide recommend suggest assist
information any some just also more wants let lets im ive trying try search hey hi
"""
ASKING: Final = frozenset(words.stems(_ASKING.split()))
"""The stems of the words with which people ask for anything."""

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+")


def wanted(need: str) -> list[str]:
    """Return the stems of a need's words, without those of asking."""
    stems = words.stems(words.content(need))
    return [stem for stem in stems if stem not in ASKING] or stems


def spoken(function: Function) -> list[tuple[str, str]]:
    """Return the words of a function's name and description, each with its stem."""
    said = words.content(f"{_split(function.name)} {function.description[:DESCRIPTION_CHARS]}")
    return list(zip(words.stems(said), said, strict=True))


def fields(function: Function, linked: Iterable[str]) -> list[list[str]]:
    """Return the stems of a function's name, of its description, and of all else, with the names `linked` to it."""
    calls = " ".join(example.call for example in function.examples)
    rest = f"{_parameters(function)} {function.module} {calls} {' '.join(map(_split, sorted(linked)))}"
    texts = (_split(function.name), function.description[:DESCRIPTION_CHARS], rest)
    return [words.stems(words.content(text)) for text in texts]


def views(function: Function) -> tuple[str, str, str]:
    """Return three texts to embed: name with description, description alone, both with the parameters."""
    name, description = _split(function.name), function.description[:DESCRIPTION_CHARS]
    short = f"{name}. {description}"
    return short, description or name, f"{short} {_parameters(function)}"


def _split(name: str) -> str:
    return _HUMP.sub(" ", name)


def _parameters(function: Function) -> str:
    properties = function.parameters.get("properties", {})
    return " ".join(f"{_split(name)} {schema.get('description', '')}" for name, schema in properties.items())

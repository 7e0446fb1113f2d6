"""What a search asks for: its words, the speakers and times it names, and into which parts it falls. Pure values."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from . import dates
from .stem import stem
from .words import STOP, content, split

_WHEN: Final = re.compile(
    r"\s*(when\b|what (date|year|month|day|time)\b|how long\b|which (year|month|day|date)\b|since when|how many "
    r"(days|weeks|months|years))",
    re.IGNORECASE,
)
LONGEST: Final = 1_000
"""Characters of a question."""
_KEPT: Final = re.compile(r"[^\W_]+(?:'s)?")
_ROLES: Final = {"user": frozenset({"user", "human"}), "assistant": frozenset({"assistant"})}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. `terms` are the stems of its content words, `about` its text without the `names` of speakers."""

    text: str
    words: tuple[str, ...]
    terms: tuple[str, ...]
    names: frozenset[str]
    named: frozenset[str]
    about: str
    times: tuple[dates.Mention, ...]
    is_when: bool


def heard(query: str) -> str:
    """Return as much of a question as is searched for: each word is weighed against every row."""
    return query[:LONGEST]


def read(text: str, speakers: Collection[str], now: float) -> Asked:
    """A question as search understands it; `speakers` are those whose messages are searched."""
    spoken = set(split(text))
    names = {name: _names(name) for name in speakers}
    words = {stem(word): word for word in reversed(content(text) or split(text))}
    all_names: frozenset[str] = frozenset().union(*names.values())
    return Asked(
        text,
        tuple(words.values()),
        tuple(words),
        all_names,
        frozenset(name for name, forms in names.items() if forms & spoken),
        _without(text, all_names),
        tuple(dates.mentions(text, now)),
        _WHEN.match(text) is not None,
    )


def _names(speaker: str) -> frozenset[str]:
    return _ROLES.get(speaker, frozenset(word for word in split(speaker) if word not in STOP))


def _without(text: str, names: Collection[str]) -> str:
    """A text without names: of a vector that is an average they would be the larger part."""
    kept = [word for word in _KEPT.findall(text) if word.lower().removesuffix("'s") not in names]
    return " ".join(kept) or text

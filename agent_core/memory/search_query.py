"""The parts of a search query: its words, the speakers and times it names, and its clauses. Pure values."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from agent_core.base.language import stem
from agent_core.base.offload import one_at_a_time

from . import dates
from .words import STOP, content, forms, split

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
class ParsedQuery:
    """A parsed question. `terms` are the stems of its content words, `forms` those in other languages, `about` is its
    text without the `names` of speakers.
    """

    text: str
    words: tuple[str, ...]
    terms: tuple[str, ...]
    forms: Mapping[str, str]
    names: frozenset[str]
    named: frozenset[str]
    about: str
    times: tuple[dates.TimeMention, ...]
    is_when: bool


def heard(query: str) -> str:
    """Return the part of a question that is searched for, since each word is weighed against every row."""
    return query[:LONGEST]


async def read(text: str, speakers: Collection[str], now: float) -> ParsedQuery:
    """Parse a question; `speakers` are the authors of the messages to be searched.

    Times are looked for in up to two hundred languages, which takes a second.
    """
    return await one_at_a_time(_read, text, frozenset(speakers), now)


def _read(text: str, speakers: Collection[str], now: float) -> ParsedQuery:
    spoken = set(split(text))
    names = {name: _names(name) for name in speakers}
    words = {stem(word): word for word in reversed(content(text) or split(text))}
    all_names: frozenset[str] = frozenset().union(*names.values())
    return ParsedQuery(
        text,
        tuple(words.values()),
        tuple(words),
        forms(words.values()),
        all_names,
        frozenset(name for name, forms in names.items() if forms & spoken),
        _without(text, all_names),
        tuple(dates.mentions(text, now)),
        _WHEN.match(text) is not None,
    )


def _names(speaker: str) -> frozenset[str]:
    return _ROLES.get(speaker, frozenset(word for word in split(speaker) if word not in STOP))


def _without(text: str, names: Collection[str]) -> str:
    """Return a text without names, which would dominate a vector that is an average."""
    remaining = [word for word in _KEPT.findall(text) if word.lower().removesuffix("'s") not in names]
    return " ".join(remaining) or text

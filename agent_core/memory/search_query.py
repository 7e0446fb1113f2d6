"""A search query with its words, speakers and times, and the data for ranking: rows, cosines, weights. Pure values.

The weights and their origin are in `weights.toml`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base.language import stem
from agent_core.base.offload import one_at_a_time
from sandbox.wire.strict_json import read_toml

from . import dates
from .words import STOP, content, counted_stems, forms, split

if TYPE_CHECKING:
    from agent_core.storage import RecallMessage

LONGEST: Final = 1_000
"""Maximum characters of a question."""
_KEPT: Final = re.compile(r"[^\W_]+(?:'s)?")
_ROLES: Final = {"user": frozenset({"user", "human"}), "assistant": frozenset({"assistant"})}


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed question. `terms` are the stems of its content words, `forms` those in other languages.

    `about` is its text without the `names` of speakers.
    """

    text: str
    words: tuple[str, ...]
    terms: tuple[str, ...]
    forms: Mapping[str, str]
    names: frozenset[str]
    named: frozenset[str]
    about: str
    times: tuple[dates.TimeMention, ...]


def heard(query: str) -> str:
    """Return the part of a question that is searched for; each word is compared with every row."""
    return query[:LONGEST]


async def read(text: str, speakers: Collection[str], now: float) -> ParsedQuery:
    """Parse a question; `speakers` are the authors of the searched messages.

    Times are searched in up to two hundred languages, which takes a second.
    """
    return await one_at_a_time(_read, text, frozenset(speakers), now)


def _read(text: str, speakers: Collection[str], now: float) -> ParsedQuery:
    spoken = set(split(text))
    names = {name: _ROLES.get(name, frozenset(word for word in split(name) if word not in STOP)) for name in speakers}
    words = {stem(word): word for word in reversed(content(text) or split(text))}
    all_names: frozenset[str] = frozenset().union(*names.values())
    # Names would dominate a vector that is an average.
    unnamed = " ".join(word for word in _KEPT.findall(text) if word.lower().removesuffix("'s") not in all_names)
    return ParsedQuery(
        text,
        tuple(words.values()),
        tuple(words),
        forms(words.values()),
        all_names,
        frozenset(name for name, forms in names.items() if forms & spoken),
        unnamed or text,
        tuple(dates.mentions(text, now)),
    )


@dataclass(frozen=True, slots=True)
class CountedMessage:
    """A message with its words and counted stems."""

    utterance: "RecallMessage"
    words: tuple[str, ...]
    counts: Mapping[str, int]
    size: int


@dataclass(frozen=True, slots=True)
class RecallEvidence:
    """The evidence for a question: rows ordered by `n`, those with its words, cosines, and the total of rows."""

    question: ParsedQuery
    rows: Sequence[CountedMessage]
    worded: frozenset[int]
    cosines: Mapping[int, float]
    total: int


def row(message: "RecallMessage") -> CountedMessage:
    """Return a message prepared for scoring."""
    words = message.words.split()
    counts = counted_stems(message.words)
    return CountedMessage(message, tuple(dict.fromkeys(words)), counts, len(words))


Weights: TypeAlias = Mapping[str, float]


@cache
def weights(shelf: str, recipe: str) -> Weights:
    """Return the weights for a store and an embedding model; a model without weights gets those for words only."""
    tables = _tables()[shelf]
    return tables.get(recipe, tables["none"])


@cache
def pool(shelf: str) -> Mapping[str, int]:
    """Return the sizes of a search: rows by words and by vectors, and the neighbors `around` the best `beside` rows."""
    return {name: int(value) for name, value in _tables()["pool"][shelf].items()}


@cache
def _tables() -> dict[str, dict[str, Weights]]:
    return read_toml(files(__package__).joinpath("weights.toml").read_text("utf-8"))

"""The input of the ranking of a search, in pure values: rows ready for scoring, cosines, and the weight of each signal.

The weights and their origin are in `weights.toml`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from agent_core.storage import RecallMessage
from sandbox.wire.foreign import read_toml

from .search_query import ParsedQuery
from .words import counted_stems


@dataclass(frozen=True, slots=True)
class CountedMessage:
    """A message with its words and counted stems."""

    utterance: RecallMessage
    words: tuple[str, ...]
    counts: Mapping[str, int]
    size: int


@dataclass(frozen=True, slots=True)
class RecallEvidence:
    """The evidence for a question: rows in the order of `n`, those that contain its words, cosines, and the total of
    rows.
    """

    question: ParsedQuery
    rows: Sequence[CountedMessage]
    worded: frozenset[int]
    cosines: Mapping[int, float]
    total: int


def row(utterance: RecallMessage) -> CountedMessage:
    """Return a message prepared for scoring."""
    words = utterance.words.split()
    counts = counted_stems(utterance.words)
    return CountedMessage(utterance, tuple(dict.fromkeys(words)), counts, len(words))


Weights: TypeAlias = Mapping[str, float]


@cache
def weights(shelf: str, recipe: str) -> Weights:
    """Return the weights for a shelf and an embedding model; a model without its own gets those of the words alone."""
    tables = _tables()[shelf]
    return tables.get(recipe, tables["none"])


@cache
def pool(shelf: str) -> Mapping[str, int]:
    """Return how many rows a search collects: by words, by vector, and how many positions `around` the best `beside` of
    each.
    """
    return {name: int(value) for name, value in _tables()["pool"][shelf].items()}


@cache
def _tables() -> dict[str, dict[str, Weights]]:
    return read_toml(files(__package__).joinpath("weights.toml").read_text("utf-8"))

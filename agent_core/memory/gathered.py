"""What a search of the conversation gathers before it weighs: rows ready for scoring, cosines, and of how many. Values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..storage import Said
from .asked import Asked
from .stem import stem

_SELF: Final = re.compile(r"\b(?:i|my|me|mine|we|our|us)\b", re.IGNORECASE)
_OTHER: Final = re.compile(r"\b(?:you|your|yours|ya)\b", re.IGNORECASE)
_NAME: Final = re.compile(r"(?<=[a-z,;:\"] )\"?[A-Z][a-z]+")
_NUMBER: Final = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twice|once|few|couple)\b", re.I)
_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A message with its words, their stems counted, and what its text is like.

    `self_told` and `addressed` are how much it speaks of who says it and of who hears it, from 0 to 1.
    """

    said: Said
    words: tuple[str, ...]
    counts: Mapping[str, int]
    size: int
    self_told: float
    addressed: float
    has_name: bool
    has_number: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found for a question: rows in the order of `n`, which hold its words, cosines, how many rows there are."""

    asked: Asked
    rows: Sequence[Row]
    worded: frozenset[int]
    cosines: Mapping[int, float]
    total: int


def row(said: Said) -> Row:
    """A message made ready for scoring."""
    words = said.words.split()
    counts: dict[str, int] = {}
    for word in words:
        term = stem(word)
        counts[term] = counts.get(term, 0) + 1
    text = said.text
    return Row(
        said,
        tuple(dict.fromkeys(words)),
        counts,
        len(words),
        min(len(_SELF.findall(text)), _MOST) / _MOST,
        min(len(_OTHER.findall(text)), _MOST) / _MOST,
        _NAME.search(text) is not None,
        _NUMBER.search(text) is not None,
    )

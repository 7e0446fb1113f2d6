"""The input of the ranking of a conversation search: rows ready for scoring, cosines, and the total. Pure values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_core.storage import RecallMessage

from .search_query import ParsedQuery
from .stem import stem

_SELF: Final = frozenset("i i'm i've i'd i'll my me mine we we're we've our us".split())  # noqa: SIM905
_OTHER: Final = frozenset("you you're you've you'll your yours ya".split())  # noqa: SIM905
_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class CountedMessage:
    """A message with its words and counted stems, and how much it refers to its speaker and to the listener."""

    utterance: RecallMessage
    words: tuple[str, ...]
    counts: Mapping[str, int]
    size: int
    self_told: float
    addressed: float


@dataclass(frozen=True, slots=True)
class Evidence:
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
    counts: dict[str, int] = {}
    for word in words:
        term = stem(word)
        counts[term] = counts.get(term, 0) + 1
    spoken = utterance.text.lower().replace("’", "'").split()
    self_reference, addressed = (min(sum(map(own.__contains__, spoken)), _MOST) / _MOST for own in (_SELF, _OTHER))
    return CountedMessage(utterance, tuple(dict.fromkeys(words)), counts, len(words), self_reference, addressed)

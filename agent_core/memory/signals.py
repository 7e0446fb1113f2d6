"""Numbers that say how well each of the rows gathered fits a question; their weighted sum is its score. Pure values.

Rows come in the order of the conversation. What belongs to neighbours counts within a session; a neighbour that was
not gathered counts nothing. Scores of words are shares of the best row's.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from ..storage import Said
from . import dates
from .bm25 import Array, bm25, counted, rarity, top
from .gathered import Evidence

Signals: TypeAlias = dict[str, Array]
"""By name, a number for each row."""

AROUND: Final = 3
_NAMING: Final = re.compile(
    r"\b(who|where|which|name|city|country|place|book|movie|film|game|author|band|song|title|called)\b", re.IGNORECASE
)
_NAME: Final = re.compile(r"[a-z,;:\"] \"?[A-Z][a-z]")
_NUMBER: Final = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twice|once|few|couple)\b", re.IGNORECASE
)
_COUNTING: Final = re.compile(r"\bhow (many|much|old|long|often)\b", re.IGNORECASE)


class _Beside:
    """Who stands beside whom: values of rows as seen from their neighbours in the session."""

    def __init__(self, found: Evidence) -> None:
        numbers = np.array([each.said.n for each in found.rows])
        sessions = np.array([each.said.session for each in found.rows])
        self.first = np.flatnonzero(np.r_[True, sessions[1:] != sessions[:-1]])
        self.session = np.cumsum(np.r_[True, sessions[1:] != sessions[:-1]]) - 1
        self._places: dict[int, tuple[Array, Array]] = {}
        for step in (*range(-AROUND, 0), *range(1, AROUND + 1)):
            place = np.minimum(np.searchsorted(numbers, numbers + step), len(numbers) - 1)
            self._places[step] = place, (numbers[place] == numbers + step) & (sessions[place] == sessions)

    def at(self, values: Array, step: int) -> Array:
        """The values of the rows that stand so many places on; 0 where there is none."""
        place, is_there = self._places[step]
        return values[place] * (is_there if values.ndim == 1 else is_there[:, None])

    def best(self, values: Array, around: int) -> Array:
        """The highest values among so many neighbours on each side and the row."""
        for step in range(1, around + 1):
            values = np.maximum(values, np.maximum(self.at(values, step), self.at(values, -step)))
        return values

    def best_of_session(self, values: Array) -> Array:
        """The highest value in the row's session."""
        best: Array = np.maximum.reduceat(values, self.first)[self.session]
        return best

    def whole_session(self, values: Array) -> Array:
        """The sums of each session."""
        sums: Array = np.add.reduceat(values, self.first)
        return sums


def measure(found: Evidence, likeness: Array | None = None) -> Signals:
    """Every signal of the rows; `likeness` is how near each row has each asked word."""
    if not found.rows:
        return {}
    beside = _Beside(found)
    held = counted([each.counts for each in found.rows], found.asked.terms)
    worded = np.array([each.said.seq in found.worded for each in found.rows])
    rare = rarity(held, worded, found.total)
    signals = _by_words(found, beside, held, rare) | _by_form(found, beside)
    if found.cosines:
        signals |= _by_meaning(found, beside)
    if likeness is not None and likeness.size:
        signals |= _by_likeness(found, beside, likeness, rare)
    return signals


def _by_words(found: Evidence, beside: _Beside, held: Array, rare: Array) -> Signals:
    sizes = np.array([each.size for each in found.rows], "f4")
    own = top(bm25(held, sizes, rare))
    around, breadth = held.copy(), sizes.copy()
    for step in range(1, AROUND + 1):
        around += beside.at(held, step) + beside.at(held, -step)
        breadth += beside.at(sizes, step) + beside.at(sizes, -step)
    whole = top(bm25(beside.whole_session(held), beside.whole_session(sizes), rare))
    return {
        "own": own,
        "before": beside.at(own, -1),
        "after": beside.at(own, 1),
        "window": top(bm25(around, breadth, rare)),
        "session_best": beside.best_of_session(own),
        "session": whole[beside.session],
    }


def _by_form(found: Evidence, beside: _Beside) -> Signals:
    rows, asked = found.rows, found.asked
    asks = np.array([float(each.said.asks) for each in rows])
    timed = np.array([float(each.said.timed) for each in rows])
    speaker = np.array([float(each.said.speaker in asked.named) for each in rows])
    told = np.array([each.self_told for each in rows])
    addressed = np.array([each.addressed for each in rows])
    return {
        "length": np.log1p([each.said.length for each in rows]) / 3,
        "asks": asks,
        "asked_before": beside.at(asks, -1),
        "timed": timed,
        "timed_when": timed * asked.is_when,
        "speaker": speaker,
        "told": told,
        "told_speaker": told * speaker,
        "addressed": addressed,
        "addressed_speaker": addressed * speaker,
        "name_asked": _holding(_NAME, found, is_asked=_NAMING.search(asked.text) is not None),
        "number_asked": _holding(_NUMBER, found, is_asked=_COUNTING.search(asked.text) is not None),
        "dated": _dated(found),
        "names_time": _names_time(found),
    }


def _holding(pattern: re.Pattern[str], found: Evidence, *, is_asked: bool) -> Array:
    """Whether a message holds what a question asks for."""
    return np.array([float(is_asked and pattern.search(each.said.text) is not None) for each in found.rows])


def _dated(found: Evidence) -> Array:
    """Whether a message is from a time that the question names."""
    times = found.asked.times
    return np.array([float(any(time.holds(each.said.at) for time in times)) for each in found.rows])


def _names_time(found: Evidence) -> Array:
    """Whether a message speaks of a time that the question names: its "last week" is reckoned from its own date."""
    times = found.asked.times
    return np.array([float(bool(times) and each.said.timed and _meets(each.said, times)) for each in found.rows])


def _meets(said: Said, times: tuple[dates.Mention, ...]) -> bool:
    return any(time.meets(other) for time in times for other in _spoken(said.text, said.at))


@lru_cache(maxsize=4096)
def _spoken(text: str, at: float) -> tuple[dates.Mention, ...]:
    return tuple(dates.mentions(text, at))


def _by_meaning(found: Evidence, beside: _Beside) -> Signals:
    near = np.array([found.cosines.get(each.said.seq, 0.0) for each in found.rows])
    asked_before = beside.at(np.array([float(each.said.asks) for each in found.rows]), -1)
    return {
        "meaning": near,
        "meaning_before": beside.at(near, -1),
        "meaning_before_2": beside.at(near, -2),
        "meaning_after": beside.at(near, 1),
        "meaning_session": beside.best_of_session(near),
        "answers": asked_before * beside.at(near, -1),
    }


def _by_likeness(found: Evidence, beside: _Beside, likeness: Array, rare: Array) -> Signals:
    """How much of the question the row, three rows and seven rows hold in words of a like meaning; names aside."""
    shares = np.where(rare > 0, rare, np.log1p(found.total))
    shares = shares * np.array([word not in found.asked.names for word in found.asked.words])
    shares = shares / max(float(shares.sum()), 1e-9)
    near = beside.best(likeness, 1)
    return {"like": likeness @ shares, "like_3": near @ shares, "like_7": beside.best(likeness, AROUND) @ shares}


def summed(signals: Signals, counts: Mapping[str, float], rows: int) -> Array:
    """The score of each row; a signal that is not there counts nothing."""
    scores = np.zeros(rows)
    for name, weight in counts.items():
        if name in signals:
            scores += weight * signals[name]
    return scores

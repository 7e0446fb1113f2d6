"""Numbers that say how well each of the rows found fits a question; their weighted sum is its score. Pure values.

Rows come in the order of the conversation. Scores of words are BM25 over the rows at hand, with the rarity of a word
estimated for all rows of the agent, and divided by the best row's; what belongs to neighbours counts within a session.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..storage import Said
from .asked import Asked
from .bm25 import bm25, rarity, top
from .stem import stem

Signal: TypeAlias = list[float]

_AROUND: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A message with its stems counted."""

    said: Said
    counts: Mapping[str, int]
    size: int


def row(said: Said) -> Row:
    """A message made ready for scoring."""
    counts: dict[str, int] = {}
    words = said.words.split()
    for word in words:
        term = stem(word)
        counts[term] = counts.get(term, 0) + 1
    return Row(said, counts, len(words))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found for a question: rows by `n`, which of them hold its words, cosines, how many rows there are."""

    asked: Asked
    rows: Sequence[Row]
    worded: frozenset[int]
    cosines: Mapping[int, float]
    total: int


def measure(found: Evidence) -> dict[str, Signal]:
    """Every signal, a number for each row."""
    rows = found.rows
    rare = rarity(found.asked.terms, [(each.counts, each.said.seq in found.worded) for each in rows], found.total)
    held = [{term: each.counts[term] for term in rare if term in each.counts} for each in rows]
    own = bm25(held, [each.size for each in rows], rare)
    sessions = [each.said.session for each in rows]
    best = max(own, default=0.0) or 1.0
    scaled = [score / best for score in own]
    spans = _windows(rows)
    signals = {
        "own": scaled,
        "before": _beside(scaled, rows, -1),
        "after": _beside(scaled, rows, 1),
        "before_2": _beside(scaled, rows, -2),
        "after_2": _beside(scaled, rows, 2),
        "window": top(bm25(*_joined(held, rows, spans), rare)),
        "session_best": _by_session(scaled, sessions),
        "session": _session(held, rows, sessions, rare),
    }
    return signals | _forms(found) | _meanings(found)


def _windows(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """For each row the slice of rows around it, in its session."""
    spans, first, last = [], 0, 0
    for each in rows:
        n, session = each.said.n, each.said.session
        while rows[first].said.n < n - _AROUND or rows[first].said.session != session:
            first += 1
        last = max(last, first)
        while last < len(rows) and rows[last].said.n <= n + _AROUND and rows[last].said.session == session:
            last += 1
        spans.append((first, last))
    return spans


def _joined(
    held: Sequence[Mapping[str, int]], rows: Sequence[Row], spans: Sequence[tuple[int, int]]
) -> tuple[list[dict[str, int]], list[int]]:
    counts, sizes = [], []
    for first, last in spans:
        joined: dict[str, int] = {}
        for each in held[first:last]:
            for term, count in each.items():
                joined[term] = joined.get(term, 0) + count
        counts.append(joined)
        sizes.append(sum(each.size for each in rows[first:last]))
    return counts, sizes


def _beside(scores: Signal, rows: Sequence[Row], step: int) -> Signal:
    """The score of the row that many places on; 0 where there is none in the session."""
    at = {each.said.n: place for place, each in enumerate(rows)}
    beside = []
    for each in rows:
        place = at.get(each.said.n + step)
        is_same = place is not None and rows[place].said.session == each.said.session
        beside.append(scores[place] if place is not None and is_same else 0.0)
    return beside


def _by_session(scores: Signal, sessions: Sequence[int]) -> Signal:
    best: dict[int, float] = {}
    for score, session in zip(scores, sessions, strict=True):
        best[session] = max(best.get(session, score), score)
    return [best[session] for session in sessions]


def _session(
    held: Sequence[Mapping[str, int]], rows: Sequence[Row], sessions: Sequence[int], rare: Mapping[str, float]
) -> Signal:
    """BM25 of whole sessions, as far as they are at hand."""
    counts: dict[int, dict[str, int]] = {}
    sizes: dict[int, int] = {}
    for each, session, held_here in zip(rows, sessions, held, strict=True):
        joined = counts.setdefault(session, {})
        sizes[session] = sizes.get(session, 0) + each.size
        for term, count in held_here.items():
            joined[term] = joined.get(term, 0) + count
    known = list(counts)
    scores = top(bm25([counts[each] for each in known], [sizes[each] for each in known], rare))
    by_session = dict(zip(known, scores, strict=True))
    return [by_session[session] for session in sessions]


def _forms(found: Evidence) -> dict[str, Signal]:
    rows, asked = found.rows, found.asked
    asks = [float(each.said.asks) for each in rows]
    timed = [float(each.said.timed) for each in rows]
    return {
        "length": [math.log1p(each.said.length) / 3 for each in rows],
        "asks": asks,
        "asked_before": _beside(asks, rows, -1),
        "timed": timed,
        "timed_when": [each * asked.is_when for each in timed],
        "speaker": [float(each.said.speaker in asked.named) for each in rows],
        "dated": _dated(found),
    }


def _dated(found: Evidence) -> Signal:
    """Whether a message is from a time that the question names."""
    times = found.asked.times
    return [float(any(time.holds(each.said.at) for time in times)) for each in found.rows]


def _meanings(found: Evidence) -> dict[str, Signal]:
    if not found.cosines:
        return {}
    near = [found.cosines.get(each.said.seq, 0.0) for each in found.rows]
    return {
        "meaning": near,
        "meaning_before": _beside(near, found.rows, -1),
        "meaning_after": _beside(near, found.rows, 1),
        "meaning_session": _by_session(near, [each.said.session for each in found.rows]),
    }

"""Signals that measure how well each gathered row fits a question; their weighted sum is its score. Pure values.

Messages are in the order of the conversation. Neighbors count within a session; a neighbor that was not gathered counts
0. Word scores are shares of the best row's score. Passages have only words, meaning and neighbors. The vectors of
single words are cached, because texts share most of their words.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np

from agent_core.base.errors import KnapperError
from agent_core.base.likeness import Array, bm25, counted, rarity, top
from agent_core.base.offload import aside
from agent_core.base.short_texts import kept_if_short
from agent_core.storage import PassageRow

from .embedding import Embedder
from .search import ParsedQuery, RecallEvidence
from .words import counted_stems

Signals: TypeAlias = dict[str, Array]
"""Arrays by name, with a number for each row."""

AROUND: Final = 3
_APART: Final = 1 << 40  # between the numbers of two conversations: none are neighbors
_LETTERS: Final = 10_000_000  # of the texts whose words are kept with their vectors


class _Beside:
    """The neighbors of rows in the session of their conversation: values as seen from each row."""

    def __init__(self, evidence: RecallEvidence) -> None:
        lines = [row.utterance.line for row in evidence.rows]
        places = {line: _APART * place for place, line in enumerate(dict.fromkeys(lines))}
        apart = np.array([places[line] for line in lines])
        numbers = np.array([row.utterance.n for row in evidence.rows]) + apart
        sessions = np.array([row.utterance.session for row in evidence.rows]) + apart
        self.first = np.flatnonzero(np.r_[True, sessions[1:] != sessions[:-1]])
        self.session = np.cumsum(np.r_[True, sessions[1:] != sessions[:-1]]) - 1
        self._places: dict[int, tuple[Array, Array]] = {}
        for step in (*range(-AROUND, 0), *range(1, AROUND + 1)):
            place = np.minimum(np.searchsorted(numbers, numbers + step), len(numbers) - 1)
            self._places[step] = (
                place,
                (numbers[place] == numbers + step) & (sessions[place] == sessions),
            )

    def at(self, values: Array, step: int) -> Array:
        """Return the values of the rows `step` positions later; 0 if there is none."""
        place, is_there = self._places[step]
        return values[place] * (is_there if values.ndim == 1 else is_there[:, None])

    def best(self, values: Array, around: int) -> Array:
        """Return the highest values among the row and `around` neighbors on each side."""
        for step in range(1, around + 1):
            values = np.maximum(values, np.maximum(self.at(values, step), self.at(values, -step)))
        return values

    def best_of_session(self, values: Array) -> Array:
        """Return the highest value in the row's session."""
        best: Array = np.maximum.reduceat(values, self.first)[self.session]
        return best

    def whole_session(self, values: Array) -> Array:
        """Return the sum for each session."""
        sums: Array = np.add.reduceat(values, self.first)
        return sums


def measure(evidence: RecallEvidence, likeness: Array | None = None) -> Signals:
    """Return every signal of the rows; `likeness` is the similarity of each row to each query word."""
    rows, question = evidence.rows, evidence.question
    if not rows:
        return {}
    neighbors = _Beside(evidence)
    counts = counted([row.counts for row in rows], question.terms, question.forms)
    worded = np.array([row.utterance.seq in evidence.worded for row in rows])
    rare = rarity(counts, worded, evidence.total)
    sizes = np.array([row.size for row in rows], "f4")
    own = top(bm25(counts, sizes, rare))
    around, breadth = counts.copy(), sizes.copy()
    for step in range(1, AROUND + 1):
        around += neighbors.at(counts, step) + neighbors.at(counts, -step)
        breadth += neighbors.at(sizes, step) + neighbors.at(sizes, -step)
    whole = top(bm25(neighbors.whole_session(counts), neighbors.whole_session(sizes), rare))
    asks = np.array([float(row.utterance.asks) for row in rows])
    signals = {
        "own": own,
        "before": neighbors.at(own, -1),
        "window": top(bm25(around, breadth, rare)),
        "session_best": neighbors.best_of_session(own),
        "session": whole[neighbors.session],
        "length": np.log1p([row.utterance.length for row in rows]) / 3,
        "asks": asks,
        "asked_before": neighbors.at(asks, -1),
        "timed": np.array([float(row.utterance.timed) for row in rows]),
        "speaker": np.array([float(row.utterance.speaker in question.named) for row in rows]),
        "dated": np.array(
            [float(any(time.holds(row.utterance.at) for time in question.times)) for row in rows]
        ),
    }
    if evidence.cosines:
        cosines = np.array([evidence.cosines.get(row.utterance.seq, 0.0) for row in rows])
        signals |= {
            "meaning": cosines,
            "meaning_before": neighbors.at(cosines, -1),
            "meaning_before_2": neighbors.at(cosines, -2),
            "meaning_after": neighbors.at(cosines, 1),
            "meaning_session": neighbors.best_of_session(cosines),
        }
        signals["answers"] = signals["asked_before"] * signals["meaning_before"]
    if likeness is not None and likeness.size:
        # How much of the question's words, except names, a row, three rows and seven rows match by meaning.
        shares = np.where(rare > 0, rare, np.log1p(evidence.total))
        shares = shares * np.array([word not in question.names for word in question.words])
        shares = shares / max(float(shares.sum()), 1e-9)
        signals["like"] = likeness @ shares
        signals["like_3"] = neighbors.best(likeness, 1) @ shares
        signals["like_7"] = neighbors.best(likeness, AROUND) @ shares
    return signals


def ordered(signals: Signals, weights: Mapping[str, float], rows: int) -> list[int]:
    """Return the indexes of rows by the weighted sum of their signals, best first; among equals, the newest first.

    A missing signal counts 0.
    """
    scores = np.zeros(rows)
    for name, weight in weights.items():
        if name in signals:
            scores += weight * signals[name]
    return sorted(range(rows), key=lambda place: (-scores[place], -place))


def measure_passages(
    rows: Sequence[PassageRow],
    query: ParsedQuery,
    worded: Collection[int],
    cosines: Mapping[int, float],
    total: int,
) -> Signals:
    """Return every signal of the passages."""
    stems = [_stems(row.words) for row in rows]
    counts = counted(stems, query.terms, query.forms)
    rare = rarity(counts, np.array([row.seq in worded for row in rows], bool), total)
    own = top(bm25(counts, np.array([len(row.words.split()) for row in rows], "f4"), rare))
    at = {
        (row.document, row.n): score
        for row, score in zip(rows, own.tolist(), strict=True)
        if row.document
    }
    scores = [
        max(at.get((row.document, row.n - 1), 0.0), at.get((row.document, row.n + 1), 0.0))
        for row in rows
    ]
    signals = {"own": own, "beside": np.array(scores)}
    if cosines:
        signals["meaning"] = np.array([cosines.get(row.seq, 0.0) for row in rows])
    return signals


_stems: Final = kept_if_short(maxsize=4096, most_chars=4_000)(counted_stems)


_MOST: Final = 30_000
_NEAR: Final = 0.35
# The number of multiplications for which numpy's library starts no threads; waiting for threads takes many times as
# long.
_ALONE: Final = 1 << 18


class Lexicon:
    """The cached vectors of words."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._texts: dict[int, Array] = {}
        self._letters = 0
        self._one_at_a_time = asyncio.Lock()
        self._vectors: Array = np.empty((0, 0), "f4")

    async def likeness(
        self, query_words: Sequence[str], texts: Mapping[int, Sequence[str]]
    ) -> Array | None:
        """Return, for each text (a row) and query word, the cosine of the nearest word in that text; 0 if none is near.

        None if the model is unavailable.
        """
        size = sum(map(len, texts.values()))
        async with self._one_at_a_time:  # concurrent searches would assign the same index twice
            missing = await aside(size, self._missing, query_words, texts)
            try:
                vectors = await self._embedder.embed(missing) if missing else []
            except KnapperError:
                return None
            return await aside(
                size + len(missing), self._compare, query_words, texts, missing, vectors
            )

    def _missing(self, query_words: Iterable[str], texts: Mapping[int, Sequence[str]]) -> list[str]:
        """Return the words without a vector, of the question and of texts that were not seen before."""
        if max(len(self._places), len(self._texts)) > _MOST or self._letters > _LETTERS:
            self._places, self._texts, self._vectors = {}, {}, np.empty((0, 0), "f4")
            self._letters = 0
        fresh = [words for number, words in texts.items() if number not in self._texts]
        self._letters += sum(len(word) for words in (query_words, *fresh) for word in words)
        return [
            word for word in dict.fromkeys(chain(query_words, *fresh)) if word not in self._places
        ]

    def _compare(
        self,
        query_words: Sequence[str],
        texts: Mapping[int, Sequence[str]],
        missing: Sequence[str],
        new: Sequence[bytes],
    ) -> Array:
        if missing:
            vectors = np.frombuffer(b"".join(new), "<f4").reshape(len(missing), -1)
            count = len(self._places)
            if count + len(missing) > len(self._vectors):
                grown = np.empty(((count + len(missing)) * 5 // 4, vectors.shape[1]), "f4")
                if count:
                    grown[:count] = self._vectors[:count]
                self._vectors = grown
            self._vectors[count : count + len(missing)] = vectors
            self._places.update(zip(missing, range(count, count + len(missing)), strict=True))
        places = self._places.__getitem__
        for number, words in texts.items():
            if number not in self._texts:
                self._texts[number] = np.fromiter(map(places, words), "i8", len(words))
        return self._nearest([*map(places, query_words)], [self._texts[number] for number in texts])

    def _nearest(self, word_places: Sequence[int], texts: Sequence[Array]) -> Array:
        similarity = np.zeros((len(texts), len(word_places)), "f4")
        if word_places and texts:
            is_met = np.zeros(len(self._places), bool)
            for places in texts:
                is_met[places] = True
            met = np.flatnonzero(is_met)
            rows = np.cumsum(is_met) - 1
            words = self._vectors[word_places]
            step = max(1, _ALONE // words.size)  # in small blocks
            blocks = [
                self._vectors[met[start : start + step]] @ words.T
                for start in range(0, len(met), step)
            ]
            cosines = np.concatenate(blocks) if blocks else np.zeros((0, len(words)), "f4")
            for row, places in enumerate(texts):
                if len(places):
                    similarity[row] = cosines[rows[places]].max(axis=0)
        similarity[similarity < _NEAR] = 0
        return similarity

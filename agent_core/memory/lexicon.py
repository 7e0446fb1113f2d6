"""How well the words of a text fit a question: by the words that they share (BM25), and by meaning.

By meaning: how near each word of the question is to the nearest word of the text. The vectors of single words are kept
once they were made, because texts share most of their words.

Which lines of a block stand nearest to a text is told by the same score. No language is known there: words, and the
stretches of two to four characters, count by their rarity in the block; of the vectors counts what sets a line apart.
"""

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.base.errors import KnapperError
from agent_core.base.offload import aside

from .embedding import Embedder

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names

_K1: Final = 1.2
_B: Final = 0.75


def counted(texts: Sequence[Mapping[str, int]], terms: Sequence[str], forms: Mapping[str, str]) -> Array:
    """Count each term in each text, also by its forms in other languages; the result has one row per text."""
    places = {term: place for place, term in enumerate(terms)}
    table = np.zeros((len(texts), len(places)), "f4")
    for row, counts in enumerate(texts):
        for term in places.keys() & counts.keys():  # most texts hold one term or none
            table[row, places[term]] = counts[term]
        for form in forms.keys() & counts.keys():
            place = places[forms[form]]
            table[row, place] = max(table[row, place], counts[form])
    return table


def rarity(counts: Array, worded: Array, total: int) -> Array:
    """Return the rarity of each term among all texts, of which the given ones are a part.

    `worded` are those that a search of words found. Such texts are counted; from the others, which came by another
    way, the share of a term among the texts that are not at hand is estimated.
    """
    has = counts > 0
    others = has[~worded]
    absent = max(total - len(counts), 0)
    among = has.sum(0) + (others.mean(0) * absent if len(others) else 0.0)
    rare: Array = np.log1p((np.maximum(max(total, len(counts)) - among, 0) + 0.5) / (among + 0.5))
    return np.where(has.any(0), rare, 0.0)


def bm25(counts: Array, sizes: Array, rare: Array) -> Array:
    """Return the score of each text; `counts` are its query terms, `sizes` its numbers of words."""
    if not counts.size:
        return np.zeros(len(counts))
    damp = _K1 * (1 - _B + _B * sizes / max(float(sizes.mean()), 1.0))
    scores: Array = (counts * (_K1 + 1) / (counts + damp[:, None] + 1e-9)) @ rare
    return scores


def top(scores: Array) -> Array:
    """Return the scores divided by the best one."""
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores


_MOST: Final = 30_000
_NEAR: Final = 0.35
# Multiplications for which numpy's library starts no threads: waiting for them takes many times as long.
_ALONE: Final = 1 << 18


class Lexicon:
    """The vectors of the words seen so far."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._texts: dict[int, Array] = {}
        self._one_at_a_time = asyncio.Lock()
        self._vectors: Array = np.empty((0, 0), "f4")

    async def likeness(self, query_words: Sequence[str], texts: Mapping[int, Sequence[str]]) -> Array | None:
        """Return, for each text (a row) and query word, the cosine of the nearest word in that text; 0 if none is near.

        None where the model cannot be had.
        """
        size = sum(map(len, texts.values()))
        async with self._one_at_a_time:  # a place that another search takes meanwhile would be given twice
            missing = await aside(size, self._missing, query_words, texts)
            try:
                vectors = await self._embedder.embed(missing) if missing else []
            except KnapperError:
                return None
            return await aside(size + len(missing), self._compare, query_words, texts, missing, vectors)

    def _missing(self, query_words: Iterable[str], texts: Mapping[int, Sequence[str]]) -> list[str]:
        """Return the words without a vector, of the question and of texts that were not seen before."""
        if len(self._places) > _MOST or len(self._texts) > _MOST:
            self._places, self._texts, self._vectors = {}, {}, np.empty((0, 0), "f4")
        fresh = [words for number, words in texts.items() if number not in self._texts]
        return [word for word in dict.fromkeys(chain(query_words, *fresh)) if word not in self._places]

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
            blocks = [self._vectors[met[start : start + step]] @ words.T for start in range(0, len(met), step)]
            cosines = np.concatenate(blocks) if blocks else np.zeros((0, len(words)), "f4")
            for row, places in enumerate(texts):
                if len(places):
                    similarity[row] = cosines[rows[places]].max(axis=0)
        similarity[similarity < _NEAR] = 0
        return similarity


MOST: Final = 3
_SIZES: Final = (2, 3, 4)
_WORD: Final = re.compile(r"\w+")
_LETTERS: Final = 300  # of a line
_MEANING: Final = 0.5
_LEAST: Final = 0.01
_SHRUNK: Final = 2  # of few lines, the mean says little of what they have in common


def nearest(lines: Sequence[str], text: str, vectors: Sequence[bytes] = ()) -> list[int]:
    """Return the places of at most `MOST` lines, nearest first; none if nothing is near.

    `vectors` are those of the lines, then that of the text; without them, words alone decide.
    """
    if not lines:
        return []
    scores = _by_words(lines, text)
    if vectors:
        scores = scores + _MEANING * _by_meaning(np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1))
    return [int(place) for place in np.argsort(-scores, kind="stable")[:MOST] if scores[place] >= _LEAST]


def _by_words(lines: Sequence[str], text: str) -> Array:
    """Return the score of each line as a share of what the text itself would have."""
    texts = [*map(_parts, lines), _parts(text)]
    terms = [*texts[-1]]
    counts = np.minimum(counted(texts, terms, {}), 1)
    # The rarity counts twice: what a text shares with one line says more than what most lines have in common.
    rare = rarity(counts, np.ones(len(texts), bool), len(texts)) ** 2
    scores = bm25(counts, np.array([len(parts) for parts in texts], "f4"), rare)
    shares: Array = scores[:-1] / max(float(scores[-1]), 1e-9)
    return shares


@lru_cache(maxsize=1024)
def _parts(text: str) -> Counter[str]:
    """Return the words of a text and the stretches of its characters, each once."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text[:_LETTERS]).casefold())
    whole = f" {' '.join(words)} "
    stretches = (whole[start : start + size] for size in _SIZES for start in range(len(whole) - size + 1))
    return Counter(dict.fromkeys([*(f"\n{word}" for word in words), *stretches], 1))


def _by_meaning(vectors: Array) -> Array:
    """Return the cosine of each line and the text, both without what the lines have in common."""
    apart = vectors - vectors[:-1].sum(0) / (len(vectors) - 1 + _SHRUNK)
    apart = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-9)
    cosines: Array = apart[:-1] @ apart[-1]
    return cosines

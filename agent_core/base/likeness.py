"""Similarity of texts to another text: by shared words (BM25), and by meaning.

It is independent of language: words, and runs of two to four characters, count by their rarity among the texts; vectors
are compared without the part that the texts have in common. This module imports numpy.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names

_K1: Final = 1.2
_B: Final = 0.75


def counted(
    texts: Sequence[Mapping[str, int]], terms: Sequence[str], forms: Mapping[str, str]
) -> Array:
    """Count each term in each text, including its forms in other languages; the result has one row per text."""
    places = {term: place for place, term in enumerate(terms)}
    table = np.zeros((len(texts), len(places)), "f4")
    for row, counts in enumerate(texts):
        for term in places.keys() & counts.keys():  # most texts contain one term or none
            table[row, places[term]] = counts[term]
        for form in forms.keys() & counts.keys():
            place = places[forms[form]]
            table[row, place] = max(table[row, place], counts[form])
    return table


def rarity(counts: Array, worded: Array, total: int) -> Array:
    """Return the rarity of each term among all `total` texts, of which the given ones are a part.

    `worded` marks the texts that a word search found; these are counted. The others were found differently, and serve
    to estimate how common a term is among the texts that are not given.
    """
    has = counts > 0
    others = has[~worded]
    absent = max(total - len(counts), 0)
    among = has.sum(0) + (others.mean(0) * absent if len(others) else 0.0)
    rare: Array = np.log1p((np.maximum(max(total, len(counts)) - among, 0) + 0.5) / (among + 0.5))
    return np.where(has.any(0), rare, 0.0)


def bm25(counts: Array, sizes: Array, rare: Array) -> Array:
    """Return the BM25 score of each text; `counts` has the query terms of each text, `sizes` its number of words."""
    if not counts.size:
        return np.zeros(len(counts))
    damp = _K1 * (1 - _B + _B * sizes / max(float(sizes.mean()), 1.0))
    scores: Array = (counts * (_K1 + 1) / (counts + damp[:, None] + 1e-9)) @ rare
    return scores


def top(scores: Array) -> Array:
    """Return the scores divided by the best one."""
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores


_SIZES: Final = (2, 3, 4)
_WORD: Final = re.compile(r"\w+")
_LETTERS: Final = 300  # characters of a text
_MEANING: Final = 0.5
_SHRUNK: Final = (
    2  # shrinks the mean of few texts, which says little about what they have in common
)


def likeness(texts: Sequence[str], text: str, vectors: Mapping[str, bytes] | None = None) -> Array:
    """Return the similarity of each text to `text`: 0 is none; equal words alone give 1.

    If `vectors` has all of them, the result is the mean of the word score and half the cosine.
    """
    if not texts:
        return np.zeros(0)
    parts = [_parts(each[:_LETTERS]) for each in (*texts, text)]
    counts = np.minimum(counted(parts, [*parts[-1]], {}), 1)
    # Rarity counts twice: a part shared with one text says more than a part that most texts share.
    rare = rarity(counts, np.ones(len(parts), bool), len(parts)) ** 2
    scores = bm25(counts, np.array([len(own) for own in parts], "f4"), rare)
    scores = scores[:-1] / max(
        float(scores[-1]), 1e-9
    )  # as shares of the score that `text` itself would have
    if not vectors or not vectors.keys() >= {*texts, text}:
        return scores
    table = np.frombuffer(b"".join(map(vectors.__getitem__, [*texts, text])), "<f4").reshape(
        len(texts) + 1, -1
    )
    apart = table - table[:-1].sum(0) / (
        len(texts) + _SHRUNK
    )  # without what the texts have in common
    apart = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-9)
    mixed: Array = (scores + _MEANING * (apart[:-1] @ apart[-1])) / 2
    return mixed


@lru_cache(maxsize=1024)
def _parts(text: str) -> Counter[str]:
    """Return the words and character runs of a text, each counted once."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    whole = f" {' '.join(words)} "
    stretches = (
        whole[start : start + size] for size in _SIZES for start in range(len(whole) - size + 1)
    )
    return Counter(dict.fromkeys([*(f"\n{word}" for word in words), *stretches], 1))

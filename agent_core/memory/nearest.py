"""Which lines of a block stand nearest to a text: by the parts of words that they share, and by meaning.

No language is known here: words, and the stretches of two to four characters, count by their rarity in the block; of
the vectors counts what sets a line apart from the block.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from .lexicon import Array, bm25, counted, rarity

MOST: Final = 3
_SIZES: Final = (2, 3, 4)
_WORD: Final = re.compile(r"\w+")
_LETTERS: Final = 300  # of a line
_MEANING: Final = 0.5
_NEAR: Final = 0.01
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
    return [int(place) for place in np.argsort(-scores, kind="stable")[:MOST] if scores[place] >= _NEAR]


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

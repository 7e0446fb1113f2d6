"""Scores of texts by the words that they share with a question (BM25), over the texts at hand. Pure values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

Counted: TypeAlias = Mapping[str, int]
"""The words of a text by their stems, and how often each is there."""

_K1: Final = 1.2
_B: Final = 0.75


def rarity(terms: Iterable[str], texts: Sequence[tuple[Counted, bool]], total: int) -> dict[str, float]:
    """How rare each term is among all texts, of which those at hand are a part.

    Of each it is told whether a search of words found it. Such texts are counted; from the others, which came by
    another way, the share of a term among the texts that are not at hand is estimated.
    """
    others = [counts for counts, is_worded in texts if not is_worded]
    absent = max(total - len(texts), 0)
    rare = {}
    for term in terms:
        held = sum(term in counts for counts, _ in texts)
        beside = sum(term in counts for counts in others)
        among = held + (beside * absent / len(others) if others else 0.0)
        rare[term] = math.log1p((max(total, held) - among + 0.5) / (among + 0.5)) if held else 0.0
    return rare


def bm25(held: Sequence[Counted], sizes: Sequence[int], rare: Mapping[str, float]) -> list[float]:
    """The score of each text, of which `held` are the asked terms and `sizes` the words."""
    mean = (sum(sizes) / len(sizes) if sizes else 0) or 1.0
    scores = []
    for counts, size in zip(held, sizes, strict=True):
        damp = _K1 * (1 - _B + _B * size / mean) if counts else 0.0
        scores.append(sum(rare[term] * count * (_K1 + 1) / (count + damp) for term, count in counts.items()))
    return scores


def top(scores: Sequence[float]) -> list[float]:
    """Scores as shares of the best."""
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]

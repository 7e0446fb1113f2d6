"""The three questions that compute: rows by words, rows by meaning, and how near some rows are."""

from collections.abc import Collection, Sequence

import numpy as np

from .bm25 import Words
from .connection import Session
from .kept import Array, kept
from .memory_lookups import vectors, vectors_of
from .memory_store import Hit
from .memory_writes import Shelf
from .nearest import Vectors
from .sheets import Key
from .shelving import stems, term


def words(session: Session, shelf: Shelf, agent: str, asked: Sequence[str], limit: int) -> list[Hit]:
    """The best by BM25."""
    terms = {term(stem) for stem in stems(session, " ".join(asked))}
    if not terms or limit < 1:
        return []
    found = kept(session, Key(agent, shelf), Words)
    return [Hit(seq, score) for seq, score in found.search(terms, limit)] if found else []


def nearest(session: Session, place: tuple[Shelf, str, str], vector: bytes, limit: int) -> list[Hit]:
    """The best by cosine; half as many again are weighed with all their bits."""
    shelf, agent, space = place
    found = kept(session, Key(agent, shelf, space), Vectors)
    if found is None or limit < 1:
        return []
    asked = np.frombuffer(vector, "<f4")
    near = found.search(asked, limit + limit // 2 + 10)
    exact = _cosines(asked, vectors(session, found.state, near))
    order = sorted(exact.items(), key=lambda hit: (-hit[1], -hit[0]))
    return [Hit(seq, score) for seq, score in order[:limit]]


def cosines(session: Session, place: tuple[Shelf, str], vector: bytes, seqs: Collection[int]) -> dict[int, float]:
    """Of those that have a vector."""
    return _cosines(np.frombuffer(vector, "<f4"), vectors_of(session, *place, seqs))


def _cosines(asked: Array, rows: list[tuple[int, bytes]]) -> dict[int, float]:
    rows = [(seq, vector) for seq, vector in rows if len(vector) == asked.nbytes]
    if not rows:
        return {}
    matrix = np.frombuffer(b"".join(vector for _, vector in rows), "<f4").reshape(len(rows), -1)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(asked)
    scores = np.divide(np.einsum("ij,j->i", matrix, asked), lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return dict(zip((seq for seq, _ in rows), scores.tolist(), strict=True))

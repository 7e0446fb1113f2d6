"""A model in this process: loaded once, at the first text, in a thread, and asked there too."""

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from ..aside import LARGE
from .embedder import Embedder, EmbeddingUnavailable

Encode: TypeAlias = Callable[[list[str]], Any]
"""Texts to a numpy matrix with a row of length 1 for each; Any because numpy is loaded late."""

ALONE = 4
"""So few texts are embedded on the spot: going to a thread and back costs more than they do."""


class LocalModel:
    """An embedder around a function that is made by `load`."""

    def __init__(self, space: str, recipe: str, load: Callable[[], Encode], lexicon: Embedder | None = None) -> None:
        self.space = space
        self.recipe = recipe
        self._load = load
        self._lexicon = lexicon
        self._encode: Encode | None = None
        self._loading = asyncio.Lock()

    @property
    def lexicon(self) -> Embedder:
        """Another model, or this one where it is quick enough for words."""
        return self._lexicon or self

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector for each text; one without a letter gets that of a full stop."""
        if not texts:
            return []
        encode = self._encode or await self._loaded()
        given = [text if text.strip() else "." for text in texts]
        if self._lexicon is None and len(given) <= ALONE and sum(map(len, given)) <= LARGE:
            return _rows(encode(given))
        return await asyncio.to_thread(lambda: _rows(encode(given)))

    async def _loaded(self) -> Encode:
        async with self._loading:
            if self._encode is None:
                self._encode = await asyncio.to_thread(self._load)
        return self._encode


def _rows(matrix: Any) -> list[bytes]:  # Any: a numpy matrix
    return [row.tobytes() for row in matrix.astype("<f4")]


def folder_of(package: str, extra: str) -> Path:
    """Where a package is installed, without importing it.

    Raises:
        EmbeddingUnavailable: it is not.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbeddingUnavailable(f"The package `{package}` is not installed.", mend=f"Type: pip install {extra}")
    return Path(spec.origin).parent

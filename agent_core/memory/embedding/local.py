"""An embedding model for those who search with it; one in this process is loaded at the first text, in a thread.

It runs in a thread, too.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from agent_core.base.errors import IntegrityError, KnapperError
from agent_core.base.offload import LARGE
from agent_core.base.own_installation import add_extra
from agent_core.base.untrusted import whole_characters


class EmbeddingUnavailable(KnapperError):
    """The model is unavailable: a package or file is missing or wrong, or an endpoint refuses."""

    code = "embedding"


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """Model and size, as stored with the vectors: another name is another space."""

    @property
    def recipe(self) -> str:
        """The name of the weights that fit the model's cosines: a table of `memory/weights.toml`."""

    @property
    def lexicon(self) -> "Embedder | None":
        """A fast model for single words, possibly this one; None if there is none."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text: little-endian float32 of length 1.

        Raises:
            EmbeddingUnavailable: the model cannot be had.
        """


Encode: TypeAlias = Callable[[list[str]], Any]
"""Texts to a numpy matrix with a row of length 1 for each; Any because numpy is loaded late."""

ALONE = 4
"""So few texts are embedded on the spot: going to a thread and back costs more than they do."""

_AT_ONCE: Final = 1_000  # what a model makes of more is one step in C, for which the event loop would wait


class LocalEmbedder:
    """An embedder around a function that `load` creates."""

    def __init__(self, space: str, recipe: str, load: Callable[[], Encode], lexicon: Embedder | None = None) -> None:
        self.space = space
        self.recipe = recipe
        self._load = load
        self._lexicon = lexicon
        self._encode: Encode | None = None
        self._loading = asyncio.Lock()

    @property
    def lexicon(self) -> Embedder:
        """Another model, or this one if it is fast enough for words."""
        return self._lexicon or self

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text; a text without a letter gets that of a period."""
        if not texts:
            return []
        encode = self._encode or await self._load_once()
        inputs = [whole_characters(text) if text.strip() else "." for text in texts]
        if self._lexicon is None and len(inputs) <= ALONE and sum(map(len, inputs)) <= LARGE:
            return _rows(encode(inputs))
        parts = [inputs[start : start + _AT_ONCE] for start in range(0, len(inputs), _AT_ONCE)]
        return await asyncio.to_thread(lambda: [row for part in parts for row in _rows(encode(part))])

    async def _load_once(self) -> Encode:
        async with self._loading:
            if self._encode is None:
                self._encode = await asyncio.to_thread(self._load)
        return self._encode


def _rows(matrix: Any) -> list[bytes]:  # Any: a numpy matrix
    return [row.tobytes() for row in matrix.astype("<f4")]


def read_verified(path: Path, sha256: str, extra: str) -> bytes:
    """Return the content of a file that matches its hash.

    Raises:
        IntegrityError: it is another, or not there.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IntegrityError(f"`{path.name}` of the embedding model cannot be read: {error.strerror}.") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise IntegrityError(
            f"`{path}` is not the file that was chosen: its hash differs.",
            fix=f"Remove its package, then type: {add_extra(extra)}",
        )
    return content


def folder_of(package: str, extra: str) -> Path:
    """Return where a package of an extra is installed, without importing it.

    Raises:
        EmbeddingUnavailable: it is not.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbeddingUnavailable(f"The package `{package}` is not installed.", fix=f"Type: {add_extra(extra)}")
    return Path(spec.origin).parent

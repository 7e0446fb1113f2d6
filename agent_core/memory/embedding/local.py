"""The interface of embedding models, and models in this process, which are loaded at the first text.

Loading and large inputs run in a thread.
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
        """Model and size, stored with the vectors; a different name is a different space."""

    @property
    def recipe(self) -> str:
        """The name of the weights for the model's cosines: a table of `memory/weights.toml`."""

    @property
    def lexicon(self) -> "Embedder | None":
        """A fast model for single words, possibly this one; None if there is none."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text: little-endian float32 of length 1.

        Raises:
            EmbeddingUnavailable: the model cannot be used.
        """


Encode: TypeAlias = Callable[[list[str]], Any]
"""Maps texts to a numpy matrix with one row of length 1 for each; Any because numpy is imported late."""

ALONE = 4
"""Up to this many texts are embedded at once in the event loop: a round trip to a thread costs more."""

_AT_ONCE: Final = 1_000  # a larger batch would be one long step in C, which blocks the event loop


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
        """Return a vector for each text; a blank text gets that of a period."""
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
        IntegrityError: it differs, or cannot be read.
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
    """Return the folder of an installed package of an extra, without importing it.

    Raises:
        EmbeddingUnavailable: it is not installed.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbeddingUnavailable(f"The package `{package}` is not installed.", fix=f"Type: {add_extra(extra)}")
    return Path(spec.origin).parent

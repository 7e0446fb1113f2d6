"""The interface of an embedding model for those who search with it."""

from collections.abc import Sequence
from typing import Protocol

from agent_core.base.errors import KnapperError


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

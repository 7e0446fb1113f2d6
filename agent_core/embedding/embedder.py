"""What an embedding model is to those who search with it."""

from collections.abc import Sequence
from typing import Protocol

from ..errors import ToolwrightError


class EmbeddingUnavailable(ToolwrightError):
    """The model cannot be had: a package or file is missing, is not what it should be, or an endpoint refuses."""

    code = "embedding"


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """Model and size, as kept beside the vectors: another name is another space."""

    @property
    def recipe(self) -> str:
        """Whose weights fit what its cosines are like: a table of `memory/weights.toml`."""

    @property
    def lexicon(self) -> "Embedder | None":
        """A quick model for single words, which may be this one; None where there is none."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector for each text: little-endian float32 of length 1.

        Raises:
            EmbeddingUnavailable: the model cannot be had.
        """

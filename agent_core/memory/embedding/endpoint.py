"""A model behind `/v1/embeddings`, on any server with OpenAI's API. Texts leave this machine."""

import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

from agent_core.base.errors import ModelError
from agent_core.model.connection import Connection

from .local import EmbeddingUnavailable
from .static import wordllama

_BATCH: Final = 64
_TIMEOUT_S: Final = 60.0


class EndpointModel:
    """An embedder that uses one model at one address."""

    recipe = "minilm"

    def __init__(self, url: str, model: str, key: str = "", check: Callable[[], None] | None = None) -> None:
        self.space = f"{model}@endpoint"
        self.lexicon = wordllama()
        self._model = model
        self._check = check or (lambda: None)
        self._url, self._key = url, key

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text, normalized to length 1.

        Raises:
            EmbeddingUnavailable: it does not answer.
            KnapperError: `check` forbids the request.
        """
        self._check()
        connection = Connection(self._url, key=self._key, timeout_s=_TIMEOUT_S)
        try:
            vectors: list[bytes] = []
            for start in range(0, len(texts), _BATCH):
                vectors += await self._batch(connection, [text or "." for text in texts[start : start + _BATCH]])
            return vectors
        finally:
            await connection.aclose()

    async def _batch(self, connection: Connection, texts: list[str]) -> list[bytes]:
        body = {"model": self._model, "input": texts}
        try:
            return _vectors(await connection.ask("/embeddings", body, timeout_s=_TIMEOUT_S), len(texts))
        except ModelError as error:
            raise self._unavailable(error.message) from error
        except (ValueError, LookupError, TypeError, OverflowError) as error:
            raise self._unavailable("its answer has no list of vectors") from error

    def _unavailable(self, why: str) -> EmbeddingUnavailable:
        fix = "Check `embedding_model` and the endpoint, or set `[memory] embedding` to `wordllama`."
        return EmbeddingUnavailable(f"`{self._model}` cannot embed at {self._url}: {why}.", fix=fix)


def _vectors(answer: Any, count: int) -> list[bytes]:  # Any: JSON
    rows = sorted(answer["data"], key=lambda row: row["index"])
    if len(rows) != count:
        raise ValueError("another number of vectors than of texts")
    return [_unit(row["embedding"]) for row in rows]


def _unit(vector: Any) -> bytes:  # Any: JSON
    if not isinstance(vector, list) or not vector or not all(map(math.isfinite, vector)):
        raise ValueError("a vector without numbers, or with one that is none")
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    values = array("f", (value / length for value in vector))
    return values.tobytes()

"""The embedding models that the settings name; each is loaded at first use.

The default is the average of one vector per word piece, 0.06 ms a text: `setup.py` extracts the vectors from
`wordllama`, as bytes and a factor for each piece, and they are memory-mapped. An endpoint may have another one, and so
may an extension (`EMBEDDERS`).
"""

import asyncio
import heapq
import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from agent_core.base.errors import KnapperError, ModelError, UsageError
from agent_core.base.extensions import EMBEDDERS, offers, what_else
from agent_core.base.network_variables import masked_address
from agent_core.base.offload import LARGE
from agent_core.base.own_installation import reinstall_program
from sandbox.wire.strict_json import LOOSE, read_json, whole_characters

if TYPE_CHECKING:
    from agent_core.model.connection import Connection


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
        """The name of the weights for the model's cosines: a table of `memory/weights.toml`.

        `sentence` is for a model of whole sentences, `narrow` for one whose cosines all lie close together.
        """

    @property
    def lexicon(self) -> "Embedder | None":
        """A fast model for single words, possibly this one; None if there is none."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text: little-endian float32 of length 1.

        Raises:
            EmbeddingUnavailable: the model cannot be used.
        """


MakeEmbedder: TypeAlias = Callable[[], Embedder]
"""Returns an embedder of an extension, which loads its model at first use."""

Encode: TypeAlias = Callable[[list[str]], Any]
"""Maps texts to a numpy matrix with one row of length 1 for each; Any because numpy is imported late."""

ALONE = 4
"""Up to this many texts are embedded at once in the event loop: a round trip to a thread costs more."""

_AT_ONCE: Final = 1_000  # a larger batch would be one long step in C, which blocks the event loop


class LocalEmbedder:
    """An embedder around a function that `load` creates."""

    def __init__(
        self, space: str, recipe: str, load: Callable[[], Encode], lexicon: Embedder | None = None
    ) -> None:
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
        return await asyncio.to_thread(
            lambda: [row for part in parts for row in _rows(encode(part))]
        )

    async def _load_once(self) -> Encode:
        async with self._loading:
            if self._encode is None:
                self._encode = await asyncio.to_thread(self._load)
        return self._encode


def _rows(matrix: Any) -> list[bytes]:  # Any: a numpy matrix
    return [row.tobytes() for row in matrix.astype("<f4")]


WORDLLAMA_DIMS = 256
_FOLDER: Final = Path(__file__).with_name("wordllama")
_SPACE: Final = "▁"
_WORD: Final = re.compile(f"{_SPACE}*[^{_SPACE}]+|{_SPACE}+")  # no piece crosses the end of a word
_LONGEST_KEPT: Final = 32  # characters of a word whose pieces are cached
_LONGEST_AVERAGED: Final = (
    20_000  # characters of a text that are read: more words hardly change the average
)
_KEPT: Final = 50_000  # words; beyond that, the cache is cleared


def wordllama() -> LocalEmbedder:
    """Return the default model."""
    return LocalEmbedder(f"wordllama-l2-supercat/{WORDLLAMA_DIMS}", "wordllama", _load)


def _load() -> Encode:
    numpy = import_module("numpy")
    try:
        pieces = WordPieces(read_json((_FOLDER / "pieces.json").read_bytes(), LOOSE))
        vectors = numpy.asarray(numpy.load(_FOLDER / "vectors.npy", mmap_mode="r"))
        factors = numpy.load(_FOLDER / "factors.npy")
    except OSError as error:
        said = f"`{error.filename}`, which holds the default embedding, cannot be read: {error.strerror}."
        raise EmbeddingUnavailable(said, fix=f"Type: {reinstall_program()}") from error

    def encode(texts: list[str]) -> Any:  # Any: a numpy matrix
        numbers = map(pieces.numbers, texts)
        rows = numpy.stack([(vectors[found] * factors[found]).mean(0) for found in numbers])
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    return encode


class WordPieces:
    """The pieces of a vocabulary: pieces with lower numbers are joined first, and those of blanks last."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._ranks = {
            piece: number + len(pieces) * (not piece.strip(_SPACE))
            for number, piece in enumerate(pieces)
        }
        self._of_words: dict[str, list[int]] = {}

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a text's beginning; characters without a piece become bytes."""
        found: list[int] = []
        for word in _WORD.findall(_SPACE + text[:_LONGEST_AVERAGED].replace(" ", _SPACE)):
            numbers = self._of_words.get(word)
            if numbers is None:
                numbers = [
                    number
                    for piece in self._join_pieces(word)
                    for number in self._with_bytes(piece)
                ]
                if len(word) <= _LONGEST_KEPT:
                    if len(self._of_words) >= _KEPT:
                        self._of_words.clear()
                    self._of_words[word] = numbers
            found += numbers
        return found

    def _join_pieces(self, word: str) -> list[str]:
        """Join neighbors into pieces, lowest number first, then leftmost, until no two neighbors form a piece."""
        pieces, end = list(word), len(word)
        before, after = list(range(-1, end - 1)), list(range(1, end + 1))
        waiting: list[tuple[int, int, int]] = []

        def offer(left: int, right: int) -> None:
            if (
                left >= 0
                and right < end
                and (rank := self._ranks.get(pieces[left] + pieces[right])) is not None
            ):
                heapq.heappush(waiting, (rank, left, len(pieces[left]) + len(pieces[right])))

        for left in range(end - 1):
            offer(left, left + 1)
        while waiting:
            _rank, left, length = heapq.heappop(waiting)
            right = after[left]
            if not pieces[left] or right >= end or len(pieces[left]) + len(pieces[right]) != length:
                continue  # one of the two was joined with another meanwhile
            pieces[left] += pieces[right]
            pieces[right] = ""
            after[left] = after[right]
            if after[left] < end:
                before[after[left]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [piece for piece in pieces if piece]

    def _with_bytes(self, piece: str) -> Iterator[int]:
        number = self._numbers.get(piece)
        if number is not None:
            yield number
        else:
            yield from (self._numbers[f"<0x{byte:02X}>"] for byte in piece.encode())


_MOST_AT_ONCE: Final = 64
_REQUEST_S: Final = 60.0


class EndpointModel:
    """A model behind `/v1/embeddings`, on any server with OpenAI's API. Texts leave this machine."""

    recipe = "sentence"

    def __init__(
        self, url: str, model: str, key: str = "", check: Callable[[], None] | None = None
    ) -> None:
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
        from agent_core.model.connection import Connection  # noqa: PLC0415 - the HTTP client is slow to import

        self._check()
        try:
            connection = Connection(self._url, key=self._key, timeout_s=_REQUEST_S)
        except ModelError as error:
            raise self._unavailable(error.message) from error
        try:
            vectors: list[bytes] = []
            for start in range(0, len(texts), _MOST_AT_ONCE):
                vectors += await self._batch(
                    connection, [text or "." for text in texts[start : start + _MOST_AT_ONCE]]
                )
            return vectors
        finally:
            await connection.aclose()

    async def _batch(self, connection: "Connection", texts: list[str]) -> list[bytes]:
        body = {"model": self._model, "input": texts}
        try:
            answer: Any = await connection.ask(
                "/embeddings", body, timeout_s=_REQUEST_S
            )  # Any: JSON
            rows = sorted(answer["data"], key=lambda row: row["index"])
            return [_unit(row["embedding"]) for row, _ in zip(rows, texts, strict=True)]
        except ModelError as error:
            raise self._unavailable(error.message) from error
        except (ValueError, LookupError, TypeError, OverflowError) as error:
            raise self._unavailable("its answer has no list of vectors") from error

    def _unavailable(self, why: str) -> EmbeddingUnavailable:
        fix = (
            "Check `embedding_model` and the endpoint, or set `[memory] embedding` to `wordllama`."
        )
        where = masked_address(self._url)
        return EmbeddingUnavailable(
            f"`{self._model}` cannot embed at {where}: {why.rstrip('.')}.", fix=fix
        )


def _unit(vector: Any) -> bytes:  # Any: JSON
    if not isinstance(vector, list) or not vector or not all(map(math.isfinite, vector)):
        raise ValueError("a vector without numbers, or with one that is none")
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    values = array("f", (value / length for value in vector))
    return values.tobytes()


def embedder(
    name: str,
    *,
    model: str | None = None,
    url: str = "",
    key: str = "",
    check: Callable[[], None] | None = None,
) -> Embedder | None:
    """Return the model of that name; None if texts are found only by words.

    `check` is called before each request to an endpoint and may forbid it.

    Raises:
        UsageError: an endpoint's model needs an address and a name, or nobody has a model of this name.
    """
    if name == "none":
        return None
    if name == "wordllama":
        return wordllama()
    if name != "endpoint":
        return _of_extension(name)
    if not (url and model):
        raise UsageError(
            "An endpoint that embeds needs an address and a model.",
            fix="Set `[memory] embedding_model`.",
        )
    return EndpointModel(url, model, key, check)


def _of_extension(name: str) -> Embedder:
    make: MakeEmbedder | None = offers(EMBEDDERS).get(name)
    if make is None:
        raise UsageError(f"There is no embedding `{name}`.", fix=what_else())
    return make()

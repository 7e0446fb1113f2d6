"""wordllama: the average of one vector per word piece. 0.06 ms a text, with the weights in its wheel.

Its own search for the tokenizer looks next to the folder where the wheel has it, and then goes to the
network; named as the cache, the package's own folder works offline.
"""

import logging
from importlib import import_module
from typing import Any

from .local import Encode, LocalEmbedder, folder_of

DIMS = 256


def wordllama() -> LocalEmbedder:
    """Return the default model."""
    return LocalEmbedder(f"wordllama-l2-supercat/{DIMS}", "wordllama", _load)


def _load() -> Encode:
    folder = folder_of("wordllama", "wordllama")
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    package = import_module("wordllama")
    root.handlers[:], root.level = handlers, level  # its import sets up logging for the whole program
    model = package.WordLlama.load(dim=DIMS, cache_dir=str(folder), disable_download=True)
    model.tokenizer.no_padding()  # its own `embed` pads all to the longest, and takes twice as long for the same
    numpy = import_module("numpy")

    def encode(texts: list[str]) -> Any:
        encodings = model.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        rows = numpy.stack([model.embedding[encoding.ids].mean(0) for encoding in encodings])
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    return encode

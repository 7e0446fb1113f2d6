"""wordllama: the average of one vector per word piece. 0.06 ms a text, with the weights in its wheel.

Its files are read without the package itself, whose import takes longer than reading them: it brings a web client for
files that are not there, and its search for the tokenizer ends in the network. The weights are mapped, not copied.
"""

from importlib import import_module
from pathlib import Path
from struct import Struct
from typing import Any, Final

from agent_core.base.own_installation import reinstall
from sandbox.wire.foreign import LOOSE, read_json

from .embedder import EmbeddingUnavailable
from .local import Encode, LocalEmbedder, folder_of

DIMS = 256
_WEIGHTS: Final = f"weights/l2_supercat_{DIMS}.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_TYPES: Final = {"F16": "<f2", "F32": "<f4"}
_LONGEST: Final = 1 << 20  # bytes of such a description
_LENGTH: Final = Struct("<Q")  # of the description that a file of tensors begins with


def wordllama() -> LocalEmbedder:
    """Return the default model."""
    return LocalEmbedder(f"wordllama-l2-supercat/{DIMS}", "wordllama", _load)


def _load() -> Encode:
    folder = folder_of("wordllama")
    numpy, tokenizers = import_module("numpy"), import_module("tokenizers")
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer((folder / _TOKENIZER).read_bytes())
        weights = _mapped(folder / _WEIGHTS, "embedding.weight")
    except OSError as error:
        said = f"`{Path(str(error.filename)).name}` of the package `wordllama` cannot be read: {error.strerror}."
        raise EmbeddingUnavailable(said, fix=f"Type: {reinstall('wordllama')}") from error

    def encode(texts: list[str]) -> Any:
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        rows = numpy.stack([weights[encoding.ids].astype("<f4").mean(0) for encoding in encodings])
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    return encode


def _mapped(path: Path, name: str) -> Any:  # Any: a numpy matrix
    """Return a tensor of a file, of which only the rows that are looked at are read."""
    numpy = import_module("numpy")
    with path.open("rb") as file:
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        tensor = read_json(file.read(min(length, _LONGEST)), LOOSE)[name]
    start = _LENGTH.size + length + tensor["data_offsets"][0]
    mapped = numpy.memmap(path, _TYPES[tensor["dtype"]], mode="r", offset=start, shape=tuple(tensor["shape"]))
    return numpy.asarray(mapped)

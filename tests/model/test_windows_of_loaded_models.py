"""The window of a model as its server tells it, and how tokens are estimated."""

from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.settings import ModelSettings
from agent_core.model.client import find_window
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import dialect_of
from agent_core.model.discover import DiscoveredModel
from agent_core.model.tokens import Estimator, Window
from tests.kit import ScriptedModel

Scripted: TypeAlias = Callable[..., ScriptedModel]

OLLAMA = "http://127.0.0.1:11434/v1"
SHOWN = {
    "parameters": 'stop                           "<|im_end|>"\ntemperature                    0.7',
    "model_info": {
        "general.architecture": "qwen2",
        "qwen2.context_length": 32768,
        "qwen2.block_count": 28,
    },
    "capabilities": ["completion", "tools"],
}
SET = {
    **SHOWN,
    "parameters": "num_ctx                        16384\nnum_keep                       24",
}
CLOUD = {**SHOWN, "remote_host": "https://ollama.com:443", "remote_model": "scripted"}


def running(name: str, **more: Any) -> dict[str, Any]:
    return {"models": [{"name": name, "model": name, "size_vram": 1, **more}]}


NOTHING: dict[str, Any] = {"models": []}


async def window(server: ScriptedModel, url: str = OLLAMA, **settings: Any) -> Window:
    endpoint = Endpoint(server.base_url, "scripted", settings=ModelSettings(**settings))
    endpoint.speak(dialect_of(url))
    try:
        return await find_window(
            endpoint, DiscoveredModel(server.base_url, "scripted", "", "a test")
        )
    finally:
        await endpoint.aclose()


async def test_the_window_is_the_one_that_the_server_loads(scripted: Scripted) -> None:
    rows: list[tuple[str, dict[str, Any], list[dict[str, Any]], int]] = [
        ("it-runs", SHOWN, [running("scripted", context_length=8192)], 8192),
        ("loaded-to-see", SHOWN, [NOTHING, running("scripted", context_length=32768)], 32768),
        ("set-in-its-file", SET, [running("other", context_length=9)], 16384),
        ("nothing-known-but-the-least-default", SHOWN, [NOTHING], 4096),
        ("a-model-with-less", {"model_info": {"bert.context_length": 512}}, [NOTHING], 512),
        ("in-its-cloud", CLOUD, [NOTHING], 32768),
        ("nonsense", {"model_info": [], "parameters": None}, [{"models": "?"}], 16384),
    ]
    for case, shown, ran, tokens in rows:
        server = scripted(
            [], beside={"POST /api/show": [shown], "GET /api/ps": ran, "POST /api/generate": [{}]}
        )
        assert (await window(server)).tokens == tokens, case
        assert ("POST /api/show", {"model": "scripted"}) in server.asked_beside, case


async def test_a_model_that_does_not_run_is_loaded_and_asked_nothing(scripted: Scripted) -> None:
    ran = [NOTHING, running("scripted", context_length=4096)]
    server = scripted(
        [], beside={"POST /api/show": [SHOWN], "GET /api/ps": ran, "POST /api/generate": [{}]}
    )
    found = await window(server)
    assert ("POST /api/generate", {"model": "scripted", "stream": False}) in server.asked_beside
    assert "OLLAMA_CONTEXT_LENGTH" in found.fix


PROPS = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 4}
STUDIO = {
    "data": [
        {"id": "other", "loaded_context_length": 9_000},
        {"id": "scripted", "loaded_context_length": 12_288},
    ]
}
ANOTHER = "http://192.0.2.1:9000/v1"


LITELLM = {
    "data": [
        {"model_name": "other", "model_info": {"max_input_tokens": 8_000}},
        {
            "model_name": "scripted",
            "model_info": {"max_input_tokens": 200_000, "max_tokens": 8_192},
        },
        {"model_name": "scripted", "model_info": {"max_input_tokens": 128_000}},
        {"model_name": "scripted", "model_info": None},
    ]
}
ROUTED = {
    "context_length": 1_000_000,
    "top_provider": {"context_length": 262_144, "max_completion_tokens": 8_192},
}
UNLOADED = {"data": [{"id": "scripted", "state": "not-loaded", "max_context_length": 32_768}]}


async def test_each_kind_of_server_is_believed_in_its_own_way(scripted: Scripted) -> None:
    rows: list[tuple[str, dict[str, Any], dict[str, list[dict[str, Any]]], int]] = [
        ("openrouter", ROUTED, {}, 262_144),
        ("lm-studio", {}, {"GET /api/v0/models": [STUDIO]}, 12_288),
        ("lm-studio-not-loaded", {}, {"GET /api/v0/models": [UNLOADED]}, 32_768),
        ("ollama", {}, {"POST /api/show": [SET], "GET /api/ps": [NOTHING]}, 16_384),
        ("llama.cpp", {"meta": {"n_ctx_train": 40_960}}, {"GET /props": [PROPS]}, 8_192),
        ("litellm-the-smallest-of-its-deployments", {}, {"GET /model/info": [LITELLM]}, 128_000),
    ]
    for case, entry, beside, tokens in rows:
        found = await window(
            scripted([], models=[{"id": "scripted", **entry}], beside=beside), ANOTHER
        )
        assert (found.tokens, found.is_assumed) == (tokens, False), case


async def test_what_is_no_size_is_not_believed(scripted: Scripted) -> None:
    for value in ["many", "131072", -1, 0, 12, True, 1.5, 10**12, None, [], {"tokens": 9000}]:
        names = ("context_length", "max_model_len", "context_window", "max_input_tokens")
        beside = {
            "GET /props": [{"n_ctx": value, "default_generation_settings": {"n_ctx": value}}],
            "GET /api/v0/models": [{"data": [{"id": "scripted", "loaded_context_length": value}]}],
            "GET /model/info": [
                {"data": [{"model_name": "scripted", "model_info": {"max_input_tokens": value}}]}
            ],
        }
        server = scripted(
            [], models=[{"id": "scripted", **dict.fromkeys(names, value)}], beside=beside
        )
        assert (await window(server, ANOTHER)).is_assumed, value


@given(st.integers(1000, 100_000), st.floats(0.5, 3.5))
def test_estimates_come_near_what_the_endpoint_reports(size: int, factor: float) -> None:
    estimator, reported = Estimator(), round(size / 4 * factor)
    for _ in range(60):
        estimator.learn(size, reported)
    assert abs(estimator.tokens(size) - reported) <= max(3, reported * 0.02)


def test_one_low_report_moves_the_estimate_little_and_a_high_one_much() -> None:
    low, high = Estimator(), Estimator()
    low.learn(4000, 100)
    high.learn(4000, 2300)
    assert low.tokens(4000) > 1000
    assert high.tokens(4000) > 1700


async def test_nobody_else_is_asked_how_it_loads(scripted: Scripted) -> None:
    rows: list[tuple[str, str, dict[str, int]]] = [
        ("another-kind-of-server", "http://127.0.0.1:8080/v1", {}),
        ("as-set", OLLAMA, {"context_tokens": 9_000}),
    ]
    for case, url, settings in rows:
        server = scripted([], beside={"POST /api/show": [SHOWN]})
        await window(server, url, **settings)
        assert not server.asked_beside, case

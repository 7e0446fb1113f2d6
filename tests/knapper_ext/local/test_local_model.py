"""The local model with its real engine: its inputs, the obstacles, and that it answers."""

import json
from pathlib import Path

import jsonschema
import pytest

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import User
from agent_core.base.settings import ModelSettings
from agent_core.model import FunctionShown, Reply, Request
from knapper_ext.local.server import check_processor, open_local, translate
from knapper_ext.local.weights import file_of, named

NAME = "local/qwen2.5-coder-1.5b"
WEATHER = FunctionShown(
    "weather_in",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
NEEDS_WEIGHTS = pytest.mark.skipif(
    file_of(named(NAME)) is None, reason="the weights are not here: knapper models get"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def cpuinfo(where: Path, flags: str) -> Path:
    file = where / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    return file


def test_a_processor_that_the_engine_would_crash_on_is_named_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(ModelError, match="does not have avx2, fma"):
        check_processor(cpuinfo(tmp_path, "sse4_2 avx bmi2 f16c"))
    check_processor(cpuinfo(tmp_path, "avx avx2 bmi2 f16c fma"))


def test_a_schema_becomes_a_grammar_without_free_white_space() -> None:
    schema = {"type": "object"}
    body = translate({"messages": [], "response_format": {"json_schema": {"schema": schema}}})
    grammar = body["grammar"]
    start = json.loads(grammar.partition("%json ")[2])
    assert start == {"x-guidance": {"whitespace_flexible": False}, "type": "object"}
    assert "response_format" not in body


@pytest.mark.model
@pytest.mark.timeout(300)
@NEEDS_WEIGHTS
async def test_the_real_model_answers_in_the_shape_of_a_step_and_reads_the_prefix_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    model = await open_local(NAME, ModelSettings(threads=1))
    request = Request((User("What is the weather in Oslo?"),), (WEATHER,))
    replies = []
    for _ in range(2):
        pieces = [piece async for piece in model.stream(request)]
        assert isinstance(pieces[-1], Reply)
        replies.append(pieces[-1])
    await model.aclose()
    jsonschema.validate(json.loads(replies[0].calls[0].arguments), WEATHER.parameters)
    assert replies[1].usage.cached > replies[1].usage.prompt * 0.9
    assert capfd.readouterr() == ("", "")


@pytest.mark.model
@pytest.mark.timeout(300)
@NEEDS_WEIGHTS
async def test_a_request_longer_than_the_window_is_an_overflow() -> None:
    model = await open_local(NAME, ModelSettings(threads=1, context_tokens=512))
    with pytest.raises(ContextOverflow):
        _ = [piece async for piece in model.stream(Request((User("word " * 2_000),)))]
    await model.aclose()

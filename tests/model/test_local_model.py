"""The local model with its real engine: its inputs, the obstacles, and that it answers."""

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

import jsonschema
import pytest

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import System, User
from agent_core.base.settings import ModelSettings
from agent_core.model import FunctionShown, Reply, Request
from agent_core.model.local import path
from agent_core.model.local.server import check_processor, open_local, translate

NAME = "local/qwen2.5-coder-1.5b"
WEATHER = FunctionShown(
    "weather_in",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
STANDIN = Path(__file__).parents[1] / "kit" / "standin"
NEEDS_WEIGHTS = pytest.mark.skipif(path(NAME) is None, reason="the weights are not here: knapper models get")


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


def test_processors_that_do_not_tell_are_taken_as_they_are(tmp_path: Path) -> None:
    check_processor(tmp_path / "nothing")


async def test_weights_that_are_not_here_name_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(ModelError, match=r"knapper models get qwen2\.5-coder-1\.5b"):
        await open_local(NAME)


async def test_a_missing_engine_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelError, match=r"pip install .*\[local\]"):
        await open_local(NAME)


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


def _note(read: list[int], done: int, _: int) -> None:
    read.append(done)


@pytest.mark.model
@pytest.mark.timeout(300)
@NEEDS_WEIGHTS
async def test_another_engine_of_the_same_weights_takes_the_fixed_part_from_the_disk() -> None:
    heard: list[list[int]] = []
    for context in (4_096, 8_192):
        read: list[int] = []
        heard.append(read)
        model = await open_local(NAME, ModelSettings(threads=1, context_tokens=context))
        await model.prepare(Request((System("Be brief."),)), partial(_note, read))
        pieces = [piece async for piece in model.stream(Request((System("Be brief."), User("Hi")), max_tokens=60))]
        await model.aclose()
        assert isinstance(pieces[-1], Reply)
        assert pieces[-1].usage.cached > 500
    assert (len(heard[0]) > 2, heard[1]) == (True, [])


@pytest.mark.model
@pytest.mark.timeout(300)
@NEEDS_WEIGHTS
async def test_a_request_longer_than_the_window_is_an_overflow() -> None:
    model = await open_local(NAME, ModelSettings(threads=1, context_tokens=512))
    with pytest.raises(ContextOverflow):
        _ = [piece async for piece in model.stream(Request((User("word " * 2_000),)))]
    await model.aclose()


@pytest.mark.model
@pytest.mark.timeout(300)
@NEEDS_WEIGHTS
async def test_a_request_that_is_given_up_while_it_is_read_leaves_the_engine_ready() -> None:
    model = await open_local(NAME, ModelSettings(threads=1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            _ = [piece async for piece in model.stream(Request((User("word " * 4_000),)))]
    pieces = [piece async for piece in model.stream(Request((User("Hello!"),), max_tokens=60))]
    await model.aclose()
    assert isinstance(pieces[-1], Reply)

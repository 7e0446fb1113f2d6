"""The next way to make an endpoint follow a schema: after a rejection, after prose, and when none is left."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.settings import ModelSettings
from agent_core.model import Reply, Request, RetryPiece
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import dialect_of
from knapper_ext.local.constrained import ConstrainedModel
from tests.kit import Fail, Say, ScriptedModel, Stall, Step
from tests.kit.drawing import crossed
from tests.model.asking import ADD, HELLO

Scripted: TypeAlias = Callable[..., ScriptedModel]

OLLAMA, LM_STUDIO = "http://127.0.0.1:11434/v1", "http://127.0.0.1:1234/v1"
LLAMA_CPP, VLLM, UNKNOWN = (
    "http://127.0.0.1:8080/v1",
    "http://127.0.0.1:8000/v1",
    "https://example.org/v1",
)
HELD = Say('{"thought": "t", "reply": "Held."}')
PROSE = Say("Sure! To add two numbers, " * 40)
FENCED = Say('```json\n{"thought": "t", "reply": "Held."}\n```')
OTHER = Say('{"answer": "An object, but no step."}')

# Server messages as reported in the servers' own issue trackers.
OLD_LLAMA_CPP = Fail(
    500, 'response_format type must be one of "text" or "json_object", but got: json_schema'
)
BAD_GRAMMAR = Fail(400, "Failed to initialize samplers: failed to parse grammar")
XGRAMMAR = Fail(400, "The provided JSON schema contains features not supported by xgrammar.")
DEEPSEEK = Fail(400, "This response_format type is unavailable now")
UNKNOWN_FIELD = Fail(422, {"detail": "structured_outputs: Extra inputs are not permitted"})


def way_of(body: dict[str, Any]) -> str:
    """Return the way that a request uses."""
    match body:
        case {"response_format": {"type": "json_object", "schema": _}}:
            return "json_object_schema"
        case {"response_format": {"type": str(name)}}:
            return name
        case {"structured_outputs": {"json": _}}:
            return "structured_outputs"
        case _:
            return "guided_json" if "guided_json" in body else "none"


@asynccontextmanager
async def constrained(
    server: ScriptedModel, url: str, **settings: Any
) -> AsyncIterator[ConstrainedModel]:
    """Yield a model in constrained mode, treating the scripted endpoint like the one at `url`."""
    endpoint = Endpoint(server.base_url, "scripted", settings=ModelSettings(**settings))
    ways = dialect_of(url).constraints
    model = ConstrainedModel(endpoint, "scripted", 8_192, ModelSettings(**settings), ways=ways)
    yield model
    await model.aclose()


async def step(model: ConstrainedModel) -> Reply:
    *pieces, reply = [piece async for piece in model.stream(Request(HELLO, (ADD,)))]
    assert not [piece for piece in pieces if isinstance(piece, RetryPiece)]
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("url", "failing", "ways", "stream"),
    crossed(
        [
            pytest.param(
                LLAMA_CPP,
                [OLD_LLAMA_CPP],
                ["json_schema", "json_object_schema"],
                id="llama.cpp-old",
            ),
            pytest.param(
                LLAMA_CPP, [PROSE], ["json_schema", "json_object_schema"], id="llama.cpp-ignores"
            ),
            pytest.param(
                VLLM,
                [PROSE, PROSE],
                ["json_schema", "structured_outputs", "guided_json"],
                id="vllm-old",
            ),
            pytest.param(OLLAMA, [PROSE], ["json_schema", "json_object"], id="ollama-old-or-cloud"),
            pytest.param(
                UNKNOWN,
                [DEEPSEEK, PROSE, UNKNOWN_FIELD, OTHER],
                [
                    "json_schema",
                    "json_object_schema",
                    "structured_outputs",
                    "guided_json",
                    "json_object",
                ],
                id="unknown",
            ),
        ],
        [pytest.param(True, id="streamed"), pytest.param(False, id="whole")],
    ),
)
async def test_the_next_way_is_taken_until_one_holds_and_is_kept(
    scripted: Scripted, url: str, failing: Sequence[Step], ways: list[str], stream: bool
) -> None:
    server = scripted([*failing, HELD, HELD])
    async with constrained(server, url, stream=stream) as model:
        assert [(await step(model)).text for _ in range(2)] == ["Held.", "Held."]
    assert [way_of(seen.body) for seen in server.requests] == [*ways, ways[-1]]


async def test_when_none_holds_the_human_reads_what_was_tried_and_what_to_do(
    scripted: Scripted,
) -> None:
    rows: list[tuple[str, str, Sequence[Step], str]] = [
        (
            "vllm",
            VLLM,
            [XGRAMMAR, PROSE, UNKNOWN_FIELD],
            r"json_schema \(.*not supported by xgrammar\); structured_outputs \(answered as if.*\); guided_json",
        ),
        (
            "lm-studio",
            LM_STUDIO,
            [PROSE],
            r"json_schema \(answered as if it had not been asked for\)",
        ),
    ]
    for case, url, failing, says in rows:
        async with constrained(scripted([*failing, *failing]), url) as model:
            for _ in range(
                2
            ):  # the second try starts over: the server may have been restarted with other options
                with pytest.raises(ModelError, match=says) as caught:
                    await step(model)
                assert "set `model.mode` to native" in str(caught.value), case


async def test_what_no_other_way_could_fix_is_not_asked_again(scripted: Scripted) -> None:
    for failing in [
        Fail(401, "bad key"),
        Fail(400, "context_length_exceeded"),
        Fail(404, "no such model"),
    ]:
        server = scripted([failing])
        async with constrained(server, UNKNOWN) as model:
            with pytest.raises(ModelError):
                await step(model)
        assert len(server.requests) == 1, failing


async def test_prose_is_given_up_as_soon_as_it_is_seen(scripted: Scripted) -> None:
    async with constrained(
        scripted([Stall(9, "Sure! To add"), HELD]), LLAMA_CPP, timeout_s=3, retries=0
    ) as model:
        assert (await step(model)).text == "Held."


async def test_a_step_in_a_fence_is_read_and_needs_no_other_way(scripted: Scripted) -> None:
    server = scripted([FENCED])
    async with constrained(server, UNKNOWN) as model:
        assert (await step(model)).text == "Held."


async def test_a_way_that_fails_later_gives_way_to_the_next_as_well(scripted: Scripted) -> None:
    server = scripted([HELD, BAD_GRAMMAR, HELD])
    async with constrained(server, LLAMA_CPP) as model:
        assert [(await step(model)).text for _ in range(2)] == ["Held.", "Held."]
    assert [way_of(seen.body) for seen in server.requests] == [
        "json_schema",
        "json_schema",
        "json_object_schema",
    ]

"""Each failure of an endpoint leads to a retry or to one message that says what to do."""

import re
from collections.abc import Callable

import pytest

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import User
from agent_core.base.settings import ModelSettings
from agent_core.model import Reply, Request, RetryPiece
from agent_core.model.client import open_model
from agent_core.model.discover import DiscoveredModel, choose
from tests.kit import Cut, Fail, Raw, Say, ScriptedModel, Stall, Step
from tests.kit.drawing import crossed
from tests.model.asking import ask, ask_reply, chunks

Scripted = Callable[..., ScriptedModel]
NOW = {"Retry-After": "0"}


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_tried_again_and_told(scripted: Scripted, status: int) -> None:
    server = scripted([Fail(status, "busy", NOW), Fail(status, "busy", NOW), Say("Here.")])
    *retries, _, reply = await ask(server)
    assert [piece.reason for piece in retries if isinstance(piece, RetryPiece)] == [
        f"{server.base_url} says ({status}): busy."
    ] * 2
    assert isinstance(reply, Reply)
    assert reply.text == "Here."


async def test_a_connection_that_breaks_before_anything_came_is_tried_again(scripted: Scripted) -> None:
    pieces = await ask(scripted([Cut(""), Say("Here.")]))
    assert [type(piece).__name__ for piece in pieces] == ["RetryPiece", "TextPiece", "Reply"]


async def test_tries_end_with_the_last_failure(scripted: Scripted) -> None:
    server = scripted([Fail(503, "loading model", NOW), Fail(503, "loading model", NOW)])
    with pytest.raises(ModelError, match="loading model"):
        await ask(server, retries=1)


async def test_a_server_that_is_not_there_is_named_after_the_tries(scripted: Scripted) -> None:
    server = scripted([])
    server.base_url = "http://127.0.0.1:9/v1"
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9/v1 cannot be reached"):
        await ask(server, retries=1)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("step", "says", "stream"),
    crossed(
        [
            pytest.param(Fail(401, "bad key key-12345"), "The key was refused.*bad key ….*OPENAI_API_KEY", id="401"),
            pytest.param(Fail(403, "not for you"), "The key may not do this", id="403"),
            pytest.param(Fail(400, "n must be 1"), r"says \(400\): n must be 1\.", id="400"),
            pytest.param(Fail(404, "no such model"), "no such model", id="404-although-listed"),
            pytest.param(Fail(429, "quota", code="insufficient_quota"), "no credit left", id="no-credit"),
            pytest.param(Fail(500, "broken", {"x-should-retry": "false"}), "broken", id="server-says-do-not-retry"),
            pytest.param(Fail(418, b"<html>teapot</html>"), "a web page instead of JSON", id="web-page"),
            pytest.param(Fail(418, {"detail": "teapot"}), "teapot", id="other-shape"),
            pytest.param(
                Raw(b"<html>", "text/html"), "Check that this is the endpoint's base URL", id="page-under-200"
            ),
            pytest.param(Raw(b'{"choices": [', "application/json"), "not JSON", id="invalid-json"),
            pytest.param(Raw(b"[1]", "application/json"), "not a completion", id="not-an-object"),
            pytest.param(
                Raw(b'{"error": {"message": "it broke"}}', "application/json"), "it broke", id="error-under-200"
            ),
        ],
        [pytest.param(True, id="streamed"), pytest.param(False, id="whole")],
    ),
)
async def test_what_does_not_pass_is_said_at_once(scripted: Scripted, step: Step, says: str, stream: bool) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        await ask(scripted([step]), stream=stream, retries=0)
    assert "key-12345" not in str(caught.value)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        pytest.param(
            Fail(402, {"error": {"code": 402, "message": "Insufficient credits"}}), "no credit left", id="402"
        ),
        pytest.param(Fail(400, "Your credit balance is too low to access the API."), "no credit left", id="credit"),
        pytest.param(Fail(408, "timeout"), "gave up waiting: try again", id="408"),
        pytest.param(Fail(429, "slow down"), "wait a little, or choose another model", id="429"),
        pytest.param(Fail(502, b""), "trouble is at the endpoint: try again later", id="502"),
        pytest.param(
            Fail(400, "flt", code="content_filter"), "content filter refused it: say it in other", id="filter"
        ),
        pytest.param(Fail(403, "Your input was flagged"), "content filter refused it", id="moderation"),
        pytest.param(
            Fail(400, "Invalid model: scripted"), "Check that this is the endpoint's base URL", id="model-under-400"
        ),
        pytest.param(Fail(404, "Resource not found"), "Check that this is the endpoint's base URL", id="404-of-a-path"),
        pytest.param(Fail(429, b'[{"error": {"code": 429, "message": "quota"}}]'), "quota.*wait a little", id="list"),
        pytest.param(Fail(503, "busy", {"Retry-After": "7200"}), "says to wait 7200 s: try again then", id="long-wait"),
    ],
)
async def test_every_failure_ends_in_what_to_do(scripted: Scripted, step: Step, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        await ask(scripted([step]), retries=1 if "Retry-After" in getattr(step, "headers", {}) else 0)


async def test_who_sends_no_key_is_told_to_set_one(scripted: Scripted) -> None:
    server = scripted([Fail(401, "no auth")])
    model = await open_model(DiscoveredModel(server.base_url, "scripted", "", "", context_tokens=9000), ModelSettings())
    with pytest.raises(ModelError, match="No key was sent: set OPENAI_API_KEY"):
        _ = [piece async for piece in model.stream(Request((User("Hello."),)))]
    await model.aclose()


@pytest.mark.parametrize(
    ("step", "waited"),
    [
        pytest.param(Fail(429, "slow", {"Retry-After": "0.01"}), 0.01, id="header"),
        pytest.param(Fail(429, "slow", {"retry-after-ms": "20"}), 0.02, id="milliseconds"),
        pytest.param(Fail(429, "Rate limit reached. Please try again in 0.03s."), 0.03, id="words"),
        pytest.param(
            Fail(429, {"error": {"message": "quota", "details": [{"retryDelay": "0.04s"}]}}), 0.04, id="details"
        ),
    ],
)
async def test_the_wait_is_the_one_that_the_endpoint_asks_for(scripted: Scripted, step: Step, waited: float) -> None:
    pieces = await ask(scripted([step, Say("Here.")]))
    assert [piece.wait_s for piece in pieces if isinstance(piece, RetryPiece)] == [waited]


async def test_where_the_endpoint_asks_for_no_wait_the_first_is_short(scripted: Scripted) -> None:
    retry, *_ = await ask(scripted([Fail(429, "slow down"), Say("Here.")]))
    assert isinstance(retry, RetryPiece)
    assert 0 < retry.wait_s <= 0.5


@pytest.mark.parametrize(
    ("step", "says"),
    [
        pytest.param(Say("", finish="content_filter"), "rephrase the request", id="filter"),
        pytest.param(chunks({"refusal": "No."}), "refused to answer", id="refusal"),
        pytest.param(Say("half", finish="length"), r"raise `model\.max_tokens`", id="length"),
    ],
)
async def test_a_reply_that_was_held_back_says_what_to_do(scripted: Scripted, step: Step, says: str) -> None:
    assert re.search(says, (await ask_reply(scripted([step]))).note)


async def test_a_model_that_is_not_there_is_answered_with_those_that_are(scripted: Scripted) -> None:
    with pytest.raises(ModelError, match=r"There is no model `scripted` at .* There are: qwen3:8b, gemma3"):
        await ask(scripted([], models=["qwen3:8b", "gemma3"]))


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        pytest.param(400, "This model's maximum context length is 8192 tokens.", None, id="openai-vllm"),
        pytest.param(400, "too long", "context_length_exceeded", id="openai-code"),
        pytest.param(400, "request (9000 tokens) exceeds the available context size (4096)", None, id="llama.cpp"),
        pytest.param(500, "the request exceeds the available context size", None, id="llama.cpp-old"),
        pytest.param(400, "prompt is too long: 210000 tokens > 200000 maximum", None, id="anthropic"),
        pytest.param(400, "The input token count (9) exceeds the maximum number of tokens allowed", None, id="gemini"),
        pytest.param(400, "Prompt contains 40000 tokens, too large for model with 32768 max", None, id="mistral"),
        pytest.param(400, "Trying to keep the first 5000 tokens when context the overflows.", None, id="lm-studio"),
        pytest.param(400, "Please reduce the length of the messages or completion.", None, id="groq"),
        pytest.param(400, "This model's maximum prompt length is 131072", None, id="xai"),
        pytest.param(400, "The prompt (length 9) is longer than the maximum model length of 8", None, id="vllm"),
        pytest.param(400, "max_tokens must be at least 1, got -186.", None, id="vllm-old"),
        pytest.param(400, "tokens to keep is greater than the context length", None, id="lm-studio-new"),
        pytest.param(413, "Request too large", None, id="payload"),
        pytest.param(429, "Request too large on TPM: the input tokens must be reduced", None, id="rate"),
    ],
)
async def test_overflow_is_known_by_every_common_wording(
    scripted: Scripted, status: int, message: str, code: str | None
) -> None:
    with pytest.raises(ContextOverflow):
        await ask(scripted([Fail(status, message, code=code)]))


async def test_an_ordinary_mention_of_context_is_not_an_overflow(scripted: Scripted) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(scripted([Fail(400, "The field 'context' must be a string.")]))
    assert not isinstance(caught.value, ContextOverflow)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(Cut("Once upon a time there was"), id="cut"),
        pytest.param(Stall(5, "Once upon a time there was"), id="stall"),
        pytest.param(chunks({"content": "Once upon a time there was"}, finish=None, end=b""), id="ends-without-an-end"),
        pytest.param(
            chunks({"content": "Once upon a time there was"}, finish=None, end=b'data: {"error": "overloaded"}\n\n'),
            id="error-in-the-stream",
        ),
        pytest.param(
            chunks({"content": "Once upon a time there was"}, finish=None, end=b"data: {oops\n\n"),
            id="malformed-chunk",
        ),
    ],
)
async def test_an_answer_that_broke_off_is_never_asked_for_again(scripted: Scripted, step: Step) -> None:
    with pytest.raises(ModelError) as failed:
        await ask(scripted([step]), timeout_s=0.2)
    assert "Once upon" not in str(failed.value), "it was shown as it came"


async def test_silence_before_the_answer_ends_after_the_time_limit(scripted: Scripted) -> None:
    with pytest.raises(ModelError, match=r"said nothing for 0\.1 s"):
        await ask(scripted([Stall(5)]), timeout_s=0.1)


@pytest.mark.parametrize(
    ("refusal", "sent"),
    [
        pytest.param(
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            {"max_completion_tokens": 50, "temperature": 0.5},
            id="another-name",
        ),
        pytest.param("Unsupported value: 'temperature' does not support 0.5.", {"max_tokens": 50}, id="left-out"),
        pytest.param(
            "Function tools need `reasoning_effort` set to 'none'.",
            {"max_tokens": 50, "temperature": 0.5, "reasoning_effort": "none"},
            id="set-although-it-was-not-sent",
        ),
    ],
)
async def test_a_parameter_refused_by_name_is_gone_round(
    scripted: Scripted, refusal: str, sent: dict[str, object]
) -> None:
    server = scripted([Fail(400, refusal), Say("Here.")])
    await ask_reply(server, max_tokens=50, temperature=0.5)
    names = {"max_tokens", "max_completion_tokens", "temperature", "reasoning_effort"}
    assert {name: value for name, value in server.requests[1].body.items() if name in names} == sent


async def test_a_parameter_refused_again_is_a_failure(scripted: Scripted) -> None:
    with pytest.raises(ModelError, match="temperature"):
        await ask(scripted([Fail(400, "no 'temperature'"), Fail(400, "no 'temperature'")]), temperature=0.5)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        pytest.param("", "Try the address {root}/v1.", id="root"),
        pytest.param("/", "Try the address {root}/v1.", id="slash"),
        pytest.param("/v1/chat/completions", "Try the address {root}/v1.", id="of-a-call"),
        pytest.param("/v1", "Check that this is the endpoint's base URL.", id="v1"),
        pytest.param("/v1beta/openai/", "Check that this is the endpoint's base URL.", id="with-a-version"),
    ],
)
async def test_an_address_that_is_none_is_told_with_the_one_that_it_may_be(
    scripted: Scripted, path: str, says: str
) -> None:
    server = scripted([Raw(b"<html>", "text/html")] * (path == "/v1"))
    root = server.base_url.removesuffix("/v1")
    server.base_url = f"{root}{path}"
    with pytest.raises(ModelError) as unnamed:
        await choose(ModelSettings(base_url=f"{root}/nothing{path}"), {})
    assert unnamed.value.fix.startswith(says.format(root=f"{root}/nothing"))
    with pytest.raises(ModelError) as named:
        await ask(server, retries=0)
    assert named.value.fix.startswith(says.format(root=root))


async def test_of_an_address_at_which_nothing_listens_no_path_is_said() -> None:
    with pytest.raises(ModelError, match=r"cannot be reached: .* Is it running\? Check the address\.$"):
        await choose(ModelSettings(base_url="http://127.0.0.1:9"), {})

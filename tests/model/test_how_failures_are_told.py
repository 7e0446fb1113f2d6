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
from tests.model.asking import ask, ask_reply, chunks

Scripted = Callable[..., ScriptedModel]
NOW = {"Retry-After": "0"}


async def test_what_may_pass_is_tried_again_and_told(scripted: Scripted) -> None:
    for status in (408, 409, 429, 500, 502, 503, 504, 529):
        server = scripted([Fail(status, "busy", NOW), Fail(status, "busy", NOW), Say("Here.")])
        *retries, _, reply = await ask(server)
        told = f"{server.base_url} says ({status}): busy."
        assert [piece.reason for piece in retries if isinstance(piece, RetryPiece)] == [told] * 2, status
        assert isinstance(reply, Reply)
        assert reply.text == "Here.", status


async def test_a_connection_that_breaks_before_anything_came_is_tried_again(scripted: Scripted) -> None:
    pieces = await ask(scripted([Cut(""), Say("Here.")]))
    assert [type(piece).__name__ for piece in pieces] == ["RetryPiece", "TextPiece", "Reply"]


async def test_tries_end_with_the_last_failure(scripted: Scripted) -> None:
    server = scripted([Fail(503, "loading model", NOW), Fail(503, "loading model", NOW)])
    with pytest.raises(ModelError, match="loading model"):
        await ask(server, retries=1)
    assert len(server.requests) == 2


async def test_a_server_that_is_not_there_is_named_after_the_tries(scripted: Scripted) -> None:
    server = scripted([])
    server.base_url = "http://127.0.0.1:9/v1"
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9/v1 cannot be reached"):
        await ask(server, retries=1)


BASE = "Check that this is the endpoint's base URL"
FAILURES: list[tuple[Step, str]] = [
    (Fail(401, "bad key key-12345"), "The key was refused.*bad key ….*OPENAI_API_KEY"),
    (Fail(400, "n must be 1"), r"says \(400\): n must be 1\."),
    (Fail(429, "quota", code="insufficient_quota"), "no credit left"),
    (Fail(400, "Your credit balance is too low to access the API."), "no credit left"),
    (Fail(429, b'[{"error": {"code": 429, "message": "quota"}}]'), "quota.*wait a little"),
    (Fail(418, {"detail": "teapot"}), "teapot"),
    (Raw(b"[1]", "application/json"), "not a completion"),
    (Raw(b'{"error": {"message": "it broke"}}', "application/json"), "it broke"),
    (Fail(502, b""), "trouble is at the endpoint: try again later"),
    (Fail(403, "Your input was flagged"), "content filter refused it"),
    (Fail(400, "Invalid model: scripted"), BASE),
    (Fail(404, "Resource not found"), BASE),
]


async def test_what_does_not_pass_is_said_at_once_with_what_to_do(scripted: Scripted) -> None:
    for stream in [True, False]:
        for step, says in FAILURES:
            with pytest.raises(ModelError, match=says) as caught:
                await ask(scripted([step]), stream=stream, retries=0)
            assert "key-12345" not in str(caught.value), step
        never = Fail(500, "broken", {"x-should-retry": "false"})
        with pytest.raises(ModelError, match="broken"):
            await ask(scripted([never]), stream=stream, retries=3)


async def test_who_sends_no_key_is_told_to_set_one(scripted: Scripted) -> None:
    server = scripted([Fail(401, "no auth")])
    model = await open_model(DiscoveredModel(server.base_url, "scripted", "", "", context_tokens=9000), ModelSettings())
    with pytest.raises(ModelError, match="No key was sent: set OPENAI_API_KEY"):
        _ = [piece async for piece in model.stream(Request((User("Hello."),)))]
    await model.aclose()


async def test_the_wait_is_the_one_that_the_endpoint_asks_for_and_else_short(scripted: Scripted) -> None:
    details = {"error": {"message": "quota", "details": [{"retryDelay": "0.04s"}]}}
    waits: list[tuple[Fail, float | None]] = [
        (Fail(429, "slow", {"Retry-After": "0.01"}), 0.01),
        (Fail(429, "slow", {"retry-after-ms": "20"}), 0.02),
        (Fail(429, "Rate limit reached. Please try again in 0.03s."), 0.03),
        (Fail(429, details), 0.04),
        (Fail(429, "slow down"), None),
    ]
    for step, wait_s in waits:
        retry, *_ = await ask(scripted([step, Say("Here.")]))
        assert isinstance(retry, RetryPiece)
        assert retry.wait_s == wait_s or (wait_s is None and 0 < retry.wait_s <= 0.5), step


async def test_a_reply_that_was_held_back_says_what_to_do(scripted: Scripted) -> None:
    rows: list[tuple[str, Step, str]] = [
        ("filter", Say("", finish="content_filter"), "rephrase the request"),
        ("refusal", chunks({"refusal": "No."}), "refused to answer"),
        ("length", Say("half", finish="length"), r"raise `model\.max_tokens`"),
    ]
    for case, step, says in rows:
        assert re.search(says, (await ask_reply(scripted([step]))).note), case


async def test_a_model_that_is_not_there_is_answered_with_those_that_are(scripted: Scripted) -> None:
    with pytest.raises(ModelError, match=r"There is no model `scripted` at .* There are: qwen3:8b, gemma3"):
        await ask(scripted([], models=["qwen3:8b", "gemma3"]))


async def test_overflow_is_known_by_every_common_wording(scripted: Scripted) -> None:
    rows: list[tuple[int, str, str | None]] = [
        (400, "This model's maximum context length is 8192 tokens.", None),
        (400, "too long", "context_length_exceeded"),
        (400, "request (9000 tokens) exceeds the available context size (4096)", None),
        (500, "the request exceeds the available context size", None),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", None),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed", None),
        (400, "Prompt contains 40000 tokens, too large for model with 32768 max", None),
        (400, "Trying to keep the first 5000 tokens when context the overflows.", None),
        (400, "Please reduce the length of the messages or completion.", None),
        (400, "This model's maximum prompt length is 131072", None),
        (400, "The prompt (length 9) is longer than the maximum model length of 8", None),
        (400, "max_tokens must be at least 1, got -186.", None),
        (400, "tokens to keep is greater than the context length", None),
        (413, "Request too large", None),
        (429, "Request too large on TPM: the input tokens must be reduced", None),
    ]
    for status, message, code in rows:
        with pytest.raises(ContextOverflow):
            await ask(scripted([Fail(status, message, code=code)]))


async def test_an_ordinary_mention_of_context_is_not_an_overflow(scripted: Scripted) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(scripted([Fail(400, "The field 'context' must be a string.")]))
    assert not isinstance(caught.value, ContextOverflow)


async def test_an_answer_that_broke_off_is_never_asked_for_again(scripted: Scripted) -> None:
    begun = "Once upon a time there was"
    for step in [
        Cut(begun),
        Stall(5, begun),
        chunks({"content": begun}, finish=None, end=b""),
        chunks({"content": begun}, finish=None, end=b'data: {"error": "overloaded"}\n\n'),
        chunks({"content": begun}, finish=None, end=b"data: {oops\n\n"),
    ]:
        server = scripted([step])
        with pytest.raises(ModelError) as failed:
            await ask(server, timeout_s=0.2)
        assert "Once upon" not in str(failed.value), "it was shown as it came"
        assert len(server.requests) == 1, step


async def test_a_parameter_refused_by_name_is_gone_round(scripted: Scripted) -> None:
    rows: list[tuple[str, str, dict[str, object]]] = [
        (
            "another-name",
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            {"max_completion_tokens": 50, "temperature": 0.5},
        ),
        ("left-out", "Unsupported value: 'temperature' does not support 0.5.", {"max_tokens": 50}),
        (
            "set-although-it-was-not-sent",
            "Function tools need `reasoning_effort` set to 'none'.",
            {"max_tokens": 50, "temperature": 0.5, "reasoning_effort": "none"},
        ),
    ]
    for case, refusal, sent in rows:
        server = scripted([Fail(400, refusal), Say("Here.")])
        await ask_reply(server, max_tokens=50, temperature=0.5)
        names = {"max_tokens", "max_completion_tokens", "temperature", "reasoning_effort"}
        assert {name: value for name, value in server.requests[1].body.items() if name in names} == sent, case


async def test_a_parameter_refused_again_is_a_failure(scripted: Scripted) -> None:
    with pytest.raises(ModelError, match="temperature"):
        await ask(scripted([Fail(400, "no 'temperature'"), Fail(400, "no 'temperature'")]), temperature=0.5)


async def test_an_address_that_is_none_is_told_with_the_one_that_it_may_be(scripted: Scripted) -> None:
    rows: list[tuple[str, str, str]] = [
        ("root", "", "Try the address {root}/v1."),
        ("slash", "/", "Try the address {root}/v1."),
        ("of-a-call", "/v1/chat/completions", "Try the address {root}/v1."),
        ("v1", "/v1", "Check that this is the endpoint's base URL."),
        ("with-a-version", "/v1beta/openai/", "Check that this is the endpoint's base URL."),
    ]
    for case, path, says in rows:
        server = scripted([Raw(b"<html>", "text/html")] * (path == "/v1"))
        root = server.base_url.removesuffix("/v1")
        server.base_url = f"{root}{path}"
        with pytest.raises(ModelError) as unnamed:
            await choose(ModelSettings(base_url=f"{root}/nothing{path}"), {})
        assert unnamed.value.fix.startswith(says.format(root=f"{root}/nothing")), case
        with pytest.raises(ModelError) as named:
            await ask(server, retries=0)
        assert named.value.fix.startswith(says.format(root=root)), case

"""Each failure of an endpoint leads to a retry or to one message that says what to do."""

from collections.abc import Callable

import pytest

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import User
from agent_core.base.settings import ModelSettings
from agent_core.model import Reply, Request, RetryPiece
from agent_core.model.client import open_model
from agent_core.model.discover import DiscoveredModel, choose
from tests.kit import Fail, Raw, Say, ScriptedModel
from tests.model.asking import ask, ask_reply

Scripted = Callable[..., ScriptedModel]
NOW = {"Retry-After": "0"}


async def test_what_may_pass_is_tried_again_and_told(scripted: Scripted) -> None:
    for status in (408, 429, 500, 529):
        server = scripted([Fail(status, "busy", NOW), Fail(status, "busy", NOW), Say("Here.")])
        *retries, _, reply = await ask(server)
        told = f"{server.base_url} says ({status}): busy."
        assert [piece.reason for piece in retries if isinstance(piece, RetryPiece)] == [told] * 2, (
            status
        )
        assert isinstance(reply, Reply)
        assert reply.text == "Here.", status


async def test_a_server_that_is_not_there_is_named_after_the_tries(scripted: Scripted) -> None:
    server = scripted([])
    server.base_url = "http://127.0.0.1:9/v1"
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9/v1 cannot be reached"):
        await ask(server, retries=1)


async def test_who_sends_no_key_is_told_to_set_one(scripted: Scripted) -> None:
    server = scripted([Fail(401, "no auth")])
    model = await open_model(
        DiscoveredModel(server.base_url, "scripted", "", "", context_tokens=9000), ModelSettings()
    )
    with pytest.raises(ModelError, match="No key was sent: set OPENAI_API_KEY"):
        _ = [piece async for piece in model.stream(Request((User("Hello."),)))]
    await model.aclose()


async def test_the_wait_is_the_one_that_the_endpoint_asks_for_and_else_short(
    scripted: Scripted,
) -> None:
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


async def test_overflow_is_known_by_every_common_wording(scripted: Scripted) -> None:
    rows: list[tuple[int, str, str | None]] = [
        (400, "This model's maximum context length is 8192 tokens.", None),
        (400, "request (9000 tokens) exceeds the available context size (4096)", None),
        (500, "the request exceeds the available context size", None),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", None),
        (400, "Prompt contains 40000 tokens, too large for model with 32768 max", None),
        (400, "Trying to keep the first 5000 tokens when context the overflows.", None),
        (400, "This model's maximum prompt length is 131072", None),
        (400, "max_tokens must be at least 1, got -186.", None),
        (413, "Request too large", None),
    ]
    for status, message, code in rows:
        with pytest.raises(ContextOverflow):
            await ask(scripted([Fail(status, message, code=code)]))
    with pytest.raises(ModelError) as caught:
        await ask(scripted([Fail(400, "The field 'context' must be a string.")]))
    assert not isinstance(caught.value, ContextOverflow)


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
        assert {
            name: value for name, value in server.requests[1].body.items() if name in names
        } == sent, case


async def test_an_address_that_is_none_is_told_with_the_one_that_it_may_be(
    scripted: Scripted,
) -> None:
    rows: list[tuple[str, str, str]] = [
        ("root", "", "Try the address {root}/v1."),
        ("of-a-call", "/v1/chat/completions", "Try the address {root}/v1."),
        ("v1", "/v1", "Check that this is the endpoint's base URL."),
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

"""One connection for all steps, none leaked, and no proxy for addresses on this machine."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from agent_core.base.messages import Assistant, User
from agent_core.base.settings import ModelSettings
from agent_core.model import Piece, Reply, Request
from agent_core.model.client import open_model
from agent_core.model.discover import DiscoveredModel
from tests.kit import Fail, Repeat, Say, ScriptedModel
from tests.model.asking import ADD, HELLO, ask, ask_reply

Scripted = Callable[..., ScriptedModel]


async def test_all_steps_and_retries_share_one_connection(scripted: Scripted) -> None:
    for stream in [True, False]:
        server = scripted(
            [Say("One."), Fail(503, "busy", {"Retry-After": "0"}), Repeat(Say("More."), 3)]
        )
        chosen = DiscoveredModel(server.base_url, "scripted", "", "a test", context_tokens=8000)
        model = await open_model(chosen, ModelSettings(stream=stream))
        for _ in range(4):
            assert [piece async for piece in model.stream(Request(HELLO))], stream
        await model.aclose()
        assert server.connections == 1, stream


async def test_the_connection_of_an_abandoned_reply_is_closed_at_once_and_the_model_goes_on(
    scripted: Scripted,
) -> None:
    server = scripted([Say("A long answer, told slowly. " * 90, pause_s=0.02), Say("Here.")])
    model = await open_model(
        DiscoveredModel(server.base_url, "scripted", "", "", context_tokens=8000), ModelSettings()
    )
    pieces = cast("AsyncGenerator[Piece, None]", model.stream(Request(HELLO)))
    await anext(pieces)
    await pieces.aclose()
    for _ in range(500):
        await asyncio.sleep(0.01 if server.active else 0)
    assert not server.active
    *_, reply = [piece async for piece in model.stream(Request(HELLO))]
    await model.aclose()
    assert isinstance(reply, Reply)
    assert reply.text == "Here."


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await ask_reply(scripted([Say("Here.")]))).text == "Here."


async def test_only_what_is_set_is_asked_for(scripted: Scripted) -> None:
    rows: list[tuple[str, dict[str, Any], set[str]]] = [
        ("as-it-comes", {}, {"stream", "stream_options"}),
        ("not-streamed", {"stream": False}, set()),
        (
            "set",
            {"max_tokens": 9, "temperature": 0.0, "stream": False},
            {"max_tokens", "temperature"},
        ),
    ]
    for case, settings, expected in rows:
        server = scripted([Say("Here.")])
        await ask(server, **settings)
        assert server.requests[0].body.keys() == {"model", "messages", "tools"} | expected, case
        assert server.requests[0].headers["authorization"] == "Bearer key-12345", case


async def test_a_request_mentions_no_functions_where_there_are_none_and_nothing_of_the_machine(
    scripted: Scripted,
) -> None:
    server = scripted([Say("Here.")])
    await ask(server, User("Hello."), Assistant("Hm."), User("Well?"), functions=())
    assert "tools" not in server.requests[0].body
    assert ADD.name not in server.requests[0].functions
    told = {
        "x-stainless-os",
        "x-stainless-arch",
        "x-stainless-runtime",
        "x-stainless-runtime-version",
    }
    assert not told & server.requests[0].headers.keys()

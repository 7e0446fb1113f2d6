"""A model in constrained mode behind real HTTP: the requests to the server, and the parsing of its text."""

import json
from collections.abc import Callable

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.messages import Answer, Assistant, Call, Message, User
from agent_core.base.settings import ModelSettings
from agent_core.model import Piece, Reply, Request, TextPiece, ThoughtPiece, TokenUsage
from agent_core.model.connection import Endpoint
from agent_core.model.constrained import ConstrainedModel
from tests.kit import Say, ScriptedModel

from .asking import ADD, HELLO

CALL = '{"thought": "I add.", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}'


async def ask(server: ScriptedModel, request: Request | None = None, **settings: object) -> list[Piece]:
    chosen = ModelSettings.model_validate(settings)
    model = ConstrainedModel(Endpoint(server.base_url, "scripted", settings=chosen), "scripted", 8_192, chosen)
    try:
        return [piece async for piece in model.stream(request or Request(HELLO, (ADD,)))]
    finally:
        await model.aclose()


def tried(call_id: str) -> tuple[Message, ...]:
    return Assistant("", (Call(call_id, "add", '{"a": 1}'),)), Answer(call_id, "add", "`b` is missing.")


def reply_of(pieces: list[Piece]) -> Reply:
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


async def test_a_reply_streams_its_thought_and_its_text(scripted: Callable[..., ScriptedModel]) -> None:
    pieces = await ask(scripted([Say('{"thought": "I greet.", "reply": "Hello, you."}', usage=(100, 9))]))
    assert "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == "I greet."
    texts = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    assert "".join(texts) == "Hello, you."
    assert len(texts) > 1
    assert reply_of(pieces) == Reply("Hello, you.", "I greet.", (), "stop", TokenUsage(100, 9))


async def test_a_call_becomes_a_call_with_an_id_of_its_own(scripted: Callable[..., ScriptedModel]) -> None:
    server = scripted([Say(CALL), Say(CALL)])
    first, second = [reply_of(await ask(server)) for _ in range(2)]
    assert (first.calls[0].name, json.loads(first.calls[0].arguments), first.finish) == (
        "add",
        {"a": 1, "b": 2},
        "calls",
    )
    assert first.calls[0].id != second.calls[0].id


async def test_the_server_is_asked_for_the_schema_of_this_step(scripted: Callable[..., ScriptedModel]) -> None:
    server = scripted([Say(CALL)])
    await ask(server, Request((User("use add"),), (ADD,), max_tokens=77), temperature=0.5)
    body = server.requests[0].body
    assert body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert (body["max_tokens"], body["temperature"], "tools" in body) == (77, 0.5, False)


async def test_a_model_that_repeats_itself_is_asked_with_some_chance(scripted: Callable[..., ScriptedModel]) -> None:
    rows: list[tuple[str, tuple[Message, ...], dict[str, float], float]] = [
        ("once", (*HELLO, *tried("1")), {}, 0),
        ("twice", (*HELLO, *tried("1"), *tried("2")), {}, 0.8),
        ("the-user-spoke", (*HELLO, *tried("1"), *tried("2"), User("Stop.")), {}, 0),
        ("as-set", (*HELLO, *tried("1"), *tried("2")), {"temperature": 0.1}, 0.1),
    ]
    for case, messages, settings, expected in rows:
        server = scripted([Say(CALL)])
        await ask(server, Request(messages, (ADD,)), **settings)
        assert server.requests[0].body["temperature"] == expected, case


async def test_an_object_that_breaks_off_without_reason_is_an_error(scripted: Callable[..., ScriptedModel]) -> None:
    with pytest.raises(ModelError, match="broke off"):
        await ask(scripted([Say('{"thought": "t", "call": {"name": "add"')]))


async def test_a_server_that_once_lets_go_of_the_schema_is_taken_at_its_word(
    scripted: Callable[..., ScriptedModel],
) -> None:
    server = scripted([Say(CALL), Say("Just text.")])
    model = ConstrainedModel(Endpoint(server.base_url, "scripted"), "scripted", 8_192)
    for _ in range(2):
        pieces = [piece async for piece in model.stream(Request(HELLO, (ADD,)))]
    await model.aclose()
    assert pieces[0] == TextPiece("Just text.")
    assert "used as it is" in reply_of(pieces).note

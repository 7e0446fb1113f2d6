"""Helpers to call a scripted model in these tests."""

import json
from collections.abc import Iterable
from typing import Any

from agent_core.base.messages import Message, User
from agent_core.base.settings import ModelSettings
from agent_core.model import FunctionShown, Piece, Reply, Request
from agent_core.model.client import open_model
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import Dialect
from agent_core.model.discover import DiscoveredModel
from agent_core.model.wire import Entry, RequestWriter
from tests.kit import Raw, ScriptedModel

ADD = FunctionShown(
    "add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
)


def to_wire(messages: Iterable[Message], dialect: Dialect | None = None) -> list[Entry]:
    """Return the messages of a request as the endpoint reads them."""
    entries: list[Entry] = json.loads(RequestWriter(dialect).messages(tuple(messages)))
    return entries


def source_of(server: ScriptedModel, **settings: Any) -> str:  # Any: what ModelSettings takes
    """Return the name of the endpoint and model that these settings ask."""
    return Endpoint(server.base_url, "scripted", settings=ModelSettings(**settings)).source


HELLO: tuple[Message, ...] = (User("Hello."),)


async def ask(
    server: ScriptedModel,
    *messages: Message,
    functions: tuple[FunctionShown, ...] = (ADD,),
    **settings: Any,  # Any: what ModelSettings takes
) -> list[Piece]:
    """Return all pieces of one reply."""
    chosen = DiscoveredModel(
        server.base_url, "scripted", "key-12345", "scripted", context_tokens=32_000
    )
    model = await open_model(chosen, ModelSettings(**settings))
    try:
        return [piece async for piece in model.stream(Request(messages or HELLO, functions))]
    finally:
        await model.aclose()


async def ask_reply(server: ScriptedModel, *messages: Message, **settings: Any) -> Reply:
    """Return the whole reply."""
    reply = (await ask(server, *messages, **settings))[-1]
    assert isinstance(reply, Reply)
    return reply


def chunks(
    *deltas: dict[str, Any], finish: str | None = "stop", end: bytes = b"data: [DONE]\n\n"
) -> Raw:
    """Return a stream with these deltas, however odd."""
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    if finish:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    lines = [b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n" for choice in choices]
    return Raw(b"".join(lines) + end)

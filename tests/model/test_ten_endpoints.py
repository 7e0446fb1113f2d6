"""Ten endpoints, each with its own wire format: text, calls, parallel and malformed ones, streams, overflow, 429.

The files in `shapes/` were written for these tests; each names the source for its endpoint's behavior.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agent_core.base.errors import ContextOverflow
from agent_core.base.messages import Answer, Assistant, Call, Message, System, User
from agent_core.base.settings import ModelSettings
from agent_core.model import Piece, Reply, Request, RetryPiece, TextPiece
from agent_core.model.client import NativeModel
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import dialect_of
from agent_core.model.tokens import Window
from tests.kit import Fail, Raw, Say, ScriptedModel
from tests.kit.drawing import crossed
from tests.model.asking import ADD

Shape: TypeAlias = dict[str, Any]
Scripted: TypeAlias = Callable[..., ScriptedModel]

SHAPES: dict[str, Shape] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted(Path(__file__).parent.joinpath("shapes").glob("*"))
}
ANSWERED = ["text", "one_call", "parallel_calls", "malformed_call", "streaming"]
OLD = Assistant("", (Call("an older id, of another endpoint", "add", "{}"),))
EARLIER: tuple[Message, ...] = (System("Be brief."), User("Hello."), OLD, Answer(OLD.calls[0].id, "add", "1"))


def played(row: Shape) -> Raw | Fail:
    """Return what the endpoint sends, byte for byte."""
    if "events" in row:
        lines = [event if str(event).startswith(":") else f"data: {_text(event)}" for event in row["events"]]
        return Raw("".join(f"{line}\n\n" for line in lines).encode())
    if row["status"] == 200:
        return Raw(json.dumps(row["body"]).encode(), "application/json")
    return Fail(row["status"], json.dumps(row["body"]).encode(), row["headers"])


def _text(event: object) -> str:
    return event if isinstance(event, str) else json.dumps(event)


class Asked:
    """A model at an endpoint of one kind, simulated by the scripted server."""

    def __init__(self, server: ScriptedModel, shape: Shape) -> None:
        settings = ModelSettings(max_tokens=500, timeout_s=5, api="chat")
        endpoint = Endpoint(server.base_url, "scripted", settings=settings)
        endpoint.speak(dialect_of(shape["url"]))
        self.server, self.shape = server, shape
        self.model = NativeModel(endpoint, window=Window(32_000, "scripted"))

    async def __aenter__(self) -> "Asked":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.model.aclose()

    async def ask(self, *messages: Message) -> list[Piece]:
        pieces = [piece async for piece in self.model.stream(Request(messages, (ADD,)))]
        self.check(self.server.requests[-1].body)
        return pieces

    def check(self, body: Shape) -> None:
        """Check that this kind of endpoint accepts the request."""
        assert not body.keys() & set(self.shape["refuses"])
        ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
        pattern = self.shape.get("id_pattern", "[a-zA-Z0-9_-]{1,40}")
        assert all(re.fullmatch(pattern, each) for each in ids)


def test_every_row_of_the_ten_endpoints_is_what_its_name_says() -> None:
    assert len(SHAPES) == 10
    for name, shape in SHAPES.items():
        calls = {row: shape[row]["expect"].get("calls", []) for row in ANSWERED}
        assert not calls["text"], name
        assert shape["text"]["expect"]["text"], name
        assert len(calls["one_call"]) == 1 < len(calls["parallel_calls"]), name
        (sent,) = shape["malformed_call"]["body"]["choices"]
        plain = [
            [each["function"][key] for key in ("name", "arguments")] for each in sent["message"].get("tool_calls") or ()
        ]
        assert plain != [[called, json.dumps(arguments)] for called, arguments in calls["malformed_call"]], name
        assert calls["malformed_call"], name
        assert len(shape["streaming"]["events"]) > 2, name


async def test_every_reply_of_every_endpoint_is_understood(scripted: Scripted) -> None:
    for name in SHAPES:
        for row in ANSWERED:
            expected: Shape = SHAPES[name][row]["expect"]
            async with Asked(scripted([played(SHAPES[name][row]), Say("Done.")]), SHAPES[name]) as asked:
                *pieces, reply = await asked.ask(*EARLIER, User("Add."))
                assert isinstance(reply, Reply), name
                calls = [[call.name, json.loads(call.arguments)] for call in reply.calls]
                assert (reply.text, reply.thought) == (expected.get("text", ""), expected.get("thought", "")), name
                assert calls == expected.get("calls", []), name
                assert reply.finish == ("calls" if calls else "stop"), name
                assert (reply.usage.prompt, reply.usage.cached) == (82, SHAPES[name].get("cached", 0)), name
                assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).strip() == reply.text, (
                    name
                )
                answers = [Answer(call.id, call.name, "3") for call in reply.calls]
                await asked.ask(*EARLIER, User("Add."), Assistant(reply.text, reply.calls), *answers, User("So?"))


def streamed(body: Shape) -> Raw:
    """Return the same response as a stream: text, reasoning and arguments in pieces, then the usage."""
    (choice,) = body["choices"]
    message: Shape = dict(choice["message"])
    deltas: list[Shape] = [{"role": "assistant"}]
    for key in ("reasoning_content", "reasoning", "content"):
        if isinstance(text := message.get(key), str):
            deltas += [{key: piece} for piece in _pieces(text)]
        elif message.get(key):
            deltas.append({key: message[key]})
    for index, call in enumerate(message.get("tool_calls") or ()):
        whole: Shape = call["function"]
        begun = {**call, "index": index, "function": {**whole, "arguments": ""}}
        rest = [{"index": index, "function": {"arguments": piece}} for piece in _pieces(whole["arguments"])]
        deltas += [{"tool_calls": [each]} for each in (begun, *rest)]
    choices: list[Shape] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
    events = [{"choices": [each]} for each in choices] + [{"choices": [], "usage": body["usage"]}]
    return Raw("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n")


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "row"), crossed(SHAPES, ["text", "one_call", "parallel_calls", "malformed_call"]))
async def test_what_an_endpoint_says_whole_is_understood_as_a_stream_too(
    scripted: Scripted, name: str, row: str
) -> None:
    shape: Shape = SHAPES[name][row]
    async with Asked(scripted([streamed(shape["body"])]), SHAPES[name]) as asked:
        *pieces, reply = await asked.ask(*EARLIER, User("Add."))
        assert isinstance(reply, Reply)
        assert [[call.name, json.loads(call.arguments)] for call in reply.calls] == shape["expect"].get("calls", [])
        assert reply.text == shape["expect"].get("text", "")
        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).strip() == reply.text
        assert reply.usage.prompt == 82


async def test_every_endpoint_says_overflow_in_its_own_words(scripted: Scripted) -> None:
    for name in SHAPES:
        async with Asked(scripted([played(SHAPES[name]["overflow"])]), SHAPES[name]) as asked:
            with pytest.raises(ContextOverflow):
                await asked.ask(*EARLIER, User("Add."))


async def test_every_endpoint_that_is_busy_is_asked_again(scripted: Scripted) -> None:
    for name in SHAPES:
        row = SHAPES[name]["rate_limit"]
        async with Asked(scripted([played(row), Say("Here.")]), SHAPES[name]) as asked:
            retry, *_, reply = await asked.ask(*EARLIER, User("Add."))
            assert isinstance(retry, RetryPiece), name
            assert retry.wait_s == row["expect"].get("wait_s") or 0 < retry.wait_s <= 0.5, name
            assert isinstance(reply, Reply), name
            assert reply.text == "Here.", name


async def test_what_gemini_signs_goes_back_to_it_as_it_came(scripted: Scripted) -> None:
    shape = SHAPES["gemini"]
    async with Asked(scripted([played(shape["streaming"]), Say("Done.")]), shape) as asked:
        reply = (await asked.ask(User("Add.")))[-1]
        assert isinstance(reply, Reply)
        answers = [Answer(call.id, call.name, "3") for call in reply.calls]
        await asked.ask(User("Add."), Assistant("", reply.calls), *answers)
        first = asked.server.requests[1].body["messages"][1]["tool_calls"][0]
        assert first["extra_content"]["google"]["thought_signature"] == "EjQKMgEMOdbHJChLX75Q"

"""The Responses API: the same replies as over chat completions, and a turn's reasoning kept within the turn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.messages import Answer, Assistant, Call, Message, Notice, System, User
from agent_core.base.settings import ModelSettings
from agent_core.model import Reply, TextPiece, ThoughtPiece
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import dialect_of
from agent_core.model.responses import to_responses
from sandbox import Sandbox
from tests.cli.support import run
from tests.conftest import OpenDesk
from tests.kit import Ask, Fail, Raw, Repeat, Say, ScriptedModel, Seen, Step, Wanted
from tests.kit.desk import VOWELS, Desk, ended
from tests.kit.desk import desk as open_desk
from tests.kit.params import unfit
from tests.kit.play import scripted as scripted_model
from tests.kit.responses import reasoning
from tests.model.asking import ask, ask_reply, source_of

Scripted = Callable[..., ScriptedModel]
STREAMS = pytest.mark.parametrize(
    "stream", [pytest.param(True, id="streamed"), pytest.param(False, id="whole")]
)
SEALED = '{"id":"rs_7","type":"reasoning","summary":[],"encrypted_content":"sealed"}'


def event(text: str) -> bytes:
    return f"data: {text}\n\n".encode()


def reasoned(seen: Seen) -> list[str]:
    """Return the reasoning items in a request."""
    return [item["id"] for item in seen.raw["input"] if item.get("type") == "reasoning"]


def reply(seen: Seen) -> Step:
    """Request a call after some reasoning; reply to its result."""
    return (
        Say("Two.")
        if seen.answers
        else Ask(Wanted("count_vowels", {"text": "aha"}), thought="I count.")
    )


@STREAMS
async def test_a_reply_is_put_together_as_over_chat_completions(
    scripted: Scripted, stream: bool
) -> None:
    call = Wanted("add", {"a": 1, "b": 2}, "c1")
    server = scripted([Ask(call, text="I add.", thought="One and two.")])
    *pieces, reply = await ask(server, stream=stream, api="responses")
    assert isinstance(reply, Reply)
    assert (reply.text, reply.thought, reply.finish) == ("I add.", "One and two.", "calls")
    assert reply.calls == (Call("c1", "add", call.text),)
    assert (
        "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == "One and two."
    )
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == "I add."
    assert reply.usage.cached == reply.usage.prompt // 2 > 0


async def test_nothing_is_stored_there_and_reasoning_comes_sealed(scripted: Scripted) -> None:
    server = scripted([Say("Here.")])
    await ask(server, api="responses", max_tokens=99, temperature=0.5)
    sent = server.requests[0].raw
    assert (sent["store"], sent["include"]) == (False, ["reasoning.encrypted_content"])
    assert (sent["max_output_tokens"], sent["temperature"], sent["reasoning"]) == (
        99,
        0.5,
        {"summary": "auto"},
    )
    assert sent["tools"][0].keys() == {"type", "name", "description", "parameters", "strict"}


def test_parameters_of_chat_completions_go_where_this_api_has_them() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    asked = {"reasoning_effort": "low", "verbosity": "high", "response_format": shape}
    choice = {"tool_choice": {"type": "function", "function": {"name": "f"}}}
    tool = {
        "type": "function",
        "name": "f",
        "description": "",
        "parameters": {"type": "object"},
        "strict": False,
    }
    body = to_responses({"model": "m", "messages": [], "tools": [tool], **asked, **choice})
    assert unfit(body, "/v1/responses") is None
    assert (body["reasoning"]["effort"], body["text"]["verbosity"]) == ("low", "high")
    assert body["text"]["format"] == {
        "type": "json_schema",
        "name": "n",
        "schema": {"type": "object"},
    }
    assert body["tool_choice"] == {"type": "function", "name": "f"}


async def test_what_was_reasoned_goes_back_within_the_turn_as_it_came(scripted: Scripted) -> None:
    server = scripted([Say("Here.")])
    call, source = Call("c1", "add", "{}"), source_of(server, api="responses")
    before: list[Message] = [
        User("First."),
        Assistant("", (call,), reasoning=(SEALED.replace("rs_7", "rs_1"),), source=source),
        Answer("c1", "add", "1"),
    ]
    now: list[Message] = [
        Assistant("", (Call("c2", "add", "{}"),), reasoning=(SEALED,), source=source),
        Answer("c2", "add", "2"),
        Notice("News."),
    ]
    await ask(
        server,
        System("Be brief."),
        *before,
        Assistant("Done."),
        User("Second."),
        *now,
        api="responses",
    )
    kinds = [
        item.get("id") or item.get("type") or item["role"]
        for item in server.requests[0].raw["input"]
    ]
    first = ["system", "user", "function_call", "function_call_output", "assistant"]
    assert kinds == [*first, "user", "rs_7", "function_call", "function_call_output", "user"]


def stream(*rows: dict[str, Any]) -> Raw:
    return Raw(b"".join(event(json.dumps(row)) for row in rows))


FUNCTION = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "add",
    "arguments": '{"a": 1}',
}
MESSAGE = {"type": "message", "id": "m_1", "content": [{"type": "output_text", "text": "I add."}]}
DONE = {"type": "response.completed", "response": {"status": "completed", "output": []}}


async def test_what_one_event_leaves_out_another_brings(scripted: Scripted) -> None:
    item = {**FUNCTION, "arguments": ""}
    begun: dict[str, Any] = {"type": "response.output_item.added", "output_index": 0, "item": item}
    nameless: dict[str, Any] = {**begun, "item": {"type": "function_call", "id": "fc_1"}}
    deltas: list[dict[str, Any]] = [
        {
            "type": "response.function_call_arguments.delta",
            "output_index": 0,
            "item_id": "fc_1",
            "delta": piece,
        }
        for piece in ('{"a"', ": 1}")
    ]
    done: dict[str, Any] = {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": FUNCTION,
    }
    arguments = {
        "type": "response.function_call_arguments.done",
        "item_id": "fc_1",
        "arguments": '{"a": 1}',
    }
    text = {
        "type": "response.output_text.delta",
        "output_index": 0,
        "item_id": "m_1",
        "delta": "I add.",
    }
    whole = {"status": "completed", "output": [MESSAGE, FUNCTION]}
    rows: dict[str, tuple[Raw, str]] = {
        "only the last event": (
            stream({"type": "response.completed", "response": whole}),
            "I add.",
        ),
        "the last event of lighter servers": (
            stream({"type": "response.done", "response": whole}),
            "I add.",
        ),
        "a name in the done item": (stream(nameless, *deltas, done, DONE), ""),
        "arguments in their done event": (stream(begun, arguments, DONE), ""),
        "all of it more than once": (
            stream(text, begun, *deltas, arguments, done, {**DONE, "response": whole}),
            "I add.",
        ),
        "no index": (
            stream(*({**row, "output_index": None} for row in (begun, *deltas, done)), DONE),
            "",
        ),
    }
    for case, (raw, said) in rows.items():
        *pieces, reply = await ask(scripted([raw]), api="responses")
        assert isinstance(reply, Reply), case
        assert (reply.text, [(call.id, call.name, call.arguments) for call in reply.calls]) == (
            said,
            [("c1", "add", '{"a": 1}')],
        ), case
        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == said, case


async def test_a_response_that_ends_otherwise_is_told(scripted: Scripted) -> None:
    text = {"type": "response.output_text.delta", "output_index": 0, "delta": "half"}
    for kind, response in [
        ("incomplete", {"status": "incomplete"}),
        ("done", {"status": "cancelled"}),
    ]:
        server = scripted([stream(text, {"type": f"response.{kind}", "response": response})])
        reply = await ask_reply(server, api="responses")
        assert (reply.text, reply.finish) == ("half", "broken"), kind
        assert response["status"] in reply.note, kind


async def test_a_model_without_reasoning_is_asked_without_it(scripted: Scripted) -> None:
    rows: list[tuple[str, str, str]] = [
        ("reasoning", "Unsupported parameter: 'reasoning.summary' is not supported.", "reasoning"),
        ("include", "Encrypted content is not supported with this model: 'include'.", "include"),
    ]
    for case, refusal, left_out in rows:
        server = scripted([Fail(400, refusal), Say("Here.")])
        assert (await ask_reply(server, api="responses")).text == "Here.", case
        assert left_out not in server.requests[1].raw, case


def test_auto_is_responses_where_that_is_at_home() -> None:
    rows: list[tuple[str, str, str]] = [
        ("openai", "https://api.openai.com/v1", "responses"),
        ("azure-newer", "https://mine.openai.azure.com/openai/v1", "responses"),
        ("azure", "https://mine.openai.azure.com", "chat"),
        ("another", "https://openrouter.ai/api/v1", "chat"),
    ]
    for case, url, api in rows:
        assert dialect_of(url).api == api, case
        assert Endpoint(url, "m", settings=ModelSettings(api="chat")).dialect.api == "chat", case


async def test_what_breaks_ends_in_a_sentence(scripted: Scripted) -> None:
    rows: list[tuple[str, Step, str]] = [
        (
            "error",
            Raw(event('{"type": "error", "message": "it broke", "code": "server_error"}')),
            "it broke",
        ),
        (
            "failed",
            Raw(
                event(
                    '{"type": "response.failed", "response": {"error": {"message": "it failed", "code": "x"}}}'
                )
            ),
            "it failed",
        ),
        ("no-text", Raw(event('{"type": "response.output_text.delta", "delta": 5}')), "broke off"),
        (
            "no-such-api",
            Fail(404, "No such path"),
            "Set `model.api` to chat|set `model.api` to chat",
        ),
    ]
    for case, step, says in rows:
        server = scripted([step])
        with pytest.raises(ModelError, match=says) as caught:
            await ask(server, api="responses", retries=0, timeout_s=0.3)
        assert server.base_url in str(caught.value), case


@STREAMS
async def test_an_incomplete_reply_is_told(scripted: Scripted, stream: bool) -> None:
    for finish, expected in (("length", "length"), ("content_filter", "filter"), ("stop", "stop")):
        told = await ask_reply(
            scripted([Say("half", finish=finish)]), stream=stream, api="responses"
        )
        assert told.finish == expected, finish


@STREAMS
async def test_constrained_steps_are_held_by_the_format_of_a_text(
    at_desk: OpenDesk, stream: bool
) -> None:
    made = Say(
        '{"thought": "I count.", "call": {"name": "count_vowels", "arguments": {"text": "aha"}}}'
    )
    done = Say('{"thought": "It is two.", "reply": "Two."}')
    desk = await at_desk(
        [made, done], model__mode="constrained", model__api="responses", model__stream=stream
    )
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    assert ended(await desk.say("Use count_vowels on aha.")).reply == "Two."
    form = desk.model.requests[0].raw["text"]["format"]
    assert (form["type"], form["strict"], form["schema"]["anyOf"][0]["required"]) == (
        "json_schema",
        True,
        ["thought", "call"],
    )


async def test_a_history_goes_on_over_the_other_api(tmp_path: Path, one_sandbox: Sandbox) -> None:
    for api in ("responses", "chat", "responses"):
        with scripted_model([Repeat(reply)]) as model:
            async with open_desk(tmp_path, model, one_sandbox, model__api=api) as desk:
                desk.put("letters.py", VOWELS)
                await desk.workspace.functions.reload()
                for _ in range(2):
                    assert ended(await desk.say("Count.")).reply == "Two."
                assert bool(model.requests[-1].raw) == (api == "responses")


async def test_reasoning_is_in_the_journal_and_leaves_it_with_what_is_forgotten(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    with scripted_model([Repeat(reply)]) as model:
        async with open_desk(tmp_path, model, one_sandbox, model__api="responses") as desk:
            desk.put("letters.py", VOWELS)
            await desk.workspace.functions.reload()
            await desk.say("Count mulberry.")
            assert [reasoned(seen) for seen in model.requests] == [[], ["rs_1"]]
            assert [json.loads(each) for each in await kept(desk)] == [reasoning(1, "I count.")]
        run(tmp_path, "memory", "forget", "mulberry", "-y")
        async with open_desk(tmp_path, model, one_sandbox) as desk:
            assert await kept(desk) == []


async def kept(desk: Desk) -> list[str]:
    """Return the reasoning in the agent's journal."""
    history = await desk.agent.history()
    return [item for each in history if isinstance(each, Assistant) for item in each.reasoning]


async def test_reasoning_that_another_model_sealed_is_left_out_when_it_is_refused(
    scripted: Scripted,
) -> None:
    refused = Fail(
        400, "The encrypted content could not be verified.", code="invalid_encrypted_content"
    )
    server = scripted([refused, Say("Here.")])
    source = source_of(server, api="responses")
    turn: list[Message] = [
        User("Go."),
        Assistant("", (Call("c1", "add", "{}"),), reasoning=(SEALED,), source=source),
        Answer("c1", "add", "1"),
    ]
    assert (await ask_reply(server, *turn, api="responses")).text == "Here."
    assert [reasoned(seen) for seen in server.requests] == [["rs_7"], []]

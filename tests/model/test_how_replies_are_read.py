"""Every response format of an endpoint becomes one clear reply."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_core.base.messages import Answer, Assistant, Call, User
from agent_core.model import Reply, TextPiece, ThoughtPiece
from tests.kit import Ask, Raw, Say, ScriptedModel, Wanted
from tests.model.asking import ask, ask_reply, chunks

Scripted = Callable[..., ScriptedModel]
STREAMS = pytest.mark.parametrize("stream", [pytest.param(True, id="streamed"), pytest.param(False, id="whole")])


def call(index: int | None, **function: str) -> dict[str, Any]:
    found: dict[str, Any] = {"function": function}
    if "id" in function:
        found["id"] = function.pop("id")
    return {"tool_calls": [found if index is None else {"index": index, **found}]}


@STREAMS
async def test_text_and_thought_arrive_whole_and_in_order(scripted: Scripted, stream: bool) -> None:
    server = scripted([Say("The answer is forty-two.", thought="They ask for the answer.", usage=(90, 7))])
    *pieces, reply = await ask(server, stream=stream)
    assert isinstance(reply, Reply)
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == reply.text
    assert "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == reply.thought
    assert (reply.text, reply.finish) == ("The answer is forty-two.", "stop")
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.estimated) == (90, 7, False)


async def test_calls_are_put_together_from_any_shape(scripted: Scripted) -> None:
    rows: list[tuple[str, list[dict[str, Any]], list[tuple[str, str]]]] = [
        (
            "gaps-between-indices",
            [
                call(0, id="a", name="add", arguments='{"a"'),
                call(3, id="b", name="add", arguments="{}"),
                call(0, arguments=": 1}"),
            ],
            [("add", '{"a": 1}'), ("add", "{}")],
        ),
        (
            "every-call-has-index-0",
            [call(0, id="a", name="add", arguments="{}"), call(0, id="b", name="sub", arguments="{}")],
            [("add", "{}"), ("sub", "{}")],
        ),
        (
            "no-index-and-no-id",
            [call(None, name="add", arguments='{"a":'), call(None, arguments=" 1}"), call(None, name="sub")],
            [("add", '{"a": 1}'), ("sub", "")],
        ),
        (
            "name-and-id-in-every-chunk",
            [call(0, id="a", name="add", arguments="{"), call(0, id="a", name="add", arguments="}")],
            [("add", "{}")],
        ),
        (
            "arguments-are-an-object",
            [{"tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]}],
            [("add", '{"a": 1}')],
        ),
        ("name-with-a-namespace", [call(0, name="functions.add", arguments="{}")], [("add", "{}")]),
        ("unknown-name-as-it-came", [call(0, name="no such!", arguments="{}")], [("no such!", "{}")]),
    ]
    for case, deltas, expected in rows:
        reply = await ask_reply(scripted([chunks(*deltas)]))
        assert [(found.name, found.arguments) for found in reply.calls] == expected, case
        assert reply.finish == "calls", case
        assert len({found.id for found in reply.calls} - {""}) == len(expected), case


async def test_equal_ids_in_one_reply_or_one_conversation_are_made_different(scripted: Scripted) -> None:
    earlier = Assistant("", (Call("c0", "add", "{}"),)), Answer("c0", "add", "1")
    server = scripted([Ask(Wanted("add", id="c0"), Wanted("add", id="c1"), Wanted("add", id="c1"))])
    reply = await ask_reply(server, User("x"), *earlier)
    ids = [found.id for found in reply.calls]
    assert ids[1] == "c1"
    assert len({*ids, "c0"}) == 4


async def test_every_way_a_reply_ends_has_its_finish(scripted: Scripted) -> None:
    rows: list[tuple[str, Say | Raw, str, str]] = [
        ("empty", Say(""), "stop", ""),
        ("refusal-field", chunks({"refusal": "I will not."}), "refusal", "I will not."),
        ("no-finish-but-an-end", chunks({"content": "x"}, finish=None), "stop", "x"),
        ("no-end-but-a-finish", chunks({"content": "x"}, end=b""), "stop", "x"),
        ("content-in-parts", chunks({"content": [{"type": "text", "text": "x"}]}), "stop", "x"),
        ("null", Raw(b': x\r\ndata: {"choices": [{"delta": null}]}\r\n\r\ndata: [DONE]'), "stop", ""),
    ]
    for case, step, finish, text in rows:
        reply = await ask_reply(scripted([step]))
        assert (reply.finish, reply.text, reply.calls) == (finish, text, ()), case


BARE = '{"name": "add", "arguments": {"a": 1}}'


async def test_thought_left_in_the_text_is_told_from_it(scripted: Scripted) -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("thought-then-text", "<think>Hm, so.</think>\n\nForty-two.", "Hm, so.", "Forty-two."),
        ("never-closed", "<think>never ends", "never ends", ""),
        ("only-begins-like-it", "<thin ice>", "", "<thin ice>"),
        ("not-at-the-start", "A <think> b", "", "A <think> b"),
    ]
    for size in [1, 100]:
        for case, said, thought, text in rows:
            deltas = [{"content": said[start : start + size]} for start in range(0, len(said), size)]
            *pieces, reply = await ask(scripted([chunks(*deltas)]))
            assert isinstance(reply, Reply), case
            assert (reply.thought, reply.text) == (thought, text), case
            assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == text, case


async def test_a_call_written_after_thought_is_a_call(scripted: Scripted) -> None:
    reply = await ask_reply(scripted([Say(f"<think>I should add.</think>{BARE}")]))
    assert [found.name for found in reply.calls] == ["add"]


async def test_a_server_that_does_not_stream_is_understood(scripted: Scripted) -> None:
    body = b'{"choices": [{"message": {"content": "All at once."}, "finish_reason": "stop"}]}'
    reply = await ask_reply(scripted([Raw(body, "application/json; charset=utf-8")]))
    assert reply.text == "All at once."


async def test_usage_is_estimated_where_the_server_reports_none(scripted: Scripted) -> None:
    reply = await ask_reply(scripted([chunks({"content": "Hello there."})]), User("x" * 4000))
    assert reply.usage.estimated
    assert 1200 <= reply.usage.prompt <= 1400

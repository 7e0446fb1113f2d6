"""Every response format of an endpoint becomes one clear reply."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_core.base.messages import Answer, Assistant, Call, User
from agent_core.model import Reply, TextPiece, ThoughtPiece
from tests.kit import Ask, Raw, Say, ScriptedModel, Wanted
from tests.model.asking import ask, ask_reply, chunks

Scripted = Callable[..., ScriptedModel]
STREAMS = pytest.mark.parametrize(
    "stream", [pytest.param(True, id="streamed"), pytest.param(False, id="whole")]
)


def call(index: int | None, **function: str) -> dict[str, Any]:
    found: dict[str, Any] = {"function": function}
    if "id" in function:
        found["id"] = function.pop("id")
    return {"tool_calls": [found if index is None else {"index": index, **found}]}


@STREAMS
async def test_text_and_thought_arrive_whole_and_in_order(scripted: Scripted, stream: bool) -> None:
    server = scripted(
        [Say("The answer is forty-two.", thought="They ask for the answer.", usage=(90, 7))]
    )
    *pieces, reply = await ask(server, stream=stream)
    assert isinstance(reply, Reply)
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == reply.text
    assert (
        "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == reply.thought
    )
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
            [
                call(0, id="a", name="add", arguments="{}"),
                call(0, id="b", name="sub", arguments="{}"),
            ],
            [("add", "{}"), ("sub", "{}")],
        ),
        (
            "no-index-and-no-id",
            [
                call(None, name="add", arguments='{"a":'),
                call(None, arguments=" 1}"),
                call(None, name="sub"),
            ],
            [("add", '{"a": 1}'), ("sub", "")],
        ),
        (
            "name-and-id-in-every-chunk",
            [
                call(0, id="a", name="add", arguments="{"),
                call(0, id="a", name="add", arguments="}"),
            ],
            [("add", "{}")],
        ),
        (
            "arguments-are-an-object",
            [{"tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]}],
            [("add", '{"a": 1}')],
        ),
        (
            "index-0-and-no-ids",
            [
                call(0, name="add", arguments='{"a": 1}'),
                call(0, name="sub", arguments='{"b"'),
                call(0, arguments=":2}"),
            ],
            [("add", '{"a": 1}'), ("sub", '{"b":2}')],
        ),
        (
            "same-function-twice-without-ids",
            [call(0, name="add", arguments='{"a": 1}'), call(0, name="add", arguments='{"a": 2}')],
            [("add", '{"a": 1}'), ("add", '{"a": 2}')],
        ),
        (
            "same-function-twice-in-pieces-without-ids",
            [
                call(0, **each)
                for each in ({"name": "add"}, {"arguments": '{"a"'}, {"arguments": ":1}"}) * 2
            ],
            [("add", '{"a":1}'), ("add", '{"a":1}')],
        ),
        (
            "one-id-twice",
            [
                call(0, id="a", name="add", arguments='{"a":1}'),
                call(1, id="a", name="add", arguments='{"a":2}'),
            ],
            [("add", '{"a":1}'), ("add", '{"a":2}')],
        ),
        (
            "no-index-and-the-name-in-each-piece",
            [
                call(None, id="a", name="add", arguments='{"a":'),
                call(None, id="a", name="add", arguments="1}"),
            ],
            [("add", '{"a":1}')],
        ),
        (
            "a-new-id-in-each-piece",
            [
                call(0, id="a", name="add"),
                call(0, id="b", arguments='{"a":'),
                call(0, id="c", arguments="1}"),
            ],
            [("add", '{"a":1}')],
        ),
        (
            "a-new-id-and-the-name-in-each-piece",
            [
                call(0, id="a", name="add", arguments='{"a":'),
                call(0, id="b", name="add", arguments="1}"),
            ],
            [("add", '{"a":1}')],
        ),
        (
            "pieces-at-another-index",
            [call(0, id="a", name="add", arguments='{"a":'), call(1, arguments="1}")],
            [("add", '{"a":1}')],
        ),
        (
            "pieces-without-an-index",
            [call(0, id="a", name="add", arguments='{"a":'), call(None, arguments="1}")],
            [("add", '{"a":1}')],
        ),
        (
            "an-empty-object-first",
            [
                call(0, id="a", name="add", arguments="{}"),
                call(0, arguments='{"a"'),
                call(0, arguments=":1}"),
            ],
            [("add", '{"a":1}')],
        ),
        (
            "arguments-that-grow",
            [
                call(0, id="a", name="add", arguments='{"a"'),
                call(0, arguments='{"a":1'),
                call(0, arguments='{"a":1}'),
            ],
            [("add", '{"a":1}')],
        ),
        (
            "arguments-again-at-the-end",
            [
                call(0, id="a", name="add", arguments='{"a":'),
                call(0, arguments="1}"),
                call(0, id="a", name="add", arguments='{"a": 1}'),
            ],
            [("add", '{"a": 1}')],
        ),
        (
            "a-name-in-two-pieces",
            [call(0, id="a", name="a"), call(0, name="dd"), call(0, arguments="{}")],
            [("add", "{}")],
        ),
        (
            "two-calls-side-by-side",
            [
                call(0, id="a", name="add", arguments='{"a"'),
                call(1, id="b", name="sub", arguments='{"b"'),
                call(0, arguments=":1}"),
                call(1, arguments=":2}"),
            ],
            [("add", '{"a":1}'), ("sub", '{"b":2}')],
        ),
        ("name-with-a-namespace", [call(0, name="functions.add", arguments="{}")], [("add", "{}")]),
        (
            "unknown-name-as-it-came",
            [call(0, name="no such!", arguments="{}")],
            [("no such!", "{}")],
        ),
    ]
    for case, deltas, expected in rows:
        reply = await ask_reply(scripted([chunks(*deltas)]))
        assert [(found.name, found.arguments) for found in reply.calls] == expected, case
        assert reply.finish == "calls", case
        assert len({found.id for found in reply.calls} - {""}) == len(expected), case


async def test_equal_ids_in_one_reply_or_one_conversation_are_made_different(
    scripted: Scripted,
) -> None:
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
        (
            "null",
            Raw(b': x\r\ndata: {"choices": [{"delta": null}]}\r\n\r\ndata: [DONE]'),
            "stop",
            "",
        ),
    ]
    for case, step, finish, text in rows:
        reply = await ask_reply(scripted([step]))
        assert (reply.finish, reply.text, reply.calls) == (finish, text, ()), case


async def test_an_end_that_is_not_known_as_good_is_told_with_what_there_is(
    scripted: Scripted,
) -> None:
    for end in [
        "error",
        "insufficient_system_resource",
        "network_error",
        "abort",
        "OTHER",
        "timeout",
        "pause_turn",
    ]:
        reply = await ask_reply(scripted([chunks({"content": "First I look"}, finish=end)]))
        assert (reply.text, reply.finish) == ("First I look", "broken"), end
        assert f"`{end}`" in reply.note, end
    for end, finish in [
        ("model_context_window_exceeded", "length"),
        ("MAX_TOKENS", "length"),
        ("sensitive", "filter"),
    ]:
        assert (
            await ask_reply(scripted([chunks({"content": "x"}, finish=end)]))
        ).finish == finish, end
    for end in ["stop", "STOP", "end_turn", "eos", "COMPLETE", "tool_calls"]:
        assert (await ask_reply(scripted([chunks({"content": "x"}, finish=end)]))).note == "", end


async def test_of_calls_that_an_end_broke_off_only_whole_ones_are_made(scripted: Scripted) -> None:
    calls = [
        call(0, id="a", name="add", arguments='{"a": 1}'),
        call(1, id="b", name="add", arguments='{"a": '),
    ]
    reply = await ask_reply(scripted([chunks(*calls, finish="error")]))
    assert [found.arguments for found in reply.calls] == ['{"a": 1}']
    assert reply.cut == ("the argument `a` of a call of `add`",)


@pytest.mark.parametrize(
    "event",
    [
        "data:",
        "data: ",
        "retry: 3000",
        "event: ping",
        "id: 7\n: alive",
        "data: : keepalive",
        "data: ping",
        "data: null",
    ],
)
async def test_an_event_without_json_is_passed_over(scripted: Scripted, event: str) -> None:
    raw = chunks({"content": "Here."}).body
    assert (await ask_reply(scripted([Raw(event.encode() + b"\n\n" + raw)]))).text == "Here."


async def test_halves_of_a_character_are_joined_wherever_they_come(scripted: Scripted) -> None:
    first, second = "\ud83c", "\udf89"
    deltas = [
        {"content": f"a{first}"},
        {"content": second},
        {"reasoning_content": first},
        {"reasoning_content": second},
    ]
    deltas += [
        call(0, id="a", name="add", arguments=f'{{"a": "{first}'),
        call(0, arguments=f'{second}"}}'),
    ]
    *pieces, reply = await ask(scripted([chunks(*deltas)]))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.thought, reply.calls[0].arguments) == ("a🎉", "🎉", '{"a": "🎉"}')
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == "a🎉"
    assert reply.reasoning == ('{"reasoning_content":"🎉"}',)


async def test_what_stands_in_a_second_choice_counts(scripted: Scripted) -> None:
    called = {"role": "assistant", "content": None, **call(0, id="a", name="add", arguments="{}")}
    rows: list[list[dict[str, Any]]] = [
        [{"message": {"content": "I add."}}, {"message": called}],
        [{"message": called}, {"message": {"content": "I add."}}],
        [
            {"message": {"content": "I add.", **call(0, id="b", name="add", arguments='{"a":1}')}},
            {"message": called},
        ],
        [
            {"message": {"content": "I add."}},
            {"message": {"content": "Or so."}},
            {"message": called},
        ],
        [{"index": 1, "message": called}, {"index": 0, "message": {"content": "I add."}}],
    ]
    for choices in rows:
        body = json.dumps(
            {"choices": [{**choice, "finish_reason": "tool_calls"} for choice in choices]}
        )
        reply = await ask_reply(scripted([Raw(body.encode(), "application/json")]))
        assert (reply.text, {found.name for found in reply.calls}) == ("I add.", {"add"}), choices


BARE = '{"name": "add", "arguments": {"a": 1}}'


async def test_thought_left_in_the_text_is_told_from_it(scripted: Scripted) -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("thought-then-text", "<think>Hm, so.</think>\n\nForty-two.", "Hm, so.", "Forty-two."),
        ("never-closed", "<think>never ends", "never ends", ""),
        ("only-begins-like-it", "<thin ice>", "", "<thin ice>"),
        ("not-at-the-start", "A <think> b", "", "A <think> b"),
        ("thinking", "<thinking>Hm.</thinking>\n\nForty-two.", "Hm.", "Forty-two."),
        ("square", "[THINK]Hm.[/THINK]Forty-two.", "Hm.", "Forty-two."),
        ("with-a-namespace", "<seed:think>Hm.</seed:think>Forty-two.", "Hm.", "Forty-two."),
        ("kimi-vl", "◁think▷Hm.◁/think▷Forty-two.", "Hm.", "Forty-two."),
        ("gemma-4", "<|channel>thought\nHm.<channel|>Forty-two.", "\nHm.", "Forty-two."),
        (
            "gpt-oss",
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Forty-two.<|return|>",
            "Hm.",
            "Forty-two.",
        ),
        ("a-second-one", "<think>Hm.</think>Forty<think>-</think>-two.", "Hm.-", "Forty-two."),
        ("the-end-of-a-turn", "Forty-two.<|im_end|>\n", "", "Forty-two."),
        ("in-backticks", "Use `<think>` and `</think>`.", "", "Use `<think>` and `</think>`."),
        ("in-a-fence", "```\n<think>x</think>\n```", "", "```\n<think>x</think>\n```"),
        ("in-json", '{"a": "<think>x</think>"}', "", '{"a": "<think>x</think>"}'),
    ]
    for size in [1, 100]:
        for case, said, thought, text in rows:
            deltas = [
                {"content": said[start : start + size]} for start in range(0, len(said), size)
            ]
            *pieces, reply = await ask(scripted([chunks(*deltas)]))
            assert isinstance(reply, Reply), case
            assert (reply.thought, reply.text) == (thought, text), case
            assert (
                "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == text
            ), case


async def test_a_thought_whose_first_mark_stands_in_the_template_is_no_answer(
    scripted: Scripted,
) -> None:
    said = "They want it.\n</think>\n\nForty-two."
    for size in [1, 100]:
        deltas = [{"content": said[start : start + size]} for start in range(0, len(said), size)]
        reply = await ask_reply(scripted([chunks(*deltas)]))
        assert (reply.thought, reply.text) == ("They want it.\n", "Forty-two."), size


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

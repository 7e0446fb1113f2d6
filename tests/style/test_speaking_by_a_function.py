"""In the MemGPT style the user sees the argument of send_message; other text is private and is never lost."""

from typing import Any

import pytest

from agent_core.base.events import CallAnswered, Text, Thought, Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Fail, Say, Script, Wanted, contains
from tests.kit.desk import ended, of
from tests.kit.sources import function_text
from tests.style.support import memgpt, send, types


async def test_a_message_is_shown_and_is_the_reply_while_the_text_is_inner(
    at_desk: OpenDesk,
) -> None:
    desk = await memgpt(at_desk, [send("Hello, Ada.", thought="She is back.")])
    events = await desk.say("Hi.")
    assert [each.text for each in of(Text, events)] == ["Hello, Ada."]
    assert [each.text for each in of(Thought, events)] == ["She is back."]
    assert (ended(events).reason, ended(events).reply, ended(events).steps) == (
        "replied",
        "Hello, Ada.",
        1,
    )


async def test_text_without_a_message_is_the_message_after_one_word_to_the_model(
    at_desk: OpenDesk,
) -> None:
    nine, question = Say("Nine lives."), "How many lives has a cat?"
    again = Expect(
        Say("Cats have nine lives."),
        contains("inner monologue. Say it to the user with send_message"),
    )
    lists = Ask(Wanted("list_functions", {"request_heartbeat": False}))
    desk = await memgpt(
        at_desk, [nine, again, nine, send("Nine!"), nine, lists, nine, Say(""), Say("")]
    )
    events = await desk.say(question)
    assert (
        [each.text for each in of(Text, events)]
        == ["Cats have nine lives."]
        == [ended(events).reply]
    )
    assert [each.text for each in of(Text, await desk.say(question))] == ["Nine!"], (
        "the model fixed its text"
    )
    assert ended(await desk.say(question)).reply == "Nine lives.", (
        "the model then only called something"
    )
    assert ended(await desk.say(question)).reply == "Nine lives.", "the model then said nothing"


@pytest.mark.parametrize(
    ("then", "flags", "reason"),
    [
        pytest.param(Fail(401, "bad key"), {}, "failed", id="the-endpoint-fails"),
        pytest.param(None, {"turn__max_steps": 1}, "steps", id="the-steps-are-used-up"),
    ],
)
async def test_text_is_not_lost_where_the_turn_is_ended_from_outside(
    at_desk: OpenDesk, then: Fail | None, flags: dict[str, Any], reason: str
) -> None:
    desk = await memgpt(at_desk, [Say("Nine lives."), *([then] if then else [])], **flags)
    events = await desk.say("How many lives has a cat?")
    assert ended(events).reason == reason
    assert [each.text for each in of(Text, events)] == ["Nine lives."]


async def test_a_turn_that_ends_in_silence_is_said_to_the_human(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Ask(Wanted("list_functions", {"request_heartbeat": False}))])
    events = await desk.say("Hi.")
    assert ended(events).reason == "replied"
    assert "without a message" in of(Warned, events)[0].message


async def test_a_call_that_asks_for_a_heartbeat_gives_another_step(at_desk: OpenDesk) -> None:
    asking: list[tuple[object, int]] = [
        (True, 2),
        ("true", 2),
        ("Yes", 2),
        (False, 1),
        ("soon", 1),
        (None, 1),
    ]
    script = [
        step
        for asked, steps in asking
        for step in [send("One.", heartbeat=asked), send("Two.")][:steps]
    ]
    desk = await memgpt(at_desk, script)
    for asked, steps in asking:
        first = len(desk.model.requests)
        assert ended(await desk.say("Go.")).steps == steps, asked
        before, after = (types(desk.model, request).count("heartbeat") for request in (first, -1))
        assert after - before == steps - 1, asked


async def test_every_function_shown_asks_for_a_heartbeat_and_none_does_in_direct(
    at_desk: OpenDesk,
) -> None:
    desk = await memgpt(at_desk, [send("Yes.")])
    await desk.say("Are you there?")
    shown = [each["function"] for each in desk.model.requests[0].body["tools"]]
    assert {"send_message", "call_function"} < {each["name"] for each in shown}
    assert {"pause_heartbeats", "message_llm"} < {*desk.model.requests[0].functions}
    assert all(
        each["parameters"]["properties"]["request_heartbeat"]["type"] == "boolean" for each in shown
    )
    assert all("request_heartbeat" in each["parameters"]["required"] for each in shown)


async def test_in_the_direct_style_nothing_of_it_is_shown_or_packed(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Yes.")])
    assert ended(await desk.say("Are you there?")).reply == "Yes."
    body = str(desk.model.requests[0].body)
    assert not any(
        word in body for word in ("request_heartbeat", "send_message", "user_message", "login")
    )


async def test_a_functions_own_parameter_of_that_name_is_passed_on_to_it(at_desk: OpenDesk) -> None:
    wrapped = {"name": "beats", "request_heartbeat": True}
    given: list[object] = [{"request_heartbeat": 3}, '{"request_heartbeat": 3}']
    calls = [Ask(Wanted("call_function", {**wrapped, "arguments": each})) for each in given]
    desk = await memgpt(at_desk, [Ask(Wanted("beats", {"request_heartbeat": 3})), *calls])
    desk.put("beats.py", BEATS)
    await desk.workspace.functions.reload()
    for _ in range(3):
        events = await desk.say("Beat.")
        assert [(event.name, event.text) for event in of(CallAnswered, events)] == [("beats", "6")]
        assert ended(events).steps == 1
    assert desk.model.requests[0].functions.count("beats") == 1
    assert "beats(request_heartbeat: int) -> int" in desk.model.requests[0].text


BEATS = function_text(
    "beats(request_heartbeat: int) -> int",
    "Double a number of beats.\n\nArgs:\n    request_heartbeat: How many.",
    "return request_heartbeat * 2",
    "beats(2) → 4",
    "beats(3) → 6",
)


async def test_who_speaks_while_a_candidate_stands_refused_gets_one_more_step(
    at_desk: OpenDesk,
) -> None:
    create = {
        "function_name": "hollow",
        "function_code_with_docstring": "def hollow(x: int) -> int:\n    pass\n",
    }
    asks = Ask(Wanted("create_function", {**create, "request_heartbeat": False}))
    script: Script = [
        asks,
        send("It is made."),
        Expect(send("It is not made."), contains("was rejected")),
    ]
    desk = await memgpt(at_desk, script)
    assert ended(await desk.say("Make it.")).reply == "It is made.\n\nIt is not made."


async def test_a_message_that_comes_meanwhile_gives_another_step(at_desk: OpenDesk) -> None:
    desk = await memgpt(
        at_desk, [send("One.", thought="1"), Expect(send("Two."), contains("And then?"))]
    )
    events = []
    async for event in desk.agent.turn("Count."):
        events.append(event)
        if isinstance(event, Thought) and event.text == "1":
            await desk.agent.say_during_turn("And then?")
    assert ended(events).reply == "One.\n\nTwo."


LISTS = '{"thought":"I look.","call":{"name":"list_functions","arguments":{}}}'
REPLY = '{"thought":"Nothing there.","reply":"I have none."}'


async def test_its_reply_is_the_message_and_a_call_gives_another_step(at_desk: OpenDesk) -> None:
    script: Script = [Say(LISTS), Expect(Say(REPLY), contains("There are no such functions"))]
    desk = await memgpt(at_desk, script, verify=True, model__mode="constrained")
    events = await desk.say("What can you do?")
    assert [each.text for each in of(Text, events)] == ["I have none."]
    assert (ended(events).reply, ended(events).steps) == ("I have none.", 2)
    assert "I look." in [each.text for each in of(Thought, events)]


async def test_a_model_that_turns_out_to_be_small_is_heard_in_its_first_turn(
    at_desk: OpenDesk,
) -> None:
    desk = await memgpt(at_desk, [Say(REPLY)], verify=True, model__context_tokens=2048)
    events = await desk.say("What can you do?")
    assert "written under a schema" in of(Warned, events)[0].message
    assert [each.text for each in of(Text, events)] == ["I have none."]


async def test_it_reads_plain_words_and_is_told_of_the_persona_it_has(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Say(REPLY)], model__mode="constrained")
    await desk.say("What can you do?")
    seen = desk.model.requests[0].messages
    assert "Speak in the voice of your persona" in seen[0]["content"]
    assert seen[-1]["content"].endswith("What can you do?")
    assert "request_heartbeat" not in str(seen)


async def test_a_failed_call_gives_another_step_with_the_heartbeat_told(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Ask(Wanted("no_such_function", {})), send("It is not there.")])
    assert ended(await desk.say("Go.")).reply == "It is not there."
    assert types(desk.model) == ["login", "user_message", "heartbeat"]

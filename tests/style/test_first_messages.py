"""A new agent's first reply must have a thought and a message; it is requested again, but not forever."""

import pytest

from agent_core.base.events import Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Step, Wanted
from tests.kit.desk import ended, of
from tests.style.support import memgpt, send

LISTS = Ask(Wanted("list_functions", {"request_heartbeat": True}), text="What have I?")
GOOD = send("Hello.", thought="A new face.")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(send("Hello."), id="no-thought"),
        pytest.param(Say("Hello."), id="no-message"),
        pytest.param(LISTS, id="another-call"),
        pytest.param(Say(""), id="nothing"),
        pytest.param(send(" \u200b\n", thought="A new face."), id="empty-message"),
        pytest.param(send('send_message("Hello.")', thought="A new face."), id="call-as-message"),
        pytest.param(send('{"name": "create_function", "arguments": {}}', thought="Hm."), id="object-as-message"),
        pytest.param(send("<tool_call>", thought="A new face."), id="tag-as-message"),
        pytest.param(send("Hello.<|im_end|>", thought="A new face."), id="mark-of-a-template"),
        pytest.param(send("Hello.", thought="I set request_heartbeat to false."), id="reserved-word-in-thought"),
        pytest.param(send("Hello.", thought="conversation_search('Ada')"), id="call-in-thought"),
        pytest.param(send("Inner monologue: hello.", thought="A new face."), id="reserved-words-in-message"),
    ],
)
async def test_a_first_reply_that_lacks_something_is_asked_for_again(at_desk: OpenDesk, bad: Step) -> None:
    desk = await memgpt(at_desk, [bad, GOOD], verify=True)
    last = ended(await desk.say("Hi."))
    assert (last.reply, last.steps, len(desk.model.requests)) == ("Hello.", 1, 2)
    assert "Begin with a thought" in desk.model.requests[1].text


async def test_a_first_reply_is_asked_for_four_times_and_then_the_turn_fails_and_says_why(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Repeat(send("Hello."), 4), GOOD], verify=True)
    events = await desk.say("Hi.")
    assert (ended(events).reason, ended(events).reply) == ("failed", "")
    assert "no inner thought" in of(Warned, events)[-1].message
    assert "`verify=False`" in of(Warned, events)[-1].fix
    assert desk.model.requests[3].text.count("Begin with a thought") == 1
    assert ended(await desk.say("Hi again.")).reply == "Hello."


async def test_what_follows_a_turn_without_a_first_reply_is_verified_too(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Repeat(send("Hello."), 5), GOOD], verify=True)
    await desk.say("Hi.")
    assert ended(await desk.say("Hi again.")).reply == "Hello."
    assert len(desk.model.requests) == 6


async def test_a_thought_is_not_needed_where_the_settings_waive_it(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [send(""), send("Hello.")], verify=True, turn__first_thought=False)
    assert ended(await desk.say("Hi.")).reply == "Hello."
    assert "its message is empty" in desk.model.requests[1].text


@pytest.mark.parametrize(
    "good",
    [
        pytest.param(send("I can make functions (tools) for you.", thought="Friendly {and} brief."), id="brackets"),
        pytest.param(send("`is_prime(7)` would be True.", thought="They ask for code."), id="code"),
    ],
)
async def test_ordinary_texts_are_taken_at_once(at_desk: OpenDesk, good: Ask) -> None:
    desk = await memgpt(at_desk, [good], verify=True)
    assert ended(await desk.say("Hi.")).reason == "replied"


@pytest.mark.parametrize("nothing", ["", "  \n", "\u200b"])
async def test_an_empty_message_is_rejected_with_advice(at_desk: OpenDesk, nothing: str) -> None:
    desk = await memgpt(at_desk, [send(nothing), send("Hello.")])
    events = await desk.say("Hi.")
    assert (ended(events).reply, ended(events).steps) == ("Hello.", 2)
    assert "The message is empty" in desk.model.requests[1].answers[0]
    assert "Send the text that they are to read" in desk.model.requests[1].answers[0]


async def test_only_the_first_reply_of_an_agent_is_looked_at(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [GOOD, send("Again.")], verify=True)
    await desk.say("Hi.")
    assert ended(await desk.say("Hi.")).reply == "Again."


async def test_a_first_reply_is_taken_as_it_is_where_none_is_verified(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [send("Hello.")], verify=False)
    assert ended(await desk.say("Hi.")).reply == "Hello."

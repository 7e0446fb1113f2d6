"""A new agent's first reply must have a thought and a message; it is requested again, but not forever."""

from collections.abc import Mapping

from agent_core.base.events import Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Step, Wanted
from tests.kit.desk import ended, of
from tests.style.support import memgpt, send

LISTS = Ask(Wanted("list_functions", {"request_heartbeat": True}), text="What have I?")
GOOD = send("Hello.", thought="A new face.")


BAD: Mapping[str, Step] = {
    "no thought": send("Hello."),
    "no message": Say("Hello."),
    "another call": LISTS,
    "nothing": Say(""),
    "an empty message": send(" \u200b\n", thought="A new face."),
    "a call as the message": send('send_message("Hello.")', thought="A new face."),
    "an object as the message": send('{"name": "create_function", "arguments": {}}', thought="Hm."),
    "a tag as the message": send("<tool_call>", thought="A new face."),
    "the mark of a template": send("Hello.<|im_end|>", thought="A new face."),
    "a reserved word in the thought": send("Hello.", thought="I set request_heartbeat to false."),
    "a call in the thought": send("Hello.", thought="conversation_search('Ada')"),
    "reserved words in the message": send("Inner monologue: hello.", thought="A new face."),
}


async def test_a_first_reply_that_lacks_something_is_asked_for_again(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [step for bad in BAD.values() for step in (bad, GOOD)])
    for at, lacks in enumerate(BAD):
        agent = await desk.workspace.agent(f"agent{at}")
        last = ended([event async for event in agent.turn("Hi.")])
        assert (last.reply, last.steps, len(desk.model.requests)) == ("Hello.", 1, 2 * at + 2), lacks
        assert "Begin with a thought" in desk.model.requests[-1].text, lacks


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


async def test_ordinary_texts_are_taken_at_once_and_only_the_first_reply_is_looked_at(at_desk: OpenDesk) -> None:
    brackets = send("I can make functions (tools) for you.", thought="Friendly {and} brief.")
    code = send("`is_prime(7)` would be True.", thought="They ask for code.")
    desk = await memgpt(at_desk, [brackets, code, send("Again.")], verify=True)
    assert ended(await desk.say("Hi.")).reason == "replied"
    other = await desk.workspace.agent("other")
    assert ended([event async for event in other.turn("Hi.")]).reason == "replied"
    assert ended(await desk.say("Hi.")).reply == "Again."


async def test_an_empty_message_is_rejected_with_advice(at_desk: OpenDesk) -> None:
    empty = ("", "  \n", "\u200b")
    desk = await memgpt(at_desk, [step for nothing in empty for step in (send(nothing), send("Hello."))])
    for nothing in empty:
        last = ended(await desk.say("Hi."))
        assert (last.reply, last.steps) == ("Hello.", 2), ascii(nothing)
        assert "The message is empty" in desk.model.requests[-1].answers[-1]
        assert "Send the text that they are to read" in desk.model.requests[-1].answers[-1]

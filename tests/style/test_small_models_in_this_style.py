"""A model under a schema writes a thought and a reply at each step: the reply is the message, and calls continue."""

from agent_core.base.events import Text, Thought, Warned
from tests.conftest import OpenDesk
from tests.kit import Expect, Say, Script, contains
from tests.kit.desk import ended, of
from tests.style.support import memgpt

LISTS = '{"thought":"I look.","call":{"name":"list_functions","arguments":{}}}'
REPLY = '{"thought":"Nothing there.","reply":"I have none."}'


async def test_its_reply_is_the_message_and_a_call_gives_another_step(at_desk: OpenDesk) -> None:
    script: Script = [Say(LISTS), Expect(Say(REPLY), contains("There are no such functions"))]
    desk = await memgpt(at_desk, script, verify=True, model__mode="constrained")
    events = await desk.say("What can you do?")
    assert [each.text for each in of(Text, events)] == ["I have none."]
    assert (ended(events).reply, ended(events).steps) == ("I have none.", 2)
    assert "I look." in [each.text for each in of(Thought, events)]


async def test_a_model_that_turns_out_to_be_small_is_heard_in_its_first_turn(at_desk: OpenDesk) -> None:
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

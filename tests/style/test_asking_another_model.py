"""message_llm queries the model directly, and MemGPT's names for it are understood."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import ended
from tests.style.support import memgpt, send


async def test_the_model_is_asked_without_persona_and_functions(at_desk: OpenDesk) -> None:
    call = Ask(Wanted("message_llm", {"message": "Capital of Peru?", "request_heartbeat": True}))
    desk = await memgpt(at_desk, [call, Say("Lima."), send("It is Lima.")])
    last = ended(await desk.say("What is the capital of Peru?"))
    alone = desk.model.requests[1]
    assert (alone.functions, [each["content"] for each in alone.messages][1:]) == ([], ["Capital of Peru?"])
    assert desk.model.requests[2].answers == ["Lima."]
    assert last.reply == "It is Lima."


async def test_a_function_of_the_folder_that_has_an_old_name_is_meant_itself(at_desk: OpenDesk) -> None:
    call = Ask(Wanted("message_chatgpt", {"text": "aha"}))
    desk = await memgpt(at_desk, [call])
    desk.put("old.py", OWN)
    await desk.workspace.functions.reload()
    await desk.say("Go.")
    assert desk.agent.status().functions_known
    assert len(desk.model.requests) == 1


async def test_a_direct_agent_has_none_of_these_functions(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(Wanted("message_chatgpt", {"message": "Hi."})), Say("I cannot.")])
    await desk.say("Go.")
    assert "There is no function `message_chatgpt`" in desk.model.requests[1].answers[0]


OWN = '''\
def message_chatgpt(text: str) -> str:
    """Turn a text round.

    Args:
        text: The text.

    >>> message_chatgpt("ab")
    'ba'
    >>> message_chatgpt("cde")
    'edc'
    """
    return text[::-1]
'''

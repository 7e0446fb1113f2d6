"""A new agent's first reply must have a thought and a message; it is asked for again, but not for ever."""

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Step, Wanted
from tests.kit.desk import ended
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
    ],
)
async def test_a_first_reply_that_lacks_something_is_asked_for_again(at_desk: OpenDesk, bad: Step) -> None:
    desk = await memgpt(at_desk, [bad, GOOD], verify=True)
    last = ended(await desk.say("Hi."))
    assert (last.reply, last.steps, len(desk.model.requests)) == ("Hello.", 1, 2)
    assert "Begin with a thought" in desk.model.requests[1].text


async def test_a_first_reply_is_asked_for_four_times_at_most(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Repeat(send("Hello."), 4)], verify=True)
    assert ended(await desk.say("Hi.")).reply == "Hello."
    assert desk.model.requests[3].text.count("Begin with a thought") == 1


async def test_only_the_first_reply_of_an_agent_is_looked_at(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [GOOD, send("Again.")], verify=True)
    await desk.say("Hi.")
    assert ended(await desk.say("Hi.")).reply == "Again."


async def test_a_first_reply_is_taken_as_it_is_where_none_is_verified(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [send("Hello.")], verify=False)
    assert ended(await desk.say("Hi.")).reply == "Hello."

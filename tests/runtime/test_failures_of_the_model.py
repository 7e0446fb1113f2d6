"""An endpoint failure ends in one message for the human, and never in a lost conversation."""

import pytest

from agent_core.base.events import Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Cut, Fail, Say, Step, Wanted
from tests.kit.desk import ended, of


@pytest.mark.parametrize(
    ("step", "says"),
    [
        pytest.param(Fail(401, "bad key"), "key", id="refused-key"),
        pytest.param(Fail(404, "no such model"), "no such model", id="unknown-model"),
        pytest.param(Fail(400, "bad request"), "bad request", id="bad-request"),
    ],
)
async def test_a_failure_that_cannot_pass_ends_the_turn_with_its_reason(
    at_desk: OpenDesk, step: Step, says: str
) -> None:
    desk = await at_desk([step, Say("Back.")])
    events = await desk.say("Hello")
    assert ended(events).reason == "failed"
    assert says in " ".join(each.text for each in of(Warned, events))
    assert ended(await desk.say("Again")).reply == "Back."


async def test_a_busy_endpoint_is_asked_again_and_the_human_is_told(at_desk: OpenDesk) -> None:
    desk = await at_desk([Fail(503, "busy", {"retry-after": "0"}), Say("Here.")])
    events = await desk.say("Hello")
    assert ended(events).reply == "Here."
    assert "Trying again" in of(Warned, events)[0].message


async def test_a_reply_that_breaks_off_in_the_middle_ends_the_turn_and_keeps_the_history_valid(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Cut("Once upon"), Say("Back.")], model__stream=True)
    assert ended(await desk.say("Tell.")).reason == "failed"
    assert ended(await desk.say("Again")).reply == "Back."


async def test_a_summary_takes_the_place_of_the_oldest_turns_where_the_window_is_too_small(at_desk: OpenDesk) -> None:
    turns = 12
    desk = await at_desk(
        [Say(f"Noted {number}. " + "blah " * 1500) for number in range(turns)], model__context_tokens=12_000
    )
    for number in range(turns):
        assert ended(await desk.say(f"Fact number {number}")).reason == "replied"
    first, last = desk.model.requests[0], desk.model.requests[-1]
    assert "Fact number 0" in first.text
    assert "Noted 0. blah" not in last.text
    assert "- user: Fact number 0" in last.text
    assert f"Fact number {turns - 1}" in last.text
    assert len(last.messages) < turns


async def test_an_endpoint_that_says_the_request_is_too_long_is_asked_once_more_with_less(at_desk: OpenDesk) -> None:
    too_long = Fail(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")
    desk = await at_desk([Say("One."), too_long, Say("Two.")])
    await desk.say("First.")
    assert ended(await desk.say("Second.")).reply == "Two."


async def test_a_meta_function_that_fails_inside_is_answered_and_the_turn_goes_on(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(Wanted("introspect_function", {"function_name": "no_such"})), Say("There is none.")])
    events = await desk.say("Look.")
    assert ended(events).reply == "There is none."

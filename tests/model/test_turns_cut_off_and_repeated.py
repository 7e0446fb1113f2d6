"""Whole turns, mostly under a schema: truncation, repetition, and the content of the window."""

import json
from typing import Any

import pytest

from agent_core.base.events import CallAnswered, CallStarted, Event, Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Fail, Repeat, Say, Seen, Wanted, contains
from tests.kit.contract import said
from tests.kit.desk import VOWELS, answers, ended, of, outcomes
from tests.kit.steps import Expect

STREAMS = pytest.mark.parametrize(
    "model__stream", [pytest.param(True, id="streamed"), pytest.param(False, id="whole")]
)
HELLO = Say('{"thought": "I greet.", "reply": "Hello."}')

MANY = "\n\n".join(VOWELS.replace("count_vowels", f"count_vowels_{number}") for number in range(30))


def call(function: str, /, **arguments: str) -> Say:
    return Say(
        json.dumps({"thought": "I call.", "call": {"name": function, "arguments": arguments}})
    )


def make(code: str) -> Say:
    return call("create_function", function_code_with_docstring=code, function_name="count_vowels")


def cut(step: Say, end: str) -> Say:
    """Return the step up to and including a text in it, as the token limit truncates it."""
    return Say(step.text[: step.text.index(end) + len(end)], finish="length")


def warned(events: list[Event]) -> str:
    return "\n".join(each.text for each in of(Warned, events))


def offered(seen: Seen) -> set[str]:
    """Return the functions in the schema of a request."""
    schema = seen.body["response_format"]["json_schema"]["schema"]
    steps: list[dict[str, Any]] = schema.get("anyOf", [schema])
    calls = [each["properties"]["call"]["anyOf"] for each in steps if "call" in each["properties"]]
    return {each["properties"]["name"]["const"] for group in calls for each in group}


@STREAMS
async def test_a_call_cut_off_in_a_long_text_is_not_made_and_both_are_told(
    at_desk: OpenDesk, model__stream: bool
) -> None:
    told = contains("in the argument `function_code_with_docstring` of a call of `create_function`")
    script = [HELLO, cut(make(VOWELS), "count_vowels(text"), Expect(make(VOWELS), told), HELLO]
    desk = await at_desk(script, model__mode="constrained", model__stream=model__stream)
    await desk.say("Hi.")
    events = await desk.say("Count vowels.")
    assert "cut off at its length limit, in the argument `function_code_with_docstring`" in warned(
        events
    )
    assert [each.name for each in of(CallStarted, events)] == ["create_function"]
    assert outcomes(events) == ["returned"]
    assert ended(events).reason == "replied"


async def test_calls_that_are_cut_off_again_and_again_end_the_turn_with_what_to_do(
    at_desk: OpenDesk,
) -> None:
    script = [Repeat(cut(make(VOWELS), "How many"), times=3), HELLO]
    desk = await at_desk(script, model__mode="constrained", model__stream=True)
    events = await desk.say("Count vowels.")
    assert ended(events).reason == "failed"
    assert "cut off 3 times" in warned(events)
    assert "raise `model.max_tokens`" in warned(events)
    assert not of(CallAnswered, events)
    assert ended(await desk.say("Never mind.")).reply == "Hello."


async def test_a_reply_that_is_cut_off_goes_on_once_and_is_shown_as_cut_off(
    at_desk: OpenDesk,
) -> None:
    long = cut(Say('{"thought": "t", "reply": "One, two, three, four."}'), "two,")
    script = [long, Expect(long, contains("Your message was cut off")), HELLO]
    desk = await at_desk(script, model__mode="constrained", model__stream=True)
    events = await desk.say("Count.")
    assert ended(events).reply == "One, two, […]"
    assert warned(events).count("The reply was cut off at its length limit") == 2
    assert ended(await desk.say("Thanks.")).reply == "Hello."


async def test_an_unchanged_call_is_told_so_then_left_out_and_then_ends_the_turn(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [Repeat(call("count_vowels", text="aha"), times=5)], model__mode="constrained"
    )
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    events = await desk.say("Use count_vowels on aha.")
    first, second, third, *_ = desk.model.requests
    assert "`count_vowels` gave the same answer 2 times in a row" in third.text
    assert "in a row" not in second.text
    assert ["count_vowels" in offered(seen) for seen in (first, second, third)] == [
        True,
        True,
        False,
    ]
    assert ended(events).reason == "repeated"
    assert "`count_vowels` gave the same answer 5 times in a row" in warned(events)


async def test_an_unchanged_candidate_is_told_so_then_left_out_and_then_ends_the_turn(
    at_desk: OpenDesk,
) -> None:
    wrong = VOWELS.replace("    5\n", "    4\n")
    desk = await at_desk([Repeat(make(wrong), times=3)], model__mode="constrained")
    events = await desk.say("Count vowels.")
    first, second, third = answers(events)
    assert "do not agree" in first
    assert second.startswith(third.splitlines()[0])
    again = said("create_function: the same code again").splitlines()[0]
    assert (again in first, again in second) == (False, True)
    assert ["create_function" in offered(seen) for seen in desk.model.requests] == [
        True,
        True,
        False,
    ]
    assert ended(events).reason == "repeated"
    assert "`create_function` failed 3 times in a row" in warned(events)


async def test_an_endpoint_that_takes_no_functions_is_asked_in_constrained_mode_from_then_on(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Fail(500, "tools param requires --jinja flag"), HELLO, HELLO])
    events = await desk.say("Hi.")
    assert ended(events).reply == "Hello."
    (sentence,) = [each.text for each in of(Warned, events)]
    assert sentence.endswith(
        "So from now on, its calls are written under a schema (`model.mode` = constrained)."
    )
    assert ended(await desk.say("Hi.")).reply == "Hello."
    assert ["tools" in seen.body for seen in desk.model.requests] == [True, False, False]
    assert (
        desk.model.requests[1].messages[0]["content"]
        == desk.model.requests[2].messages[0]["content"]
    )


async def test_a_window_that_the_functions_fill_is_used_in_constrained_mode(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([HELLO], model__context_tokens=1_700)
    desk.put("many.py", MANY)
    await desk.workspace.functions.reload()
    events = await desk.say("Hi.")
    assert "The functions need about" in warned(events)
    assert "tools" not in desk.model.requests[0].body


async def test_under_a_schema_the_window_holds_what_the_functions_leave_of_it(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([HELLO, HELLO], model__mode="constrained", model__context_tokens=12_000)
    desk.put("many.py", MANY)
    await desk.workspace.functions.reload()
    await desk.say("The word is mulberry. " + "blah " * 1_300)
    await desk.say("What was the word? " + "blah " * 1_950)
    assert "mulberry" in desk.model.requests[1].text


@STREAMS
async def test_a_native_call_that_is_cut_off_is_told_beside_the_whole_ones(
    at_desk: OpenDesk, model__stream: bool
) -> None:
    both = Ask(
        Wanted("count_vowels", {"text": "aha"}),
        Wanted("count_vowels", '{"text": "oho'),
        finish="length",
    )
    told = contains("in the argument `text` of a call of `count_vowels`: that was not called")
    desk = await at_desk([both, Expect(Say("Two."), told)], model__stream=model__stream)
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    events = await desk.say("Count.")
    assert answers(events) == ["2"]
    assert "that was not called" in warned(events)
    assert ended(events).reply == "Two."


async def test_after_an_edit_of_memory_only_what_may_still_be_missing_in_it_is_offered(
    at_desk: OpenDesk,
) -> None:
    script = [
        call("core_memory_append", name="human", content="Lives in Ulm."),
        call("core_memory_replace", name="human", old_content="Ulm", new_content="Bonn"),
        HELLO,
        call("core_memory_append", name="human", content="Lives in Bonn."),
        HELLO,
    ]
    desk = await at_desk(script, model__mode="constrained", model__stream=False)
    assert ended(await desk.say("I live in Bonn, no longer in Ulm.")).reply == "Hello."
    assert ended(await desk.say("In Bonn, really.")).reply == "Hello."
    _, added, replaced, _, held_already = desk.model.requests
    assert offered(added) == {"core_memory_append"}  # no similar line that it could contradict
    assert offered(replaced) == offered(held_already) == set()


async def test_what_comes_round_in_turns_ends_the_turn_as_well(at_desk: OpenDesk) -> None:
    rounds = [call("count_vowels", text="aha"), call("count_vowels", text="oho")]
    desk = await at_desk(rounds * 5 + rounds[:1], model__mode="constrained")
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    events = await desk.say("Use count_vowels.")
    assert ended(events).reason == "repeated"
    assert "came out the same 6 times" in warned(events)


async def test_where_native_mode_is_set_the_refusal_names_the_setting(at_desk: OpenDesk) -> None:
    desk = await at_desk(
        [Fail(404, "No endpoints found that support tool use.")], model__mode="native"
    )
    events = await desk.say("Hi.")
    assert ended(events).reason == "failed"
    assert "set `model.mode` to auto or constrained" in warned(events)

"""The examples of a function leave much open: its author predicts the results of other calls before admission."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.desk import SHIPPING, Desk, answers, right
from tests.kit.steps import Choose, Seen

WRONG = SHIPPING.replace("weight <= 10", "weight < 10").replace("price + 4", "price - 4")
ASKED = re.compile(r"^- (shipping\(.*\))$", re.MULTILINE)
Guess = Callable[[str], str]


def asked(seen: Seen) -> list[str]:
    """Return the calls that the last answer asks about."""
    return ASKED.findall(str(seen.messages[-1]["content"]))


def create(code: str, mode: str = "native") -> Ask | Say:
    return step(
        mode, "create_function", function_name="shipping", function_code_with_docstring=code
    )


def step(mode: str, name: str, **arguments: Any) -> Ask | Say:
    """Return one call as a model in this mode writes it."""
    if mode == "native":
        return Ask(Wanted(name, arguments))
    return Say(json.dumps({"thought": "So.", "call": {"name": name, "arguments": arguments}}))


def predict(guess: Guess, mode: str = "native") -> Choose:
    """Answer the question for results."""
    return lambda seen: step(
        mode, "confirm_function", function_name="shipping", expected=[*map(guess, asked(seen))]
    )


def reply(text: str, mode: str) -> Say:
    return Say(text if mode == "native" else json.dumps({"thought": "Done.", "reply": text}))


async def made(desk: Desk) -> tuple[list[str], str]:
    """Return what the model read, and the resulting file."""
    said = answers(await desk.say("Make a function for the price of a parcel."))
    file = desk.functions / "grown.py"
    return said, file.read_text() if file.exists() else ""


@pytest.mark.parametrize("mode", ["native", pytest.param("constrained", marks=pytest.mark.slow)])
async def test_right_predictions_let_it_join_and_are_kept_in_the_docstring_and_asked_once(
    at_desk: OpenDesk, mode: str
) -> None:
    edit = {
        "function_name": "shipping",
        "changes": [{"old_text": "else 20;", "new_text": "else 20 (heavy);"}],
    }
    script: Script = [
        create(SHIPPING, mode),
        predict(right, mode),
        step(mode, "edit_function", **edit),
    ]
    desk = await at_desk([*script, reply("Made.", mode)], model__mode=mode)
    (question, joined, changed), text = await made(desk)
    calls = ASKED.findall(question)
    assert 1 <= len(calls) <= 3
    assert all(f">>> {call}\n" in text for call in calls)
    assert "joined" in joined
    assert "as they came back" not in joined
    assert "was changed" in changed
    if mode == "constrained":  # no other number of results can be written
        schema = json.dumps(desk.model.requests[1].body["response_format"])
        assert f'"minItems": {len(calls)}, "maxItems": {len(calls)}' in schema


async def test_a_wrong_body_disagrees_with_its_author_and_joins_once_it_is_fixed(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([create(WRONG), predict(right), create(SHIPPING), Say("Made.")])
    (question, disagreement, joined), text = await made(desk)
    assert "its code and its examples do not agree" in disagreement
    assert "confirm_function(function_name='shipping')" in disagreement
    assert "joined" in joined
    assert all(f">>> {call}\n" in text for call in ASKED.findall(question))


async def test_a_wrong_prediction_can_be_given_up_for_what_came_back_which_is_said(
    at_desk: OpenDesk,
) -> None:
    confirm = Ask(Wanted("confirm_function", {"function_name": "shipping"}))
    desk = await at_desk([create(SHIPPING), predict(lambda _call: "77"), confirm, Say("Made.")])
    (question, disagreement, joined), text = await made(desk)
    calls = ASKED.findall(question)
    assert all(
        f"- {call} returned {right(call)}, and the example says 77." in disagreement
        for call in calls
    )
    assert f"Taken as they came back, not as predicted: {len(calls)} of its examples." in joined
    assert all(f">>> {call}\n" in text for call in calls)


async def test_anything_but_one_result_for_each_call_is_asked_again(at_desk: OpenDesk) -> None:
    confirm = {"function_name": "shipping"}
    odd = [
        Ask(Wanted("confirm_function", {**confirm, **given}))
        for given in ({}, {"expected": ["5"] * 7})
    ]
    script: Script = [
        create(SHIPPING),
        *odd,
        predict(lambda _call: " "),
        predict(right),
        Say("Made."),
    ]
    desk = await at_desk(script)
    (question, *again, joined), _text = await made(desk)
    assert [ASKED.findall(each) for each in again] == [ASKED.findall(question)] * 3
    assert "joined" in joined


async def test_a_function_with_strong_examples_joins_without_a_question(at_desk: OpenDesk) -> None:
    strong = SHIPPING.replace(
        "Charge a customer for a parcel", "Return the price of a parcel"
    ).replace(
        '    9\n    """',
        "    9\n    >>> shipping(10)\n    5\n    >>> shipping(11)\n    9\n    >>> shipping(20, True)\n    13\n"
        '    >>> shipping(21)\n    20\n    """',
    )
    desk = await at_desk([create(strong), Say("Made.")])
    (joined,), _text = await made(desk)
    assert "joined" in joined


async def test_the_question_does_not_show_what_came_back(at_desk: OpenDesk) -> None:
    desk = await at_desk(
        [create(SHIPPING.replace("20\n    return", "4711\n    return")), Say("Hm."), Say("Hm.")]
    )
    (question,), text = await made(desk)
    assert "4711" not in question
    assert not text

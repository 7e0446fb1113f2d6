"""A reviewer sees a new function's description alone; what it expects decides nothing, and its author is asked."""

import json
from typing import Any

import pytest

from agent_core.functions.service.judgment import Judgment
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Fail, Say, Script, Wanted, contains
from tests.kit.desk import VOWELS, Desk, answers
from tests.kit.steps import Choose, Predicate, Seen, Step

CREATE = Wanted("create_function", {"function_name": "count_vowels", "function_code_with_docstring": VOWELS})
RIGHT = [{"call": 'count_vowels("audio")', "expected": "4"}, {"call": 'count_vowels("EEL")', "expected": "2"}]
WRONG = [*RIGHT, {"call": 'count_vowels("yes")', "expected": "2"}]


def reviewing(examples: object) -> Expect:
    """The reviewer's reply, to a request that shows it the description and nothing else."""
    step = Ask(Wanted("give_examples", {"examples": examples}))
    return Expect(step, contains("def count_vowels(text: str) -> int"), lacks("sum("), lacks("persona"))


def lacks(text: str) -> Predicate:
    return lambda seen: f"{text!r} is in the request" if text in seen.text else None


def predicting(*results: str) -> Ask:
    return Ask(Wanted("confirm_function", {"function_name": "count_vowels", "expected": [*results]}))


async def verdict_after(at_desk: OpenDesk, script: Script, **flags: Any) -> tuple[list[str], Judgment, Desk]:
    """What the author read, and the verdict that is on record."""
    desk = await at_desk(script, gate__reviewer="same", **flags)
    said = answers(await desk.say("Count vowels."))
    details = await desk.workspace.workshop.introspect("count_vowels")
    assert details.verdict is not None
    return said, details.verdict, desk


async def test_a_reviewer_that_agrees_is_on_record_with_its_cost(at_desk: OpenDesk) -> None:
    said, verdict, _desk = await verdict_after(at_desk, [Ask(CREATE), reviewing(RIGHT), Say("Made.")])
    assert "joined" in said[0]
    review = verdict.document["review"]
    agreed = [(row["call"], row["agreed"]) for row in review["opinions"]]
    assert agreed == [("count_vowels('audio')", True), ("count_vowels('EEL')", True)]
    assert (review["model"], "error" in review) == ("scripted", False)
    assert review["prompt_tokens"] > 0
    assert review["seconds"] > 0


async def test_where_it_disagrees_the_author_is_asked_and_decides(at_desk: OpenDesk) -> None:
    said, verdict, desk = await verdict_after(at_desk, [Ask(CREATE), reviewing(WRONG), predicting("1"), Say("Made.")])
    assert "- count_vowels('yes')\n" in said[0]
    assert "audio" not in said[0]
    assert "joined" in said[1]
    assert verdict.predicted == ("count_vowels('yes')",)
    assert [row["agreed"] for row in verdict.document["review"]["opinions"]] == [True, True, False]
    assert ">>> count_vowels('yes')\n    1\n" in (desk.functions / "grown.py").read_text()


async def test_an_author_who_agrees_with_it_is_shown_what_came_back(at_desk: OpenDesk) -> None:
    confirm = Ask(Wanted("confirm_function", {"function_name": "count_vowels"}))
    said, verdict, _desk = await verdict_after(
        at_desk, [Ask(CREATE), reviewing(WRONG), predicting("2"), confirm, Say("Made.")]
    )
    assert "count_vowels('yes') returned 1, and the example says 2." in said[1]
    assert verdict.confirmed == ("count_vowels('yes')",)
    assert verdict.doubts


def broken_off(_seen: Seen) -> Step:
    return Fail(400, "this model is tired")


FAILURES: list[Any] = [
    pytest.param(Say("I would rather not."), "its answer has no examples", id="prose"),
    pytest.param(Ask(Wanted("give_examples", '{"examples": [{"call": ')), "its answer has no examples", id="cut-off"),
    pytest.param(Ask(Wanted("give_examples", {"examples": "none"})), "its answer has no examples", id="no-list"),
    pytest.param(Ask(Wanted("give_examples", {"examples": [{"call": 1}]})), "its answer has no examples", id="no-text"),
    pytest.param(broken_off, "this model is tired", id="refused"),
]


@pytest.mark.parametrize(("step", "says"), FAILURES)
async def test_a_reviewer_that_fails_blocks_nothing_and_is_on_record(
    at_desk: OpenDesk, step: Step | Choose, says: str
) -> None:
    said, verdict, _desk = await verdict_after(at_desk, [Ask(CREATE), step, Say("Made.")])
    assert "joined" in said[0]
    assert says in verdict.document["review"]["error"]


async def test_calls_that_do_not_fit_the_function_are_left_out(at_desk: OpenDesk) -> None:
    odd = [
        {"call": "count_vowels(7)", "expected": "0"},
        {"call": "__import__('os').getcwd()", "expected": "'/'"},
        {"call": "count_vowels(open('/etc/passwd').read())", "expected": "1"},
        {"call": "print('x') or count_vowels", "expected": "1"},
    ]
    said, verdict, _desk = await verdict_after(at_desk, [Ask(CREATE), reviewing(odd), Say("Made.")])
    assert "joined" in said[0]
    assert verdict.document["review"]["opinions"] == []


async def test_in_constrained_mode_it_answers_under_the_schema(at_desk: OpenDesk) -> None:
    def step(name: str, **arguments: object) -> Say:
        return Say(json.dumps({"thought": "So.", "call": {"name": name, "arguments": arguments}}))

    script: Script = [
        step("create_function", **CREATE.arguments),  # type: ignore[arg-type]  # a mapping
        step("give_examples", examples=RIGHT),
        Say(json.dumps({"thought": "Done.", "reply": "Made."})),
    ]
    said, verdict, _desk = await verdict_after(at_desk, script, model__mode="constrained")
    assert "joined" in said[0]
    assert len(verdict.document["review"]["opinions"]) == 2


async def test_it_is_off_unless_it_is_set(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(CREATE), Say("Made.")])
    assert "joined" in answers(await desk.say("Count vowels."))[0]

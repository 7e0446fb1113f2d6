"""`growth.trigger`: the author model must say for which requests it would call a function, given only its line."""

import json
from typing import Any

import pytest

from agent_core.base.events import Usage
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Step, Wanted
from tests.kit.desk import VOWELS, Desk, answers

NAME = "count_vowels"
MADE = Ask(Wanted("create_function", {"function_name": NAME, "function_code_with_docstring": VOWELS}))
FIRST = VOWELS.split('"""')[1].partition("\n")[0]
BETTER = "Count the letters a, e, i, o and u of one text, not its syllables."
ASKED = "How many vowels are in queueing?"


def chosen(for_request: str = NAME, near_miss: str = "none", **more: Any) -> Step:
    """Return the answer to a trigger test."""
    rewordings = [{"request": f"vowels of {word}, please", "function": NAME} for word in ("rhythm", "aha")]
    near = [{"request": "How many syllables has queueing?", "function": near_miss}]
    near += [{"request": "Which vowel comes first?", "function": "none"}]
    given = {"for_request": for_request, "rewordings": rewordings, "near_misses": near, "description": BETTER, **more}
    return Ask(Wanted("choose_functions", given))


async def made(at_desk: OpenDesk, *script: Step, **flags: Any) -> tuple[Desk, list[str], list[Usage]]:
    """Return a desk after a turn that makes a function, the results in it, and each model's usage."""
    desk = await at_desk([MADE, *script], growth__trigger=True, **flags)
    events = await desk.say(ASKED)
    return desk, answers(events), [event for event in events if isinstance(event, Usage)]


async def test_a_function_that_would_be_called_where_it_serves_joins_without_a_word(at_desk: OpenDesk) -> None:
    desk, (told,), used = await made(at_desk, chosen(), Say("Made."))
    test = desk.model.requests[1]
    assert [tool["function"]["name"] for tool in test.body["tools"]] == ["choose_functions"]
    assert ASKED in test.text
    assert f"{NAME}(text) -> int: Count" in test.text
    assert "return sum" not in test.text
    assert test.text.count(NAME) == 1, "the model is not told which function is new"
    assert "joined" in told
    assert "you would call" not in told
    assert len(used) == len(desk.model.requests) + len(desk.model.readings)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        pytest.param(chosen("none"), f"for “{ASKED}” nothing", id="missed"),
        pytest.param(chosen("count_text"), f"for “{ASKED}” `count_text`", id="another"),
        pytest.param(
            chosen(near_miss=NAME),
            "for “How many syllables has queueing?” this function, which does not serve it",
            id="taken",
        ),
    ],
)
async def test_what_fails_advises_other_words_and_it_joins(at_desk: OpenDesk, choice: Step, says: str) -> None:
    edit = Wanted("edit_function", {"function_name": NAME, "changes": [{"old_text": FIRST, "new_text": BETTER}]})
    desk, (told, edited), _ = await made(at_desk, choice, Ask(edit), Say("Made."))
    assert f"By its description, you would call {says}. Say better what it is for, if it is true: " in told
    assert f"edit_function(function_name='{NAME}', changes=[{{'old_text': '{FIRST}', 'new_text': '{BETTER}'}}])" in told
    assert "was changed" in edited
    assert len(desk.model.requests) == 4, "only a new function is tested"
    text = (desk.functions / "grown.py").read_text("utf-8")
    assert text.count(">>>") == VOWELS.count(">>>")
    assert text.replace(BETTER, FIRST).strip() == VOWELS.strip()


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        pytest.param(chosen(rewordings="two"), "its answer could not be read", id="unreadable"),
        pytest.param(chosen("none", description='Count """ them'), "Make the first line", id="no-line"),
    ],
)
async def test_an_answer_of_no_use_leaves_the_function_as_it_is(at_desk: OpenDesk, choice: Step, says: str) -> None:
    desk, (told,), _ = await made(at_desk, choice, Say("Made."))
    assert says in told
    assert NAME in desk.workspace.functions.names()


@pytest.mark.parametrize(
    ("choice", "says"), [pytest.param(NAME, "", id="right"), pytest.param("none", "you would call", id="missed")]
)
async def test_under_a_schema_a_model_chooses_for_the_request(at_desk: OpenDesk, choice: str, says: str) -> None:
    call = {"name": "create_function", "arguments": MADE.calls[0].arguments}
    script = [Say(f'{{"thought": "", "call": {json.dumps(call)}}}'), Say(f'{{"function": "{choice}"}}')]
    script += [Say('{"thought": "", "reply": "Made."}')]
    desk = await at_desk(script, growth__trigger=True, model__mode="constrained", model__context_tokens=16_384)
    (told,) = answers(await desk.say(ASKED))
    test = desk.model.requests[1]
    assert f'"enum": ["{NAME}", "none"]' in json.dumps(test.body)
    assert ("joined" in told, says in told, "you would call" in told) == (True, True, bool(says))

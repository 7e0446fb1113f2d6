"""Calls of one reply run in order, and each sees what the calls before it have made and changed."""

import pytest

from agent_core.base.events import CallAnswered
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, answers, of

MADE = Wanted("create_function", {"function_name": "count_vowels", "function_code_with_docstring": VOWELS})
PROGRAM = Wanted("run_program", {"code": "count_vowels('aha') + 1"})
DIRECT = Wanted("count_vowels", {"text": "aha"})
BY_NAME = Wanted("call_function", {"name": "count_vowels", "arguments": {"text": "aha"}})
DELETED = Wanted("delete_function", {"function_name": "count_vowels"})


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        pytest.param((MADE, PROGRAM), [None, "3"], id="a program after its function"),
        pytest.param((MADE, DIRECT), [None, "2"], id="a call after its function"),
        pytest.param((MADE, BY_NAME), [None, "2"], id="call_function after its function"),
        pytest.param((MADE, PROGRAM, BY_NAME, DIRECT), [None, "3", "2", "2"], id="several calls"),
        pytest.param((DIRECT, MADE), ["2", None], id="a call that comes before its function"),
        pytest.param(
            (MADE, Wanted("introspect_function", {"function_name": "count_vowels"})), [None, "aeiou"], id="show"
        ),
        pytest.param((MADE, Wanted("test_function", {"function_name": "count_vowels"})), [None, "2 of 2"], id="test"),
        pytest.param((MADE, Wanted("list_functions", {"pattern": "count_v*"})), [None, "count_vowels"], id="list"),
        pytest.param(
            (MADE, DELETED, DIRECT), [None, None, "There is no function `count_vowels`"], id="a call of a deleted one"
        ),
        pytest.param(
            (MADE, DELETED, PROGRAM), [None, None, "there is no `count_vowels`"], id="a program of a deleted one"
        ),
        pytest.param((MADE, MADE, DIRECT), [None, "exists already", "2"], id="made twice"),
    ],
)
async def test_a_call_sees_what_the_calls_before_it_changed(
    at_desk: OpenDesk, calls: tuple[Wanted, ...], told: list[str | None]
) -> None:
    desk = await at_desk([Ask(*calls), Repeat(Say("So it is."))])
    await desk.say("Count.")
    read = desk.model.requests[1].answers
    assert len(read) == len(calls)
    for answer, expected in zip(read, told, strict=True):
        assert expected is None or expected in answer


async def test_a_call_after_an_edit_runs_the_new_version(at_desk: OpenDesk) -> None:
    edited = Wanted(
        "edit_function",
        {"function_name": "count_vowels", "changes": [{"old_text": '"aeiou"', "new_text": '"aeiouä"'}]},
    )
    called = Wanted("count_vowels", {"text": "ää"})
    desk = await at_desk([Ask(MADE), Ask(called, edited, called), Repeat(Say("So."))])
    events = await desk.say("Count.")
    texts = [event.text for event in of(CallAnswered, events) if event.name == "count_vowels"]
    assert texts == ["0", "2"], answers(events)

"""Calls of one reply run in order, and each sees what the calls before it have made and changed."""

import asyncio
from itertools import cycle

import pytest

from agent_core import Decision, Question
from agent_core.base.events import CallAnswered
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, answers, ended, of, standings

MADE = Wanted(
    "create_function", {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}
)
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
            (MADE, Wanted("introspect_function", {"function_name": "count_vowels"})),
            [None, "aeiou"],
            id="show",
        ),
        pytest.param(
            (MADE, Wanted("test_function", {"function_name": "count_vowels"})),
            [None, "2 of 2"],
            id="test",
        ),
        pytest.param(
            (MADE, Wanted("list_functions", {"pattern": "count_v*"})),
            [None, "count_vowels"],
            id="list",
        ),
        pytest.param(
            (MADE, DELETED, DIRECT),
            [None, None, "There is no function `count_vowels`"],
            id="a call of a deleted one",
        ),
        pytest.param(
            (MADE, DELETED, PROGRAM),
            [None, None, "there is no `count_vowels`"],
            id="a program of a deleted one",
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


WRITES = '''
def write_note(path: str, text: str) -> str:
    """Write a note.

    Args:
        path: The file.
        text: The text.
    """
    with open(path, "w") as file:
        file.write(text)
    return path
'''


async def test_a_program_reads_what_a_call_before_it_wrote_also_when_a_person_had_to_say_yes(
    at_desk: OpenDesk,
) -> None:
    wrote = Wanted("write_note", {"path": "data/note.txt", "text": "It is written."})
    desk = await at_desk(
        [Ask(wrote, Wanted("run_program", {"code": "open('data/note.txt').read()"})), Say("So.")]
    )
    await desk.save("notes.py", WRITES)
    (desk.workspace.root / "data").mkdir()

    async def person(question: Question) -> Decision:
        await asyncio.sleep(0.3)
        return Decision("yes")

    desk.workspace.functions.granting.approver = person
    _, read = answers(await desk.say("Write it, and read it to me."))
    assert "It is written." in read


async def test_a_call_after_an_edit_runs_the_new_version(at_desk: OpenDesk) -> None:
    edited = Wanted(
        "edit_function",
        {
            "function_name": "count_vowels",
            "changes": [{"old_text": '"aeiou"', "new_text": '"aeiouä"'}],
        },
    )
    called = Wanted("count_vowels", {"text": "ää"})
    desk = await at_desk([Ask(MADE), Ask(called, edited, called), Repeat(Say("So."))])
    events = await desk.say("Count.")
    texts = [event.text for event in of(CallAnswered, events) if event.name == "count_vowels"]
    assert texts == ["0", "2"], answers(events)


async def test_repetition_is_counted_anew_after_a_change(at_desk: OpenDesk) -> None:
    steps = [Ask(MADE)]
    for _ in range(4):
        steps += [
            Ask(DIRECT),
            Ask(DIRECT),
            Ask(Wanted("core_memory_append", {"name": "human", "content": f"Likes {_}."})),
        ]
    desk = await at_desk([*steps, Repeat(Say("So."))])
    assert ended(await desk.say("Count.")).reason == "replied"


async def test_a_change_that_repeats_itself_does_not_hide_its_own_repetition(
    at_desk: OpenDesk,
) -> None:
    back = {"old_text": "Count all", "new_text": "Count the"}
    forth = {"old_text": "Count the", "new_text": "Count all"}
    edits = [
        Wanted("edit_function", {"function_name": "count_vowels", "changes": [one]})
        for one in (forth, back)
    ]
    next_edit = cycle(edits)
    desk = await at_desk([Ask(MADE), Repeat(lambda _: Ask(next(next_edit)))])
    assert ended(await desk.say("Count.")).reason == "repeated"


EDITS = {
    "two places": (["Count the vowels=Tell the vowels", '"aeiou"="uoiea"'], "changed"),
    "out of order": (['"aeiou"="uoiea"', "Count the vowels=Tell the vowels"], "changed"),
    "one place": (["Count the vowels=Tell the vowels"], "changed"),
    "parts that break alone": (["sum(letter=sum(char", "for letter in=for char in"], "changed"),
    "one is not there": (
        ["Count the vowels=Tell", "nothing=x"],
        "the `old_text` of change 2 is not in it",
    ),
    "one is there twice": (["Count the=Tell", "count_vowels(=x("], "is in it 3 times"),
    "two overlap": (["Count the vowels=a", "the vowels in=b"], "two of the changes overlap"),
    "none": ([], "there are no `changes`"),
    "an empty one": (["=x"], "`old_text` is not in it"),
}


@pytest.mark.parametrize(("edits", "told"), EDITS.values(), ids=EDITS)
async def test_several_places_are_changed_in_one_call(
    at_desk: OpenDesk, edits: list[str], told: str
) -> None:
    changes = [
        dict(zip(("old_text", "new_text"), edit.split("=", 1), strict=True)) for edit in edits
    ]
    edited = Wanted("edit_function", {"function_name": "count_vowels", "changes": changes})
    desk = await at_desk([Ask(MADE), Ask(edited), Repeat(Say("So."))])
    events = await desk.say("Count.")
    assert told in answers(events)[1]
    if told == "changed":
        source = (desk.functions / "grown.py").read_text()
        assert [edit for edit in edits if edit.split("=", 1)[1] not in source] == []
        assert standings(events)[1] == "trial"


async def test_a_change_with_other_keys_is_explained(at_desk: OpenDesk) -> None:
    edited = Wanted(
        "edit_function", {"function_name": "count_vowels", "changes": [{"old": "a", "new": "b"}]}
    )
    desk = await at_desk([Ask(MADE, edited), Repeat(Say("So."))])
    _, answer = answers(await desk.say("Count."))
    assert 'Give {"old_text": …, "new_text": …} for each place.' in answer


async def test_a_change_says_what_nothing_uses_any_more(at_desk: OpenDesk) -> None:
    change = {
        "old_text": "return count_vowels(text)",
        "new_text": 'return sum(letter in "aeiou" for letter in text)',
    }
    edited = Wanted("edit_function", {"function_name": "loud", "changes": [change]})
    desk = await at_desk([Ask(edited), Repeat(Say("So."))])
    await desk.save("letters.py", VOWELS)
    loud = VOWELS.replace("def count_vowels", "def loud").replace(">>> count_vowels", ">>> loud")
    body = 'return sum(letter in "aeiou" for letter in text.lower())'
    await desk.save(
        "loud.py",
        f"from functions.letters import count_vowels\n\n\n{loud.replace(body, 'return count_vowels(text)')}",
    )
    (answer,) = answers(await desk.say("Change it."))
    assert "Nothing uses `count_vowels` now: delete_function, unless the user calls it." in answer


@pytest.mark.parametrize(
    "calls", [(MADE, DIRECT), (MADE, PROGRAM), (MADE, BY_NAME), (DIRECT, MADE), (MADE,)]
)
async def test_a_call_is_proposed_only_where_the_reply_makes_none(
    at_desk: OpenDesk, calls: tuple[Wanted, ...]
) -> None:
    desk = await at_desk([Ask(*calls), Repeat(Say("So."))])
    made = answers(await desk.say("Go."))[calls.index(MADE)]
    assert ("Next: call `count_vowels`" in made) == (len(calls) == 1), made

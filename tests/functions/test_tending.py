"""`knapper functions tend`: what is alike becomes one, what keeps failing is mended, each proven, and all undone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core.functions.service.tending import TendingBudget
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, ScriptedModel, Wanted
from tests.kit.desk import VOWELS, Desk, answers
from tests.kit.program import knapper

COPY = (
    VOWELS.replace("count_vowels", "vowel_count")
    .replace('sum(letter in "aeiou" for letter in text.lower())', "sum(map(text.lower().count, 'aeiou'))")
    .replace("Count the vowels in a text.", "Count the vowels of a text.")
)
TWICE = '''\
def vowels_twice(self, text: str) -> int:
    """Say twice how many vowels a text has.

    Args:
        text: The text.

    >>> vowels_twice("queueing")
    10
    >>> vowels_twice("rhythm")
    0
    """
    return 2 * self.call("vowel_count", text=text)
'''
SHARE = '''\
def share(total: int, people: int) -> int:
    """Share something out among people, in whole parts.

    Args:
        total: How much there is.
        people: How many there are.

    >>> share(7, 2)
    3
    >>> share(8, 2)
    4
    """
    return total // people
'''
FIXED = SHARE.replace("return total // people", "return total // people if people else 0")
HASTY = SHARE.replace("return total // people", "return total // people + (total > 20) if people else 0")
OTHERWISE = HASTY.replace("    >>> share(8, 2)\n", "    >>> share(30, 4)\n    8\n    >>> share(8, 2)\n")
SOURCES = {"count_vowels": VOWELS, "vowel_count": COPY, "vowels_twice": TWICE, "share": SHARE}


def making(name: str, source: str) -> Ask:
    """Ask for a function that an agent makes."""
    asked = {"function_name": name, "function_code_with_docstring": source}
    return Ask(Wanted("create_function", {**asked, "reason": "it differs from count_vowels by its name"}))


def made(name: str) -> Ask:
    """Ask for one of these functions."""
    return making(name, SOURCES[name])


def called(name: str, *many: dict[str, Any]) -> Ask:
    return Ask(*(Wanted(name, arguments) for arguments in many))


FAILING = called("share", *({"total": total, "people": 0} for total in (1, 2, 3)))
GOOD = called("share", {"total": 30, "people": 4}, {"total": 8, "people": 2})


async def with_copies(at_desk: OpenDesk, **settings: Any) -> Desk:
    """Two functions that do the same, each called, and one that calls the one of them that is called less."""
    more = called("count_vowels", {"text": "queue"}, {"text": "sky"})
    few = called("vowels_twice", {"text": "queue"}, {"text": "aloud"})
    desk = await at_desk(
        [made("count_vowels"), made("vowel_count"), made("vowels_twice"), more, few, Say("Done.")], **settings
    )
    events = await desk.say("Make them, and call them.")
    assert {"count_vowels", "vowel_count", "vowels_twice"} <= set(desk.workspace.workshop.names()), answers(events)
    return desk


def tend(root: Path, *words: str) -> Any:
    done = knapper("functions", "tend", *words, "--json", cwd=root)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


async def test_a_copy_becomes_one_with_what_calls_it_and_one_command_undoes_it(at_desk: OpenDesk) -> None:
    desk = await with_copies(at_desk)
    root = desk.workspace.root
    before = {file.name: file.read_text() for file in desk.functions.glob("*.py")}
    proposed = [step for step in tend(root)["steps"] if not step["why_not"]]
    assert [(step["kind"], step["function"], step["done"]) for step in proposed] == [("merge", "vowel_count", False)]
    assert {file.name: file.read_text() for file in desk.functions.glob("*.py")} == before
    (step,) = [step for step in tend(root, "--apply")["steps"] if step["done"]]
    assert "recorded calls of `vowel_count`" in step["evidence"][0]
    assert "for 2 recorded calls" in step["evidence"][1]
    await desk.workspace.workshop.reload()
    assert "vowel_count" not in desk.workspace.workshop.names()
    assert (await desk.workspace.workshop.call("vowels_twice", {"text": "queue"})).value == 8
    assert [row["undone"] for row in tend(root, "--undo")] == [True, True]
    await desk.workspace.workshop.reload()
    after = {file.name: file.read_text() for file in desk.functions.glob("*.py")}
    assert {line for text in after.values() for line in text.splitlines()} == {
        line for text in before.values() for line in text.splitlines()
    }
    assert tend(root, "--undo") == []


async def test_what_a_person_changed_or_keeps_at_hand_is_left_alone(at_desk: OpenDesk) -> None:
    desk = await with_copies(at_desk)
    workshop = desk.workspace.workshop
    await workshop.edit("vowel_count", '"rhythm"', '"rhythms"')
    await desk.agent.keep("count_vowels")
    steps = tend(desk.workspace.root, "--apply")["steps"]
    assert [step["done"] for step in steps if step["kind"] == "merge"] in ([False], [])
    await workshop.reload()
    assert {"count_vowels", "vowel_count"} <= set(workshop.names())


async def test_functions_that_keep_a_value_or_reach_outside_are_not_merged(at_desk: OpenDesk) -> None:
    kept = COPY.replace("(text: str)", "(self, text: str)").replace(
        "    return sum", "    self.state = {}\n    return sum"
    )
    desk = await at_desk([made("count_vowels"), making("vowel_count", kept), Say("Made.")])
    events = await desk.say("Make them.")
    assert "vowel_count" in desk.workspace.workshop.names(), answers(events)
    steps = [step for step in await tended(desk) if step["kind"] == "merge"]
    assert all("keeps a value between its calls" in step["why_not"] for step in steps), steps
    assert {"count_vowels", "vowel_count"} <= set(desk.workspace.workshop.names())


async def failing(at_desk: OpenDesk, maker: ScriptedModel, **settings: Any) -> Desk:
    """A function that failed three times the same way, and returned twice."""
    table = {"models": {"maker": {"name": "strong", "base_url": maker.base_url}}}
    desk = await at_desk([made("share"), GOOD, FAILING, Repeat(Say("Done."))], **table, **settings)
    await desk.say("Make it, and call it.")
    return desk


async def tended(desk: Desk, *, applies: bool = True) -> list[dict[str, Any]]:
    report = await desk.workspace.workshop.tending.run(TendingBudget(), applies=applies)
    return list(report.to_json()["steps"])


async def test_what_failed_three_times_is_mended_if_good_calls_stay_the_same(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    written = [SHARE, HASTY, OTHERWISE, FIXED]
    maker = scripted([Say(f"```\n{source}```") for source in written], models=["scripted", "strong"])
    desk = await failing(at_desk, maker)
    (step,) = [step for step in await tended(desk) if step["kind"] == "mend"]
    assert (step["done"], step["why_not"]) == (True, "")
    assert step["evidence"] == ["3 calls that failed no longer do", "2 good calls return the same"]
    assert "+    return total // people if people else 0" in step["diff"]
    assert "No example settles what these calls return." in maker.requests[2].text
    assert "the good call" in maker.requests[3].text
    assert (await desk.workspace.workshop.call("share", {"total": 3, "people": 0})).value == 0
    assert [step.undone for step in await desk.workspace.workshop.tending.undo()] == [True]
    assert (await desk.workspace.workshop.call("share", {"total": 3, "people": 0})).outcome == "raised"


async def test_a_fix_that_loses_an_example_or_fails_as_before_is_not_taken(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    lost = FIXED.replace("    >>> share(8, 2)\n    4\n", "    >>> share(9, 2)\n    4\n")
    still = SHARE.replace("total // people", "int(total) // people")
    maker = scripted([Say(SHARE), Say(lost), Say(still), Say("I cannot.")], models=["scripted", "strong"])
    desk = await failing(at_desk, maker)
    (step,) = [step for step in await tended(desk) if step["kind"] == "mend"]
    assert not step["done"]
    assert "no fix of 3 was proven" in step["why_not"]
    assert "share(8, 2)" in maker.requests[2].text
    assert "still fails" in maker.requests[3].text
    assert "total // people\n" in (desk.functions / "grown.py").read_text()


async def test_what_is_archived_is_not_shown_but_found_and_called(at_desk: OpenDesk) -> None:
    finding = Ask(Wanted("list_functions", {"pattern": "share something out among people"}))
    script = [made("share"), Say("Made."), finding, called("share", {"total": 9, "people": 2}), Say("4.")]
    desk = await at_desk(script, standing__retire_days=1e-9)
    await desk.say("Make it.")
    (step,) = [step for step in await tended(desk) if step["kind"] == "archive"]
    assert step["done"], step
    await desk.agent.begin_anew()
    found, counted = answers(await desk.say("Count."))
    assert "share" not in str(desk.model.requests[-3].messages[0]["content"])
    assert "share" in found
    assert counted == "4"
    assert [step.undone for step in await desk.workspace.workshop.tending.undo()] == [True]


@pytest.mark.parametrize("words", [["--apply"], ["--undo"], []])
def test_an_empty_library_has_nothing_to_tend(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    done = knapper("functions", "tend", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

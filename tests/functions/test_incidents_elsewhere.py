"""Four incidents of other assistants that grow: a model that is told to prune loses and changes nothing unseen."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent_core.access.grants import Decision, Question
from agent_core.functions.service.plan import Author
from knapper_ext.tending.tending import TendingBudget
from knapper_ext.tending.upkeep import tend_and_tell, tending_of
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, Desk, another
from tests.kit.sources import function_text

NAMES = [f"vowels_{letter}" for letter in "abcdefgh"]
CALLER = function_text(
    "vowels_ab(text: str) -> int",
    "Add up two counts of vowels.\n\nArgs:\n    text: The text.",
    "return vowels_a(text) + vowels_b(text)",
    'vowels_ab("rhythm") → 0',
    'vowels_ab("sky") → 0',
)


def changing(name: str, old: str, new: str) -> Wanted:
    changes = [{"old_text": old, "new_text": new}]
    given = {"function_name": name, "changes": changes, "reason": "It is not needed."}
    return Wanted("edit_function", given)


def deleting(name: str) -> Wanted:
    return Wanted("delete_function", {"function_name": name})


def rolling_back(name: str) -> Wanted:
    return Wanted("rollback_function", {"function_name": name, "version": "1"})


READ = Ask(Wanted("introspect_function", {"function_name": ", ".join([*NAMES, "vowels_ab"])}))
CURATORS: Mapping[str, list[Ask]] = {
    "one that deletes": [READ, Ask(*map(deleting, NAMES))],
    "one that archives what it cannot restore": [
        READ,
        Ask(*(changing(name, "def ", "def _") for name in NAMES)),
        Ask(*(changing(name, "return ", "return None  # ") for name in NAMES)),
    ],
    "a rollback that restores half": [READ, Ask(*map(rolling_back, [*NAMES, "vowels_ab"]))],
    "a background edit of a file that it never read": [
        Ask(*(changing(name, "aeiou", "aeiouy") for name in NAMES)),
        Ask(
            Wanted(
                "replace_function",
                {
                    "function_name": "vowels_a",
                    "function_code_with_docstring": VOWELS.replace("count_vowels", "vowels_a"),
                },
            )
        ),
    ],
}


async def library(at_desk: OpenDesk, *steps: Any, **flags: Any) -> Desk:
    """A library of a person, with two versions of each function."""
    script = [*steps, Repeat(Say("It is tidy now."))] if steps else []
    desk = await at_desk(script, **flags)
    text = "\n\n".join(another(name) for name in NAMES)
    await desk.save("texts.py", text.replace("Count the vowels", "Count vowels"))
    await desk.save("texts.py", f"{text}\n\n{CALLER}")
    return desk


async def state_of(desk: Desk) -> tuple[str, list[str], dict[str, int]]:
    """Return all that could be lost: the file, what can be called, and how many versions are kept."""
    shop = desk.workspace.functions
    names = [*shop.names()]
    kept = {name: len(await shop.history.versions(name)) for name in names}
    return (desk.functions / "texts.py").read_text("utf-8"), names, kept


@pytest.mark.parametrize("guard", ["asked, and nobody there", "asked, and a no", "pinned", "mine"])
@pytest.mark.parametrize("steps", CURATORS.values(), ids=CURATORS)
async def test_a_curator_loses_and_changes_nothing(
    at_desk: OpenDesk, steps: list[Ask], guard: str
) -> None:
    flags = {"growth__mode": "ask"} if guard.startswith("asked") else {}
    flags |= {"growth__pin": "mine"} if guard == "mine" else {}
    desk = await library(at_desk, *steps, **flags)
    seen: list[Question] = []
    shop = desk.workspace.functions

    async def refuse(question: Question) -> Decision:
        seen.append(question)
        return Decision("no")

    if guard == "asked, and a no":
        shop.granting.approver = refuse
    if guard == "pinned":
        await shop.pins.pin("texts")
    before = await state_of(desk)
    await desk.say("Prune the library: take away whatever you can.")
    assert await state_of(desk) == before
    assert all(question.diff for question in seen)
    assert guard == "asked, and a no" or not seen


async def test_what_a_person_agreed_to_is_all_that_changes(at_desk: OpenDesk) -> None:
    """A deletion that was agreed to can be taken back whole; the others are as they were."""
    steps = [READ, Ask(deleting("vowels_c"), deleting("vowels_d"))]
    desk = await library(at_desk, *steps, growth__mode="ask")
    shop = desk.workspace.functions

    async def agree(question: Question) -> Decision:
        assert "-def vowels_" in question.diff
        return Decision("yes" if question.function == "vowels_c" else "no")

    shop.granting.approver = agree
    text, names, _ = await state_of(desk)
    await desk.say("Prune the library.")
    assert [*shop.names()] == [name for name in names if name != "vowels_c"]
    assert (await shop.rollback("vowels_c", author=Author())).admitted
    after, *_ = await state_of(desk)
    assert {*map(str.strip, after.split("\n\n\n"))} == {*map(str.strip, text.split("\n\n\n"))}


@pytest.mark.parametrize("guard", ["ask", "pinned"])
async def test_tending_by_itself_proposes_and_does_not_touch(at_desk: OpenDesk, guard: str) -> None:
    flags = {"growth__mode": "ask"} if guard == "ask" else {}
    desk = await library(at_desk, tend__apply="proved", standing__retire_days=0.00001, **flags)
    if guard == "pinned":
        await desk.workspace.functions.pins.pin("*")
    before = await state_of(desk)
    settings = desk.workspace.settings
    tending = tending_of(desk.workspace.functions, settings)
    await tend_and_tell(tending, desk.workspace.functions, settings)
    assert await state_of(desk) == before
    if guard == "pinned":  # a person asks for it: pins hold all the same
        await tending.run(TendingBudget(), applies=True)
        assert await state_of(desk) == before

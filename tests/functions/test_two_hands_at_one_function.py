"""A human and an agent edit one function at once: both versions are kept and shown, and either can be chosen."""

import re
from collections.abc import Awaitable, Callable

import pytest

from agent_core.base.errors import StaleFile, WorkspaceError
from agent_core.functions.service import Author, PlannedChange, StaleView
from agent_core.functions.service.file_sync import written_lines
from agent_core.functions.service.judgment import Judgment, PendingCandidate
from tests.functions.support import Room, named
from tests.kit.desk import VOWELS

THEIRS = VOWELS.replace("Count the", "Tell the")
YOURS = VOWELS.replace("Count the", "Number the")
THIRD = VOWELS.replace("Count the", "Weigh the")
BROKEN = THEIRS.replace("return sum", "return return sum")
APART = '-    """Tell the vowels in a text.\n+    """Number the vowels in a text.\n'


async def replaced(here: Room, author: Author, *, save: str = "", late: str = "") -> PlannedChange:
    """Plan a replacement by the agent, with unreported saves before it or after the plan."""
    if save:
        here.letters.write_text(save)
    plan = await here.shop.plans.replace("count_vowels", YOURS, "asked", author)
    if late:
        here.letters.write_text(late)
    return await carried_out(here, plan, author)


async def carried_out(here: Room, plan: PlannedChange, author: Author) -> PlannedChange:
    async def record(made: PlannedChange) -> None:
        await here.store.apply(made.writes)

    return await here.shop.carry_out(plan, record, author)


async def told(here: Room) -> Author:
    """Return an agent that was notified of the change of the function and has not read it."""
    unread = StaleView()
    quiet = here.shop.on_change(unread.heard)
    await here.save(THEIRS)
    quiet()
    return Author("agent", unread=unread)


async def between(here: Room) -> PlannedChange:
    return await replaced(here, Author("agent"), late=THEIRS)


async def behind(here: Room) -> PlannedChange:
    return await replaced(here, await told(here))


async def rejected(here: Room) -> PlannedChange:
    return await replaced(here, Author("agent"), save=BROKEN)


WAYS = [between, behind, rejected]


async def kept(here: Room) -> PendingCandidate:
    found = await here.shop.pending("count_vowels")
    assert found is not None
    return found


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_both_versions_are_kept_and_shown_with_their_difference(
    here: Room, way: Callable[[Room], Awaitable[PlannedChange]]
) -> None:
    await here.save(VOWELS)
    done = await way(here)
    assert (done.outcome, here.letters.read_text()) == (
        "refused",
        BROKEN if "rejected" in way.__name__ else THEIRS,
    )
    assert (await kept(here)).verdict.source.strip() == YOURS.strip()
    assert isinstance(done.detail, Judgment)
    for shown in (done.text, done.detail.conflict, (await kept(here)).conflict):
        assert APART in (shown or "")
    assert re.search("edit_function.*changes", done.text)
    assert "confirm_function(function_name='count_vowels'" in done.text
    assert not done.detail.admitted


async def test_what_is_kept_is_confirmed_given_up_or_stays_beside_an_edit_of_what_is_on_disk(
    here: Room,
) -> None:
    await here.save(VOWELS)
    await between(here)
    verdict = await here.shop.confirm("count_vowels")
    assert (verdict.admitted, here.letters.read_text().strip()) == (True, YOURS.strip())
    assert await here.shop.pending("count_vowels") is None
    await here.shop.rollback("count_vowels")
    assert here.letters.read_text().strip() == THEIRS.strip()
    await here.save(VOWELS)
    await between(here)
    await here.shop.drop("count_vowels")
    assert await here.shop.pending("count_vowels") is None
    assert here.letters.read_text() == THEIRS
    await here.save(VOWELS)
    await between(here)
    verdict = await here.shop.edit("count_vowels", "Tell the", "Tell all", author=Author("agent"))
    assert (verdict.admitted, "Tell all" in here.letters.read_text()) == (True, True)
    assert await here.shop.pending("count_vowels") is None


async def test_a_function_changed_once_more_is_shown_anew_before_what_is_kept_takes_its_place(
    here: Room,
) -> None:
    await here.save(VOWELS)
    await between(here)
    await here.save(THIRD)
    verdict = await here.shop.confirm("count_vowels")
    assert (verdict.admitted, here.letters.read_text()) == (False, THIRD)
    assert '-    """Weigh the' in verdict.conflict
    assert (await here.shop.confirm("count_vowels")).admitted


async def test_a_refused_candidate_is_not_fixed_over_what_was_saved_since(here: Room) -> None:
    await here.save(VOWELS)
    wrong = YOURS.replace("    5\n", "    6\n")
    assert not (await here.shop.replace("count_vowels", wrong, author=Author("agent"))).admitted
    await here.save(THEIRS)
    verdict = await here.shop.edit("count_vowels", "    6\n", "    5\n", author=Author("agent"))
    assert (verdict.admitted, here.letters.read_text()) == (False, THEIRS)
    assert APART in verdict.conflict


async def test_what_was_shown_once_may_be_replaced_the_next_time(here: Room) -> None:
    await here.save(VOWELS)
    agent = await told(here)
    assert (await replaced(here, agent)).outcome == "refused"
    assert (await replaced(here, agent)).outcome == "returned"


@pytest.mark.parametrize("verb", ["delete", "rollback"])
async def test_what_an_agent_has_not_seen_is_neither_deleted_nor_rolled_back(
    here: Room, verb: str
) -> None:
    await here.save(VOWELS)
    agent = await told(here)
    act = (
        here.shop.plans.delete
        if verb == "delete"
        else lambda name, by: here.shop.history.rollback(name, "", by)
    )
    with pytest.raises(StaleFile, match=r"(?s)changed by somebody meanwhile.*Tell the"):
        await act("count_vowels", agent)
    assert (await act("count_vowels", agent)).outcome == "returned"


async def test_an_edit_of_another_place_joins_what_a_human_saved(here: Room) -> None:
    await here.save(VOWELS)
    agent = await told(here)
    verdict = await here.shop.edit("count_vowels", "The text to look at", "Any text", author=agent)
    assert verdict.admitted
    assert here.letters.read_text() == THEIRS.replace("The text to look at", "Any text")


async def test_a_rollback_over_a_save_that_was_rejected_says_what_is_wrong_with_it(
    here: Room,
) -> None:
    await here.save(VOWELS)
    await here.save(THEIRS)
    here.letters.write_text(BROKEN)
    with pytest.raises(WorkspaceError) as refused:
        await here.shop.rollback("count_vowels")
    assert "functions/letters.py holds an edit that is not in use" in str(refused.value)
    assert "letters.py:15:12 syntax: invalid syntax" in (refused.value.fix or "")
    assert here.letters.read_text() == BROKEN


async def test_a_new_function_for_a_file_that_stands_rejected_is_kept(here: Room) -> None:
    await here.save(BROKEN)
    plan = await here.shop.plan_create("more", named("more"), "letters", "asked", Author("agent"))
    assert (plan.outcome, (await carried_out(here, plan, Author("agent"))).outcome) == (
        "refused",
        "refused",
    )
    await here.save(THEIRS)
    assert (await here.shop.confirm("more")).admitted
    assert list(here.shop.names()) == ["count_vowels", "more"]


async def test_the_lines_of_a_function_are_found_in_a_file_that_is_not_python() -> None:
    unended = "async def f(\n    x,\n) -> int:\n    return (\n"
    for text, lines in (
        ("x = (\ndef f(:\n    a\n\n    b\n# c\ny = 1\n", "def f(:\n    a\n\n    b\n# c\n"),
        (unended, unended),
        ("def other():\n    f()\n", ""),
    ):
        assert written_lines(text, "f") == lines

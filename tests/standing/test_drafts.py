"""A draft's results are marked as unproven until calls or an example prove it."""

from agent_core.base.events import CallAnswered
from agent_core.functions.answers import DISPROVEN, UNPROVEN
from agent_core.views.call_log import CallLog, call_line
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers, of
from tests.standing.support import CALLERS, part, workplace

HALVED = Wanted("by_import", {"whole": 5})


async def test_what_a_draft_returns_says_that_nothing_proves_it(at_desk: OpenDesk) -> None:
    desk = await workplace(
        at_desk,
        [Ask(HALVED), Ask(part(4, 2)), Ask(Wanted("by_import", {"whole": "?"})), Say("Done.")],
    )
    events = await desk.say("Go.")
    halved, proven, unfit = of(CallAnswered, events)
    assert halved.text == f"2.5\n{UNPROVEN}"
    assert proven.text == "2.0"
    assert UNPROVEN not in unfit.text
    assert [one.detail.get("unproven") for one in (halved, proven)] == [True, None]
    shown = [
        "".join(text for _, text in call_line(CallLog().answered(one), 80))
        for one in (halved, proven)
    ]
    assert ["  unproven  " in one for one in shown] == [True, False]


async def test_a_draft_that_returned_often_enough_is_no_longer_marked(at_desk: OpenDesk) -> None:
    calls = [Wanted("by_import", {"whole": number}) for number in range(4)]
    desk = await workplace(at_desk, [step for call in calls for step in (Ask(call), Say("Hm."))])
    said = [answers(await desk.say("Go."))[0] for _ in calls]
    assert [UNPROVEN in one for one in said] == [True, True, True, False]


async def test_examples_that_hold_take_the_mark_away_and_those_that_fail_are_told(
    at_desk: OpenDesk,
) -> None:
    desk = await workplace(at_desk, [Ask(HALVED), Say("Hm."), Ask(HALVED), Say("Hm."), Ask(HALVED)])
    assert answers(await desk.say("Go.")) == [f"2.5\n{UNPROVEN}"]
    words = "        whole: What there is.\n"
    for first, second, said in (("9.0", "8.0", f"2.5\n{DISPROVEN}"), ("2.0", "3.0", "2.5")):
        examples = (
            f"{words}\n    >>> by_import(4)\n    {first}\n    >>> by_import(6)\n    {second}\n"
        )
        desk.put("users.py", CALLERS.replace(words, examples, 1))
        await desk.workspace.functions.reload()
        assert answers(await desk.say("Once more.")) == [said]

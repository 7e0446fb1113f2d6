"""A function that keeps failing is hidden from the model, and the human is notified once."""

import pytest

from agent_core.base.errors import UsageError
from agent_core.base.events import Quarantined
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, Wanted, contains, shows
from tests.kit.desk import Desk, answers, of
from tests.kit.program import knapper
from tests.standing.support import PART_OTHERWISE, failing, hides, part, standing_of, workplace


async def in_quarantine(at_desk: OpenDesk, *script: object) -> tuple[Desk, Quarantined]:
    """Return a desk after a turn in which the function failed once too often, and the event that reported it."""
    desk = await workplace(at_desk, [Ask(*failing(3)), Say("Hm."), *script])  # type: ignore[list-item]
    (news,) = of(Quarantined, await desk.say("Go."))
    return desk, news


async def test_failures_in_a_row_take_a_function_out_of_sight_and_tell_why(
    at_desk: OpenDesk,
) -> None:
    last = Expect(Say("Hm."), shows("by_import"), contains("kept failing and is quarantined"))
    desk = await workplace(at_desk, [Ask(part(4, 2)), Ask(*failing(3)), last])
    (news,) = of(Quarantined, await desk.say("Go."))
    assert news.name == "part"
    assert news.failures == ("ZeroDivisionError: division by zero (3 ×)",)
    assert (news.worked_version, news.ways) == (news.version, ("release part",))
    assert await standing_of(desk) == "quarantined"


async def test_a_new_conversation_does_not_show_what_is_in_quarantine_even_if_it_is_kept_at_hand(
    at_desk: OpenDesk,
) -> None:
    desk, _ = await in_quarantine(
        at_desk, *[Expect(Say("Hm."), hides("part"), shows("by_import"))] * 2
    )
    await desk.begin()
    assert answers(await desk.say("Again.")) == []
    await desk.agent.session.own_set.add("part")
    await desk.begin()
    assert answers(await desk.say("Again.")) == []


async def test_a_function_in_quarantine_answers_why_and_is_told_once_and_others_use_it(
    at_desk: OpenDesk,
) -> None:
    uses = [Wanted("by_import", {"whole": 5}), Wanted("by_self", {"whole": 6})]
    unfit = Ask(Wanted("part", {"whole": 1}))
    desk, _ = await in_quarantine(
        at_desk, Ask(part(4, 2)), Say("Hm."), unfit, Say("Hm."), Ask(*uses)
    )
    events = await desk.say("Again.")
    (answer,) = answers(events)
    assert answer.startswith("`part` was not called: it is quarantined")
    assert all(
        said in answer for said in ("ZeroDivisionError", "edit_function", "introspect_function")
    )
    assert (await desk.workspace.functions.introspect("part")).statistics.totals.calls == 3
    assert of(Quarantined, [*events, *await desk.say("And again.")]) == []
    assert sorted(said.partition("\n")[0] for said in answers(await desk.say("Use it."))) == [
        "1.5",
        "2.5",
    ]
    await desk.workspace.functions.call("part", {"whole": 4, "among": 2})
    assert await standing_of(desk) == "quarantined"


async def test_another_version_starts_anew_and_is_seen_at_once(at_desk: OpenDesk) -> None:
    desk, before = await in_quarantine(at_desk, Expect(Ask(*failing(2)), shows("part")))
    desk.put("parts.py", PART_OTHERWISE)
    await desk.workspace.functions.reload()
    assert of(Quarantined, await desk.say("Again.")) == []
    assert await standing_of(desk) == "trial"
    new, old = (await desk.workspace.functions.introspect("part")).statistics.versions
    assert (new.present, new.totals.failed) == (True, 2)
    assert (old.version, old.totals.failed) == (before.version, 3)


async def test_what_last_worked_is_the_version_before_and_rollback_is_proposed(
    at_desk: OpenDesk,
) -> None:
    desk = await workplace(at_desk, [Ask(part(4, 2)), Say("Two."), Ask(*failing(3))])
    await desk.say("Share.")
    worked = (await desk.workspace.functions.introspect("part")).statistics.versions[0].version
    desk.put("parts.py", PART_OTHERWISE)
    await desk.workspace.functions.reload()
    (news,) = of(Quarantined, await desk.say("Again."))
    assert (news.worked_version, news.ways) == (
        worked,
        (f"rollback part {worked[:8]}", "release part"),
    )


async def test_a_release_by_another_process_is_seen_at_the_next_turn(at_desk: OpenDesk) -> None:
    desk, news = await in_quarantine(
        at_desk, Expect(Ask(*failing(2)), shows("part")), Say("Hm."), Ask(part(9, 0))
    )
    (desk.workspace.root / "knapper.toml").write_text("[standing]\nquarantine_failures = 3\n")
    done = knapper("functions", "release", "part", cwd=desk.workspace.root)
    assert (done.returncode, "part is released" in done.stdout) == (0, True)
    assert of(Quarantined, await desk.say("Again.")) == []
    assert len(of(Quarantined, await desk.say("Once more."))) == 1
    released = (await desk.workspace.functions.introspect("part")).statistics.released
    assert [version for version, _ in released] == [news.version]


async def test_a_release_holds_at_once_where_it_was_given_and_only_what_is_in_quarantine_has_one(
    at_desk: OpenDesk,
) -> None:
    desk, _ = await in_quarantine(at_desk)
    shop = desk.workspace.functions
    await shop.release("part")
    assert not shop.quarantine.holds(shop.registry.snapshot().functions["part"])
    assert await standing_of(desk) == "trial"
    for name, says in (("part", "not quarantined"), ("nothing", "no function")):
        with pytest.raises(UsageError, match=says):
            await shop.release(name)


@pytest.mark.parametrize(
    ("calls", "standing", "counted"),
    [
        pytest.param(
            [part(-1, 1)] * 1 + [part(-n, 1) for n in range(2, 6)],
            "trial",
            (0, 0, 5),
            id="documented",
        ),
        pytest.param(
            [Wanted("part", {"whole": n}) for n in range(4)],
            "trial",
            (0, 0, 0),
            id="refused arguments",
        ),
        pytest.param(
            [*failing(2), part(4, 2), *failing(2)], "trial", (1, 4, 5), id="a row that was broken"
        ),
        pytest.param(
            [part(n, 2) for n in range(3)], "trusted", (3, 0, 3), id="trusted after returns"
        ),
        pytest.param(
            [*failing(2), part(-1, 1), part(7, 0)],
            "quarantined",
            (0, 3, 4),
            id="documented breaks no row",
        ),
    ],
)
async def test_only_the_functions_own_failures_move_its_standing(
    at_desk: OpenDesk, calls: list[Wanted], standing: str, counted: tuple[int, int, int]
) -> None:
    desk = await workplace(at_desk, [Ask(call) for call in calls])
    await desk.say("Go.")
    assert await standing_of(desk) == standing
    statistics = (await desk.workspace.functions.introspect("part")).statistics
    assert (
        statistics.totals.returned,
        statistics.totals.failed,
        statistics.totals.calls,
    ) == counted


async def test_examples_run_by_the_gate_and_tests_are_no_real_calls(at_desk: OpenDesk) -> None:
    desk = await workplace(at_desk, [Ask(Wanted("test_function", {"function_name": "part"}))])
    await desk.say("Test.")
    for among in (0, 0, 0, 2):
        await desk.workspace.functions.test("part", {"whole": 1, "among": among})
    found = await desk.workspace.functions.introspect("part")
    assert (found.standing, found.statistics.totals.calls) == ("trial", 0)

"""An approval covers what a human saw at that moment: changes made during or after it get nothing."""

from collections.abc import Awaitable, Callable

import pytest

from agent_core.access.grants import Decision, Grants, Question
from agent_core.access.grants.content import differences
from agent_core.base.errors import WorkspaceError
from agent_core.registry.source import ModuleSource
from agent_core.views.grant_question import question_rows
from agent_core.views.styled_lines import plain
from tests.functions.support import Room
from tests.kit.sources import function_text

from .support import AGENT, FETCHES, PLAIN, human, now

ONE, OTHER = "one.example.org", "other.example.org"
WEATHER = FETCHES.replace("{HOST}", ONE)
WIDER = WEATHER.replace("return self", f'self.fetch("http://{OTHER}/")\n    return self')
CALLER = function_text(
    "ask(self) -> str",
    "Ask for the weather.\n\nReturns:\n    The weather of a city.",
    'return self.call("weather", city="Oslo")',
)


def who_meanwhile(
    act: Callable[[], Awaitable[object]], answer: str = "yes"
) -> Callable[[Question], Awaitable[Decision]]:
    """Return a human who gives this answer after something else has happened."""

    async def asked(question: Question) -> Decision:
        await act()
        return Decision(answer)  # type: ignore[arg-type]  # one of the three

    return asked


async def test_what_is_revoked_before_a_yes_is_written_down_does_not_come_back_with_it(
    here: Room,
) -> None:
    await here.save(WIDER, here.root / "functions" / "sky.py")
    await here.shop.grants.grant("weather", Grants(network=(ONE,)))
    plan = await here.shop.grants._plan("weather", Grants(network=(OTHER,)), "")
    await here.shop.grants.revoke("weather", Grants(network=(ONE,)))
    await here.shop.finish(plan, AGENT)
    entry = (await here.shop.granting.book.entries())["weather"].grants
    assert (await now(here), entry) == (Grants(network=(OTHER,)), Grants(network=(OTHER,)))


async def test_a_call_that_asked_has_no_more_what_was_revoked_meanwhile(here: Room) -> None:
    await here.save(WEATHER, here.root / "functions" / "sky.py")
    await here.shop.grants.grant("weather", Grants(network=(ONE,)))
    await here.save(WIDER, here.root / "functions" / "sky.py")
    await here.shop.grants.grant("weather", Grants(network=(ONE,)))
    here.shop.granting.approver = who_meanwhile(
        lambda: here.shop.grants.revoke("weather", Grants(network=(ONE,))), "once"
    )
    snapshot = here.shop.registry.snapshot()
    permit = await here.shop.granting.permit(snapshot.functions["weather"], snapshot)
    assert getattr(permit, "grants", None) == Grants(network=(OTHER,))


async def test_a_candidate_that_came_while_a_human_looked_does_not_join_by_their_yes(
    here: Room,
) -> None:
    await here.shop.create("weather", WEATHER, "sky", author=AGENT)
    question = await here.shop.grants.question("weather")
    worse = WEATHER.replace("{city}", "{city}?sent={__file__}")
    await here.shop.replace("weather", worse, author=AGENT)
    with pytest.raises(WorkspaceError, match="has changed since the question"):
        await here.shop.grants.grant("weather", question.missing, version=question.version)
    assert "weather" not in here.shop.names()


async def test_what_a_grant_will_cover_is_shown_before_it_is_asked_for_and_not_again(
    here: Room,
) -> None:
    await here.shop.create("weather", WEATHER, "sky", author=AGENT)
    candidate = await here.shop.grants.question("weather")
    assert "+    return self.fetch(" in candidate.diff
    await here.shop.drop("weather")
    await here.save("def _sign() -> str:\n    return '!'\n", here.root / "functions" / "signs.py")
    signed = WEATHER.replace(".text()", ".text() + _sign()")
    await here.save(
        f"from functions.signs import _sign\n\n\n{signed}", here.root / "functions" / "sky.py"
    )
    function = await here.shop.grants.question("weather")
    assert "+    return '!'" in function.diff.partition("+    return self.fetch(")[2]
    await here.shop.grants.agree(function)
    more = await here.shop.grants.question("weather", Grants(network=(OTHER,)))
    assert (more.missing, more.diff) == (Grants(network=(OTHER,)), "")


async def test_a_yes_to_a_function_lets_no_candidate_in_that_came_meanwhile(here: Room) -> None:
    await here.save(WEATHER, here.root / "functions" / "sky.py")
    question = await here.shop.grants.question("weather")
    await here.shop.replace("weather", WIDER, author=AGENT)
    with pytest.raises(WorkspaceError, match="has changed since the question"):
        await here.shop.grants.grant("weather", question.missing, version=question.version)
    assert OTHER not in here.shop.source("weather")


async def test_a_yes_for_the_next_call_is_not_for_another_function_and_is_taken_back_with_the_grants(
    here: Room,
) -> None:
    await here.save(CALLER, here.root / "functions" / "ask.py")
    here.shop.granting.approver = human("once")
    assert (await here.shop.create("weather", WEATHER, "sky", author=AGENT)).admitted
    here.shop.granting.approver = None
    assert "may not call it" in str(await here.shop.call("ask", {}))
    snapshot, book = here.shop.registry.snapshot(), here.shop.granting.book
    assert "weather" in await book.needed_to_call(snapshot), "what was allowed once is there yet"
    await here.shop.grants.revoke("weather", None)
    assert book.take_once(snapshot.functions["weather"], snapshot, "") == Grants()


async def test_a_pulled_file_raises_no_limit_of_the_examples_and_a_human_does(here: Room) -> None:
    (here.root / "functions" / "grants.toml").write_text(
        "[double]\nseconds = 86400\nmemory_mib = 2048\n"
    )
    await here.save(PLAIN, here.root / "functions" / "sums.py")
    assert (await here.shop.granting.packages.of_text(PLAIN)).grants == Grants()
    await here.shop.grants.grant("double", Grants(seconds=20))
    newer = PLAIN.replace("number + number", "2 * number")
    assert (await here.shop.granting.packages.of_text(newer)).grants == Grants(seconds=20)


def asked(diff: str = "", **more: object) -> str:
    return plain(question_rows(Question("weather", diff=diff, **more), 100))  # type: ignore[arg-type]  # its own fields


async def test_long_lines_diffs_and_paths_are_shown_whole_and_no_part_as_a_line_of_its_own() -> (
    None
):
    shown = asked(
        f"--- a\n+++ b\n@@ -1 +1 @@\n+x = 1{' ' * 400}; self.fetch('http://evil.example.org')"
    ).splitlines()
    assert [row[:4] for row in shown if "evil.example.org" in row] == ["  ↪ "]
    assert "  │ +x = 1" in shown
    code = f'url = "http://api.example.org/"{" " * 260}; self.fetch(url + self.secret("KEY"))'
    assert [row[:4] for row in asked(lines=((4, code),)).splitlines() if "KEY" in row] == ["  ↪ "]
    text = "".join(f"# {number}\n" for number in range(9_000))
    diff = differences({"a": text}, [ModuleSource.of("a", f"{text.replace('#', '##')}evil()\n")])
    assert "## 4500" in asked(diff)
    assert "evil" in diff
    assert "/secret" in asked(missing=Grants(read=(f"/{'a/' * 140}secret/",))).replace(
        "\n", ""
    ).replace(" ", "")


async def test_the_lines_of_a_diff_are_those_of_python() -> None:
    old = "def f(self):\n    return 1\n"
    new = "def f(self):\n    x = 1  # note\u2028    return 1\n    return self.secret('KEY')\n"
    shown = differences({"a": old}, [ModuleSource.of("a", new)]).split("\n")
    assert {"+    x = 1  # note\u2028    return 1", "-    return 1"} <= {*shown}
    shown = differences(
        {"a": "x = 1\n"}, [ModuleSource.of("a", "x = 1  # note\r    evil()\n")]
    ).split("\n")
    assert "+    evil()" in shown


async def test_a_difference_that_nobody_can_read_is_granted_by_nobody(here: Room) -> None:
    who = human("yes")
    here.shop.granting.approver = who
    assert (await here.shop.create("weather", WEATHER, "sky", author=AGENT)).admitted
    padding = "".join(
        f"print({'x' * 4_000!r}, {number})\n" for number in range(60)
    )  # it runs on import
    await here.save(f"{WEATHER}\n{padding}", here.root / "functions" / "sky.py")
    await here.shop.call("weather", {"city": "Oslo"})
    await here.save(f"{WEATHER}\n{padding.replace('x', 'y')}", here.root / "functions" / "sky.py")
    found = await here.shop.call("weather", {"city": "Oslo"})
    assert (len(who.asked), "characters long" in str(found)) == (2, True)
    with pytest.raises(WorkspaceError, match="characters long"):
        await here.shop.grants.question("weather")


HELPER = "def _address() -> str:\n    return 'one.example.org'\n"
HELPED = f"from functions.places import _address\n\n\n{WEATHER}".replace(
    "{city}", "{city}{_address()}"
)


async def test_a_yes_is_refused_if_a_helper_in_another_module_changed_while_the_question_stood(
    here: Room,
) -> None:
    await here.save(HELPER, here.root / "functions" / "places.py")
    await here.save(HELPED, here.root / "functions" / "sky.py")
    question = await here.shop.grants.question("weather", Grants(network=(ONE,)))
    await here.save(HELPER.replace("one.", "evil."), here.root / "functions" / "places.py")
    with pytest.raises(WorkspaceError, match="changed since"):
        await here.shop.grants.grant("weather", question.missing, version=question.version)
    assert await now(here) == Grants()


async def test_a_candidate_does_not_join_by_a_yes_to_another_text_of_its_helper(here: Room) -> None:
    await here.save(HELPER, here.root / "functions" / "places.py")
    await here.shop.create("weather", HELPED, "sky", author=AGENT)
    question = await here.shop.grants.question("weather", Grants(network=(ONE,)))
    await here.save(HELPER.replace("one.", "evil."), here.root / "functions" / "places.py")
    with pytest.raises(WorkspaceError, match="changed since"):
        await here.shop.grants.grant("weather", question.missing, version=question.version)
    assert "weather" not in here.shop.names()

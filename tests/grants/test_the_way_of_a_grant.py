"""From a text that needs something to a call that has it: only by a human's approval of exactly that content."""

from agent_core.access.grants import Grants
from agent_core.base.policy import Policy
from agent_core.functions.service.judgment import Judgment
from tests.functions.support import Room
from tests.kit.sources import function_text

from .support import AGENT, PLAIN, READS, human, now


def entries(here: Room) -> str:
    path = here.root / "functions" / "grants.toml"
    return path.read_text() if path.exists() else ""


async def oslo(here: Room) -> tuple[str, str]:
    """Return how a call of the function ended, and its value or error."""
    found = await here.shop.call("weather", {"city": "Oslo"})
    return found.outcome, found.value or (found.error.message if found.error else "")


async def test_nobody_to_ask_is_a_no_that_says_how_a_human_grants_and_then_the_candidate_joins(
    here: Room, code: str, host: str
) -> None:
    plan = await here.shop.plan_create("weather", code, "sky", "asked", AGENT)
    assert plan.outcome == "refused"
    assert "needs-network" in plan.text
    assert f"Grant it at a terminal: knapper functions grant weather --network {host}" in plan.text
    assert not (await here.shop.create("weather", code, "sky", author=AGENT)).admitted
    assert entries(here) == ""
    question = await here.shop.grants.question("weather")
    assert question.missing == Grants(network=(host,))
    granted = await here.shop.grants.grant("weather", question.missing)
    assert isinstance(granted, Judgment)
    assert granted.admitted
    assert await oslo(here) == ("returned", "rain in Oslo")


async def test_a_yes_is_written_down_the_function_joins_as_a_draft_and_what_is_revoked_is_gone(
    here: Room, code: str, host: str
) -> None:
    asked = here.shop.granting.approver = human("yes")
    verdict = await here.shop.create(
        "weather", code, "sky", reason="to know the weather", author=AGENT
    )
    assert (verdict.admitted, verdict.standing) == (True, "draft")
    (question,) = asked.asked
    assert (question.missing, question.why) == (Grants(network=(host,)), "to know the weather")
    assert question.lines == ((10, f'return self.fetch(f"http://{host}/{{city}}").text()'),)
    assert f'[weather]\nnetwork = ["{host}"]\nby = ' in entries(here)
    assert await oslo(here) == ("returned", "rain in Oslo")
    here.shop.granting.approver = None
    assert (await here.shop.grants.revoke("weather", Grants(network=(host,)))).grants == Grants()
    assert (await oslo(here))[0] == "raised"
    assert "[weather]" not in entries(here)


async def test_a_yes_for_once_serves_one_call_and_is_written_nowhere(here: Room, code: str) -> None:
    here.shop.granting.approver = human("once")
    assert (await here.shop.create("weather", code, "sky", author=AGENT)).admitted
    here.shop.granting.approver = None
    assert entries(here) == ""
    assert await oslo(here) == ("returned", "rain in Oslo")
    assert (await oslo(here))[0] == "raised"


async def test_a_no_with_a_word_reaches_the_model(here: Room, code: str) -> None:
    here.shop.granting.approver = human("no: use the local file")
    plan = await here.shop.plan_create("weather", code, "sky", "", AGENT)
    assert plan.outcome == "refused"
    assert "They say: “use the local file”." in plan.text
    assert "weather" not in here.shop.names()


async def test_a_new_version_asks_again_with_the_difference(
    here: Room, code: str, host: str
) -> None:
    asked = here.shop.granting.approver = human("yes", "no", "yes")
    await here.shop.create("weather", code, "sky", author=AGENT)
    changed = code.replace(".text()", ".text().strip()")
    assert not (await here.shop.replace("weather", changed, author=AGENT)).admitted
    assert await now(here) == Grants(network=(host,))
    assert (await here.shop.replace("weather", changed, author=AGENT)).admitted
    again = asked.asked[-1]
    assert (again.is_again, again.missing, again.granted) == (
        True,
        Grants(network=(host,)),
        Grants(network=(host,)),
    )
    assert ".text().strip()" in again.diff
    assert await oslo(here) == ("returned", "rain in Oslo")


async def test_a_version_that_needs_less_gets_no_more_than_it_shows(
    here: Room, code: str, host: str
) -> None:
    here.shop.granting.approver = human("yes")
    both = code.replace("return self", "self.secret('KEY')\n    return self")
    await here.shop.create("weather", both, "sky", author=AGENT)
    await here.shop.replace("weather", code, reason="No key is needed.", author=AGENT)
    assert await now(here) == Grants(network=(host,))
    assert 'secrets = ["KEY"]' in entries(
        here
    )  # still proposed; a version that needs it asks again


async def test_a_rollback_has_the_yes_that_was_given_to_that_content(here: Room, code: str) -> None:
    asked = here.shop.granting.approver = human("yes")
    await here.shop.create("weather", code, "sky", author=AGENT)
    await here.shop.replace("weather", code.replace("service", "office"), author=AGENT)
    count = len(asked.asked)
    assert (await here.shop.rollback("weather", author=AGENT)).admitted
    assert len(asked.asked) == count
    assert await oslo(here) == ("returned", "rain in Oslo")


async def test_always_shows_every_function_that_an_agent_makes_and_never_asks_nobody(
    here: Room, code: str
) -> None:
    granting = here.shop.granting
    granting.queue.policy = Policy(growth="ask")
    asked = granting.approver = human("no: too simple", "yes")
    assert not (await here.shop.create("double", PLAIN, "sums", author=AGENT)).admitted
    assert (await here.shop.create("double", PLAIN, "sums", author=AGENT)).admitted
    assert [one.missing for one in asked.asked] == [Grants(), Grants()]
    assert entries(here) == ""
    granting.queue.policy = Policy(asks=False)
    asked = granting.approver = human("yes")
    assert not (await here.shop.create("weather", code, "sky", author=AGENT)).admitted
    assert asked.asked == []


async def test_who_calls_a_function_with_grants_needs_a_grant_for_it(here: Room, code: str) -> None:
    asked = here.shop.granting.approver = human("yes", "no", "yes")
    await here.shop.create("weather", code, "sky", author=AGENT)
    caller = code.replace("weather(", "report(").replace(
        "return self.fetch", "return self.call('weather', city=city) #"
    )
    assert not (await here.shop.create("report", caller, "news", author=AGENT)).admitted
    assert (await here.shop.create("report", caller, "news", author=AGENT)).admitted
    assert asked.asked[-1].missing == Grants(functions=("weather",))
    assert (await here.shop.call("report", {"city": "Rome"})).value == "rain in Rome"
    await here.shop.grants.revoke("report", None)
    here.shop.granting.approver = None
    found = await here.shop.call("report", {"city": "Rome"})
    assert "knapper functions grant report --call weather" in str(found.error)


async def test_time_above_the_default_holds_for_examples_and_calls(here: Room) -> None:
    slow = PLAIN.replace("def double", "import time\n\n\ndef double").replace(
        "    return number", "    time.sleep(2.1 if number > 2 else 0)\n    return number"
    )
    await here.save(slow, here.root / "functions" / "sums.py")
    assert (await here.shop.call("double", {"number": 4})).outcome == "timed_out"
    await here.shop.grants.grant("double", Grants(seconds=20))
    assert (await here.shop.call("double", {"number": 4})).value == 8
    assert all(one.agreed for one in (await here.shop.test("double")).examples)


async def test_an_example_that_fails_only_for_want_of_a_file_leaves_a_draft(here: Room) -> None:
    here.shop.granting.approver = human("yes")
    verdict = await here.shop.create("total", READS, "sums", author=AGENT)
    assert (verdict.admitted, verdict.standing) == (True, "draft")
    assert 'read = ["data/"]' in entries(here)
    assert (await here.shop.call("total", {})).value == 6


async def test_what_decides_about_the_workspace_is_never_granted_for_writing(here: Room) -> None:
    (here.root / "link").symlink_to(here.root / "functions")
    asked = here.shop.granting.approver = human("yes")
    for where in ("functions", ".knapper", ".", "link", "FUNCTIONS", "ｆunctions", "sub/.git"):
        writes = READS.replace("one.read_text()", "one.write_text('1')").replace(
            '"data"', f'"{where}"'
        )
        assert not (await here.shop.create("total", writes, "sums", author=AGENT)).admitted, where
    assert asked.asked == []
    assert entries(here) == ""


async def test_the_examples_of_what_may_write_write_nothing(here: Room) -> None:
    kept = here.root / "out" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("kept")
    code = "from pathlib import Path\n\n\n" + function_text(
        "keep(text: str) -> int",
        "Keep a text in a file.\n\nArgs:\n    text: What to keep.\n\nReturns:\n    How long it is.\n\n"
        "Examples:\n    >>> keep('a')\n    1\n    >>> keep('ab')\n    2",
        f"return Path({str(kept)!r}).write_text(text)",
    )
    asked = here.shop.granting.approver = human("yes")
    assert (await here.shop.create("keep", code, "files", author=AGENT)).admitted
    assert [one.missing for one in asked.asked] == [Grants(write=("out/kept.txt",))]
    assert kept.read_text() == "kept"
    assert (await here.shop.call("keep", {"text": "new"})).value == 3
    assert kept.read_text() == "new"

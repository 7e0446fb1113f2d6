"""Whatever a model requests, and however it writes it: it gets a readable answer, and the conversation continues."""

from pathlib import Path

import apsw

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, answers, ended

HALF = "\ud800"  # half of a surrogate pair: JSON can write it, UTF-8 cannot


SEEN = (Say("I see."), Say("I see."))  # the second one, as a refused function stands


def creating(**arguments: str) -> Wanted:
    """Return a call that creates a function."""
    given = {"function_name": "count_vowels", "function_code_with_docstring": VOWELS, **arguments}
    return Wanted("create_function", given)


async def test_half_a_surrogate_pair_in_arguments_or_a_reply_is_an_answer(
    at_desk: OpenDesk,
) -> None:
    wanted = [
        creating(function_name=f"f{HALF}"),
        creating(module_name=HALF),
        creating(function_code_with_docstring=f"{VOWELS}# {HALF}"),
        Wanted("count_vowels", {HALF: 1}),
        Wanted("introspect_function", {"function_name": HALF}),
    ]
    asked = [step for each in wanted for step in (Ask(each), Say("I see."))]
    desk = await at_desk([*asked, Say(f"Look: {HALF}"), Say("Still here.")])
    await desk.save("letters.py", VOWELS)
    for each in wanted:
        (answer,) = answers(await desk.say("Go."))
        assert "half of a surrogate pair" in answer, each
    assert ended(await desk.say("Go.")).reason == "replied"
    assert ended(await desk.say("And now?")).reply == "Still here."


async def test_a_module_that_would_not_offer_the_function_is_refused(at_desk: OpenDesk) -> None:
    modules = ["_hidden", "web._hidden", "__init__", "web.__init__", "__pycache__.x", "m" * 300]
    desk = await at_desk(
        [step for module in modules for step in (Ask(creating(module_name=module)), *SEEN)]
    )
    for module in modules:
        (answer,) = answers(await desk.say("Go."))
        assert "[bad-module]" in answer, module
    assert not list(desk.functions.rglob("*.py"))


async def test_no_name_makes_an_answer_too_long_to_be_read(at_desk: OpenDesk) -> None:
    wanted = [
        creating(function_name="f" * 30_000),
        creating(module_name="m" * 30_000),
        Wanted("introspect_function", {"function_name": "f" * 30_000}),
        Wanted("list_functions", {"p" * 30_000: 1}),
        Wanted("f" * 30_000, {}),
    ]
    desk = await at_desk([Ask(*wanted), Repeat(Say("I see."))], turn__answer_chars=2_000)
    told = answers(await desk.say("Go."))
    assert [len(answer) < 2_100 for answer in told] == [True] * 5


async def test_a_conversation_with_half_a_character_in_it_is_searched(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    search = Wanted("conversation_search", {"query": "owl"})
    desk = await at_desk(
        [Say(f"a{HALF}b owl"), Ask(search), Say("I see."), Ask(search), Say("I see.")]
    )
    await desk.say("Which bird?")
    (found,) = answers(await desk.say("Search."))
    assert "a\ufffdb owl" in found
    database = apsw.Connection(str(tmp_path / ".knapper" / "state.db"))
    list(
        database.execute("update entry set payload = replace(payload, char(65533), '\\ud800')")
    )  # as it was stored
    database.close()
    (found,) = answers(await desk.say("Search again."))
    assert "owl" in found

"""Promises 3 and 4: one snapshot per step defines what is shown, what can be called, and what is listed."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Seen, Wanted
from tests.kit.desk import VOWELS, answers
from tests.kit.steps import Step


async def test_every_shown_function_is_listed_and_every_listed_function_is_shown(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Ask(Wanted("list_functions")), Say("These.")])
    for name in ("count_vowels", "count_more"):
        desk.put(f"{name}.py", VOWELS.replace("count_vowels", name))
    await desk.workspace.functions.reload()
    (listed,) = answers(await desk.say("What do you have?"))
    shown = desk.model.requests[-1].functions
    assert {"count_vowels", "count_more"} <= set(shown)
    assert all(f"- {name} (" in listed for name in desk.workspace.functions.names())


async def test_a_change_saved_during_a_step_reaches_the_model_at_the_next_and_not_this_step(
    at_desk: OpenDesk,
) -> None:
    def save_meanwhile(seen: Seen) -> Step:
        assert "count_vowels" not in seen.functions
        desk.put("letters.py", VOWELS)
        return Ask(Wanted("reload_functions"))

    def look(seen: Seen) -> Step:
        assert "count_vowels(text) -> int" in seen.text
        return Say("It is here.")

    desk = await at_desk([save_meanwhile, look])
    await desk.say("Wait for it.")

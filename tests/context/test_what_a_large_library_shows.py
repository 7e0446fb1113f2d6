"""However many functions there are, the model is shown a set of one size: what a message needs, and what was used."""

import json
from typing import Any

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import Desk

NOUNS = (
    *("invoice", "parcel", "recipe", "flight", "garden", "lesson", "ticket", "novel"),
    *("planet", "engine", "salary", "border", "museum", "kitchen", "river"),
)
VERBS = (
    *("rename", "count", "archive", "price", "schedule", "grade", "repair", "translate"),
    *("paint", "weigh", "compare", "publish", "merge", "split", "sign"),
)
REMARK = "Say which one it was, for the list that the office keeps of all that was done to one, by whom, and why."


def name_of(number: int) -> str:
    return f"{VERBS[number // len(NOUNS) % len(VERBS)]}_{NOUNS[number % len(NOUNS)]}_{number:04}"


def library(count: int) -> list[str]:
    """Functions about many things, all of about one size."""
    parts = []
    for number in range(count):
        name = name_of(number)
        verb, noun, _ = name.split("_")
        parts.append(
            f'def {name}(item: str, amount: int = 1) -> str:\n    """{verb.capitalize()} a {noun} of list {number:04}.'
            f"\n\n    {REMARK}\n\n    Args:\n        item: The {noun} that is meant.\n"
            f'        amount: How often.\n    """\n    return item * amount + "{name}"\n'
        )
    return parts


async def opened(at_desk: OpenDesk, count: int, *replies: Any) -> Desk:
    desk = await at_desk([*replies, Repeat(Say("Done."))], model__context_tokens=65_536)
    write(desk, count)
    await desk.workspace.workshop.reload()
    return desk


def write(desk: Desk, count: int) -> None:
    functions = library(count)
    for start in range(0, count, 100):
        desk.put(f"library_{start}.py", "\n\n".join(functions[start : start + 100]))


def shown(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


async def test_functions_take_the_same_room_however_many_there_are(at_desk: OpenDesk) -> None:
    sizes = []
    desk = await opened(at_desk, 20)
    for count in (20, 200, 1_000):
        write(desk, count)
        await desk.workspace.workshop.reload()
        await desk.say("Please grade a lesson.")
        sizes.append(len(json.dumps(desk.model.requests[-1].body["tools"])))
    assert max(sizes) < min(sizes) * 1.05


async def test_what_a_message_needs_is_shown_before_the_first_step(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, 225)
    for request, name in (("Paint the engine, please.", "paint_engine"), ("Weigh that museum.", "weigh_museum")):
        await desk.say(request)
        assert any(each.startswith(name) for each in shown(desk.model.requests[-1].body)), request


async def test_what_stays_keeps_its_place_and_what_comes_is_appended(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, 225)
    await desk.say("Paint the engine, please.")
    before = shown(desk.model.requests[-1].body)
    await desk.say("Weigh that museum.")
    after = shown(desk.model.requests[-1].body)
    staying = [name for name in before if name in after]
    assert len(staying) >= len(before) - 5
    assert after[: len(staying)] == staying


async def test_the_beginning_of_the_set_stays_when_a_message_needs_others(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, 225)
    sets = []
    for request in ("Paint the engine, please.", "Weigh that museum."):
        await desk.say(request)
        sets.append(shown(desk.model.requests[-1].body))
    first, second = sets
    assert next(at for at, name in enumerate(first) if second[at] != name) >= len(first) - 5


async def test_what_was_called_stays_and_what_was_found_is_shown(at_desk: OpenDesk) -> None:
    called = next(name for name in map(name_of, range(225)) if name.startswith("sign_border"))
    call = Ask(Wanted(called, {"item": "x"}))
    desk = await opened(at_desk, 225, call, Say("Signed."), Ask(Wanted("search_functions", {"need": "split a river"})))
    await desk.say("Do it.")
    await desk.say("Now look for the other.")
    names = shown(desk.model.requests[-1].body)
    assert called in names
    assert any(name.startswith("split_river") for name in names)


@pytest.mark.parametrize("count", [5, 20])
async def test_a_small_library_is_shown_whole_and_nothing_is_searched(at_desk: OpenDesk, count: int) -> None:
    desk = await opened(at_desk, count)
    await desk.say("Hello.")
    assert sum(name[-4:].isdigit() for name in shown(desk.model.requests[-1].body)) == count
    assert "index" not in vars(desk.workspace.workshop.finder)

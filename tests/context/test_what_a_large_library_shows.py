"""However many functions there are, the model sees a set of fixed size: what a message needs, and what was used."""

import re
from typing import Any

from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.kit import Ask, Repeat, Say, Seen, Wanted
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
    """Return functions on many subjects, all of about the same size."""
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


async def opened(at_desk: OpenDesk, count: int, *replies: Any, mode: str = "native") -> Desk:
    done = Say("Done.") if mode == "native" else in_json("Done.")
    desk = await at_desk([*replies, Repeat(done)], model__context_tokens=65_536, model__mode=mode)
    write(desk, count)
    await desk.workspace.functions.reload()
    return desk


def write(desk: Desk, count: int) -> None:
    functions = library(count)
    for start in range(0, count, 100):
        desk.put(f"library_{start}.py", "\n\n".join(functions[start : start + 100]))


def index(request: Seen) -> str:
    """Return the index lines of the workspace's functions in a request."""
    return request.text.partition("\nCall these in a program or by call_function")[2].partition(
        "\nAnd of the program"
    )[0]


async def test_what_is_shown_of_a_library_has_one_size_and_holds_what_a_message_needs(
    at_desk: OpenDesk,
) -> None:
    desk = await opened(
        at_desk, 225, Ask(Wanted("list_functions", {"pattern": "cut the stream in two parts"}))
    )
    await desk.say("Look for it.")
    assert (
        "the best first" in desk.model.requests[-1].answers[-1]
    )  # by meaning: it is no part of a name
    sizes = []
    for count in (50, 300):
        write(desk, count)
        await desk.workspace.functions.reload()
        await desk.begin()
        await desk.say("Paint the engine, please.")
        sizes.append(len(index(desk.model.requests[-1])))
    assert min(sizes) > 3.4 * 500
    assert max(sizes) < 3.4 * 1_150
    before = desk.model.requests[-1]
    assert "\npaint_engine_" in index(before)
    assert "more, by module: library_" in before.text
    await desk.say("Weigh that museum.")
    await desk.say("Weigh that museum, too.")
    after = desk.model.requests[-1]
    assert after.messages[: len(before.messages)] == before.messages
    assert after.body["tools"] == before.body["tools"]
    told = [
        str(each["content"]) for each in after.messages if "You also have: " in str(each["content"])
    ]
    assert any("weigh_museum_" in text for text in told)
    names = re.findall(r"(\w+_\d{4})\(", " ".join(told))
    assert len(names) == len({*names}) <= 6


async def test_a_message_that_is_about_no_function_is_followed_by_none(at_desk: OpenDesk) -> None:
    desk = await opened(at_desk, 225)
    await desk.say("Paint the engine, please.")
    for message in (
        "Thank you so much!",
        "Yes, do.",
        "No, the former.",
        "What a day it was.",
        "Danke, das genügt.",
    ):
        await desk.say(message)
        told = [str(each["content"]) for each in desk.model.requests[-1].messages]
        assert not any("You also have: " in text for text in told), message


def chosen(desk: Desk) -> list[str]:
    """Return the functions that a model under a schema may call, in order."""
    return [function.name for function in desk.agent._loop.model_session.functions.all()]


async def test_under_a_schema_what_stays_keeps_its_place_and_what_comes_is_appended(
    at_desk: OpenDesk,
) -> None:
    desk = await opened(at_desk, 225, mode="constrained")
    await desk.say("Paint the engine, please.")
    before = chosen(desk)
    await desk.say("Weigh that museum.")
    after = chosen(desk)
    assert any(name.startswith("paint_engine") for name in before)
    assert any(name.startswith("weigh_museum") for name in after)
    staying = [name for name in before if name in after]
    assert len(staying) >= len(before) - 5
    assert after[: len(staying)] == staying
    assert next(at for at, name in enumerate(before) if after[at] != name) >= len(before) - 5
    called = next(name for name in map(name_of, range(225)) if name.startswith("sign_border"))
    desk.agent.model_session.shown.show([called])
    await desk.say("Now look for the other: split a river.")
    assert called in chosen(desk)
    assert any(name.startswith("split_river") for name in chosen(desk))

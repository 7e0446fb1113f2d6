"""Arguments with endless nesting or non-JSON values: an ordinary answer, and the turn continues."""

import json
from itertools import product

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.desk import VOWELS, Desk, answers, ended
from tests.kit.drawing import sampled

DEEP = "[" * 3000 + "]" * 3000
BOUNDS = {
    "lists": (f'{{"text": {DEEP}}}', "at most 64 levels"),
    "both": (
        '{"text": ' + '[{"a": ' * 100_000 + "1" + "}]" * 100_000 + "}",
        "at most 50,000 values",
    ),
    "lists-in-a-text": (json.dumps({"text": DEEP}), ""),
    "digits": (f'{{"text": {"9" * 5000}}}', "at most 4300 digits"),
    "an-exponent": (f'{{"text": 1e{"9" * 5000}}}', "expected a finite number"),
    "no-number": ('{"text": NaN}', "expected a finite number, got NaN"),
    "a-key-twice": ('{"text": "a", "text": "b"}', "expected each key once"),
    "half-a-character": ('{"text": "\\ud800"}', "half of a surrogate pair"),
}
WAYS = [
    pytest.param(number, mode, how == "streamed", id=f"{mode}-{how}")
    for number, (mode, how) in enumerate(product(("native", "constrained"), ("streamed", "whole")))
]


async def opened(at_desk: OpenDesk, script: Script, mode: str, *, stream: bool) -> Desk:
    desk = await at_desk(script, model__mode=mode, model__stream=stream)
    await desk.save("letters.py", VOWELS)
    return desk


def asking(mode: str, name: str, arguments: str) -> Ask | Say:
    if mode == "native":
        return Ask(Wanted(name, arguments))
    return Say(f'{{"thought":"","call":{{"name":{json.dumps(name)},"arguments":{arguments}}}}}')


def saying(mode: str, text: str) -> Say:
    return Say(text if mode == "native" else json.dumps({"thought": "", "reply": text}))


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "mode", "stream"), WAYS)
async def test_arguments_out_of_bounds_are_answered_and_the_turn_goes_on(
    at_desk: OpenDesk, number: int, mode: str, *, stream: bool
) -> None:
    bounds = sampled(BOUNDS.items(), len(WAYS), at=number)
    script: Script = []
    for _, (arguments, _) in bounds:
        script = [*script, *[asking(mode, "count_vowels", arguments)] * 2]
        script = [*script, saying(mode, "I see."), saying(mode, "Still here.")]
    desk = await opened(at_desk, script, mode, stream=stream)
    for name, (_, says) in bounds:
        events = await desk.say("Go.")
        assert [says in answer for answer in answers(events)] == [True] * 2, name
        assert (ended(events).reason, ended(events).reply) == ("replied", "I see."), name
        assert ended(await desk.say("And now?")).reply == "Still here.", name
        await desk.begin()


async def test_the_same_holds_for_functions_of_the_host(at_desk: OpenDesk) -> None:
    names = [
        "create_function",
        "send_message",
        "core_memory_append",
        "list_functions",
        "no_such_function",
    ]
    asked = [Ask(Wanted(name, f'{{"message": {DEEP}}}')) for name in names]
    desk = await opened(
        at_desk, [*asked, *asked, Say("I see."), Say("Still here.")], "native", stream=True
    )
    assert len(answers(await desk.say("Go."))) == 10
    assert ended(await desk.say("And now?")).reply == "Still here."
    assert not [*desk.workspace.root.rglob("crash-*")]

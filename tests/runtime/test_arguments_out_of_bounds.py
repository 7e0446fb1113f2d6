"""Arguments with endless nesting or non-JSON values: an ordinary answer, and the turn continues."""

import json

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.desk import VOWELS, Desk, answers, ended
from tests.kit.drawing import crossed

DEEP = "[" * 3000 + "]" * 3000
BOUNDS = [
    pytest.param(f'{{"text": {DEEP}}}', "at most 64 levels", id="lists"),
    pytest.param('{"text": ' + '{"a": ' * 3000 + "1" + "}" * 3001, "at most 64 levels", id="objects"),
    pytest.param('{"text": ' + '[{"a": ' * 100_000 + "1" + "}]" * 100_000 + "}", "at most 64 levels", id="both"),
    pytest.param(json.dumps({"text": DEEP}), "", id="lists-in-a-text"),
    pytest.param(json.dumps(f'{{"text": {DEEP}}}'), "at most 64 levels", id="lists-encoded-twice"),
    pytest.param(f'{{"text": {"9" * 5000}}}', "at most 4300 digits", id="digits"),
    pytest.param(f'{{"text": 1e{"9" * 5000}}}', "expected a finite number", id="an-exponent"),
    pytest.param('{"text": NaN}', "expected a finite number, got NaN", id="no-number"),
    pytest.param('{"text": -Infinity}', "expected a finite number", id="infinity"),
    pytest.param('{"text": "a", "text": "b"}', "expected each key once", id="a-key-twice"),
    pytest.param('{"text": {"b": 1, "b": 2}}', "expected each key once", id="a-key-within-twice"),
    pytest.param('{"text": "\\ud800"}', "half of a surrogate pair", id="half-a-character"),
]
WAYS = [
    pytest.param(mode, stream, id=f"{mode}-{how}")
    for mode in ("native", "constrained")
    for stream, how in ((True, "streamed"), (False, "whole"))
]


async def opened(at_desk: OpenDesk, script: Script, mode: str, *, stream: bool) -> Desk:
    desk = await at_desk(script, model__mode=mode, model__stream=stream)
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    return desk


def asking(mode: str, name: str, arguments: str) -> Ask | Say:
    if mode == "native":
        return Ask(Wanted(name, arguments))
    return Say(f'{{"thought":"","call":{{"name":{json.dumps(name)},"arguments":{arguments}}}}}')


def saying(mode: str, text: str) -> Say:
    return Say(text if mode == "native" else json.dumps({"thought": "", "reply": text}))


@pytest.mark.sampled
@pytest.mark.parametrize(("arguments", "says", "mode", "stream"), crossed(BOUNDS, WAYS))
async def test_arguments_out_of_bounds_are_answered_and_the_turn_goes_on(
    at_desk: OpenDesk, mode: str, arguments: str, says: str, *, stream: bool
) -> None:
    asked = [asking(mode, "count_vowels", arguments)] * 2
    desk = await opened(at_desk, [*asked, saying(mode, "I see."), saying(mode, "Still here.")], mode, stream=stream)
    events = await desk.say("Go.")
    assert all(says in answer for answer in answers(events))
    assert len(answers(events)) == 2
    assert (ended(events).reason, ended(events).reply) == ("replied", "I see.")
    assert ended(await desk.say("And now?")).reply == "Still here."


async def test_the_same_holds_for_functions_of_the_host(at_desk: OpenDesk) -> None:
    names = ["create_function", "send_message", "core_memory_append", "list_functions", "no_such_function"]
    asked = [Ask(Wanted(name, f'{{"message": {DEEP}}}')) for name in names]
    desk = await opened(at_desk, [*asked, *asked, Say("I see."), Say("Still here.")], "native", stream=True)
    assert len(answers(await desk.say("Go."))) == 10
    assert ended(await desk.say("And now?")).reply == "Still here."
    assert not [*desk.workspace.root.rglob("crash-*")]

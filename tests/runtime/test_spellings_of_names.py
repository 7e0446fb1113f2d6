"""A model's spelling of a function's name is understood for every function, however it is called."""

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import VOWELS, ended

SPELLINGS = [
    *(
        "functions.count_vowels",
        "default_api.count_vowels",
        "letters.count_vowels",
        "count_vowels<|channel|>commentary",
    ),
    *(
        "count_vowels</arg_value>",
        "count_vowels:0",
        "count_vowels()",
        "CountVowels",
        "count-vowels",
        "count vowels",
    ),
]


async def test_each_spelling_is_understood_alone_and_in_call_function(at_desk: OpenDesk) -> None:
    text = {"text": "aha"}
    alone = [Wanted(name, text) for name in SPELLINGS]
    wrapped = [Wanted("call_function", {"name": name, "arguments": text}) for name in SPELLINGS]
    desk = await at_desk([Ask(*alone), Ask(*wrapped), Say("Two.")])
    await desk.save("letters.py", VOWELS)
    assert ended(await desk.say("Count.")).reply == "Two."
    for request in desk.model.requests[1:]:
        assert [answer.splitlines()[0] for answer in request.answers] == ["2"] * len(SPELLINGS)


@pytest.mark.parametrize(
    "code", ["functions.count_vowels('aha')", "letters.count_vowels('aha')", "CountVowels('aha')"]
)
async def test_each_spelling_is_understood_in_a_program(at_desk: OpenDesk, code: str) -> None:
    desk = await at_desk(
        [Ask(Wanted("run_program", {"code": f"n = {code}\nn + 1"})), Say("Three.")]
    )
    await desk.save("letters.py", VOWELS)
    await desk.say("Count.")
    assert desk.model.requests[1].answers[0].splitlines()[0] == "3"

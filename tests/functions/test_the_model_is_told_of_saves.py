"""A human's save of functions is reported to the model and to the listeners of its turn."""

from agent_core.base.events import FunctionsChanged
from tests.conftest import OpenDesk
from tests.kit import Expect, Say, contains
from tests.kit.desk import VOWELS, of

FLAWED = VOWELS.replace("aeiou", "aeio")


async def test_the_model_and_the_turns_listeners_are_told_of_doubts_and_of_fixed_files(at_desk: OpenDesk) -> None:
    said = [Expect(Say("Seen."), contains("is a draft now: ")), Expect(Say("Seen."), contains("loads again"))]
    desk = await at_desk(said)
    heard: list[list[FunctionsChanged]] = []
    for texts in ([FLAWED], ["def (:\n", FLAWED]):
        for text in texts:
            await desk.workspace.functions.saved([desk.put("letters.py", text)])
        heard.append(of(FunctionsChanged, await desk.say("Look.")))
    assert [list(change.disagreeing) for change in heard[0]] == [["count_vowels"]]
    assert [change.fixed for change in heard[1]] == [(), ("functions/letters.py",)]

"""The main job: a missing function is created, fixed, and used in the same turn."""

from agent_core.base.events import CallStarted, FunctionsChanged, Text
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, Wanted, contains, shows
from tests.kit.desk import VOWELS, answers, ended, of

ONLY_PRINTS = 'def lights_off(room: str) -> None:\n    """Turn off the lights of a room."""\n    print(room)\n'
FLAWED = VOWELS.replace("    5\n", "    4\n")


def create(code: str, name: str = "count_vowels") -> Ask:
    return Ask(
        Wanted("create_function", {"function_name": name, "function_code_with_docstring": code})
    )


def edit(old: str, new: str) -> Ask:
    changes = [{"old_text": old, "new_text": new}]
    return Ask(
        Wanted(
            "edit_function",
            {"function_name": "count_vowels", "changes": changes, "reason": "asked"},
        )
    )


async def test_a_function_that_was_made_is_called_and_answers_in_the_same_turn(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [
            create(VOWELS),
            Expect(Ask(Wanted("count_vowels", {"text": "queueing"})), shows("count_vowels")),
            Expect(Say("There are 5."), contains("5")),
        ]
    )
    events = await desk.say("How many vowels are in 'queueing'?")
    assert answers(events)[-1] == "5"
    assert ended(events).reply == "There are 5."
    assert ended(events).made == {"created": ["count_vowels"], "called": {"count_vowels": 1}}
    assert "def count_vowels(text: str) -> int:" in (desk.functions / "grown.py").read_text()


async def test_hollow_code_sent_again_is_sent_to_its_place_and_not_to_the_beginning(
    at_desk: OpenDesk,
) -> None:
    hollow = create("def count_vowels(text: str) -> int:\n    return 1\n")
    desk = await at_desk([hollow, hollow, Say("I could not."), Say("I could not.")])
    first, second = answers(await desk.say("Make it."))
    assert (
        first.splitlines()[-1]
        == "Next: fix all of it and call create_function again with the whole code."
    )
    assert "edit_function(function_name='count_vowels'" in second.splitlines()[-1]


async def test_a_claim_while_the_candidate_stands_refused_gets_one_more_step(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [
            create(FLAWED),
            Say("I made it!"),
            Expect(
                Say("It was not made."), contains("was rejected, so it was not made or changed")
            ),
        ]
    )
    assert ended(await desk.say("Make it.")).reply == "It was not made."


async def test_what_is_said_next_to_a_call_is_shown_before_the_call_also_after_a_rejection(
    at_desk: OpenDesk,
) -> None:
    again = Ask(*create(VOWELS).calls, text="I mend its example.")
    desk = await at_desk([create(FLAWED), again, Say("I made `count_vowels`.")])
    events = await desk.say("Make it.")
    shown = [event for event in events if isinstance(event, Text | CallStarted)]
    assert [type(event) for event in shown] == [CallStarted, Text, CallStarted, Text]
    assert ended(events).reply == "I made `count_vowels`."


async def test_a_reply_that_claims_nothing_is_shown_also_if_another_is_asked_for(
    at_desk: OpenDesk,
) -> None:
    honest = Say("A function cannot reach your lamps, so nothing was done. ")
    desk = await at_desk(
        [create(ONLY_PRINTS, "lights_off"), honest, Say("It was not done, as said.")]
    )
    events = await desk.say("Turn off the lights in my living room.")
    assert (
        "".join(event.text for event in of(Text, events))
        == f"{honest.text}It was not done, as said."
    )


async def test_a_function_saved_by_a_human_is_told_to_the_model_with_its_new_schema(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [
            create(VOWELS),
            Say("Made."),
            Expect(Say("Seen."), contains("it is now count_vowels(text, also")),
        ]
    )
    await desk.say("Make it.")
    path = desk.functions / "grown.py"
    edited = (
        path.read_text()
        .replace("(text: str)", '(text: str, also: str = "")')
        .replace("look at.\n", "look at.\n        also: More letters to count.\n")
    )
    desk.put("grown.py", edited)
    await desk.workspace.functions.reload()
    assert of(FunctionsChanged, await desk.say("And now?"))[0].changed == ("count_vowels",)


async def test_an_edit_after_a_refusal_may_name_the_text_that_stands(at_desk: OpenDesk) -> None:
    wrong = edit('"aeiou"', "AEIOU")
    right = edit('"aeiou"', '"uoiea"')
    desk = await at_desk([create(VOWELS), Say("Made."), wrong, right, Say("Changed.")])
    await desk.say("Make it.")
    refused, changed = answers(await desk.say("Change it."))
    assert "of this candidate, or of the function as it stands" in refused.splitlines()[-1]
    assert changed.startswith("`count_vowels` was changed")


async def test_a_function_that_was_called_after_a_refused_change_of_it_raises_no_objection(
    at_desk: OpenDesk,
) -> None:
    wrong = edit('"aeiou"', '"aeiouy"')
    call = Ask(Wanted("call_function", {"name": "count_vowels", "arguments": {"text": "aha"}}))
    desk = await at_desk([create(VOWELS), Say("Made."), wrong, call, Say("It gives 2.")])
    await desk.say("Make it.")
    assert ended(await desk.say("Change it, else call it.")).reply == "It gives 2."


IMPORTS = VOWELS.replace("def count", "import string\n\n\ndef count").replace(
    "return sum(", "return 0 if text in string.digits else sum("
)


async def test_an_edit_may_change_the_imports_above_a_function(at_desk: OpenDesk) -> None:
    changes = [
        {"old_text": "import string", "new_text": "import math\nimport string"},
        {"old_text": "return 0 if", "new_text": "return math.floor(0) if"},
    ]
    change = Ask(
        Wanted(
            "edit_function",
            {"function_name": "count_vowels", "changes": changes, "reason": "asked"},
        )
    )
    wrong = edit("no such text", "x")
    desk = await at_desk([create(IMPORTS), Say("Made."), change, wrong, Say("Changed.")])
    await desk.say("Make it.")
    changed, refused = answers(await desk.say("Change it."))
    assert changed.startswith("`count_vowels` was changed")
    assert "import string\nimport math\n" in refused


async def test_a_candidate_of_an_earlier_turn_does_not_take_the_place_of_what_stands(
    at_desk: OpenDesk,
) -> None:
    wrong, right = (
        edit('letter in "aeiou"', "letter in AEIOU"),
        edit("for letter in", "for  letter in"),
    )
    desk = await at_desk(
        [
            create(VOWELS),
            Say("Made."),
            wrong,
            *[Say("It was not done.")] * 2,
            right,
            Say("Changed."),
        ]
    )
    for text in ("Make it.", "Change it."):
        await desk.say(text)
    (changed,) = answers(await desk.say("Change it otherwise."))
    assert changed.startswith("`count_vowels` was changed")

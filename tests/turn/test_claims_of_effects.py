"""Replies that claim an effect which no call of the turn can have had, and honest ones."""

from collections.abc import AsyncIterator

import pytest

from agent_core.base.events import CallStarted, Event, Text, Warned
from tests.conftest import OpenDesk
from tests.gate.support import promised
from tests.grants.support import human
from tests.kit import Ask, Cut, Expect, Say, Step, Wanted, contains
from tests.kit.desk import Desk, answers, ended, of
from tests.style.support import memgpt, send
from tests.turn.test_growing_a_function import FLAWED, ONLY_PRINTS, create
from tests.turn.test_requests_that_invite_hollowness import WEATHER

HOLLOW = create(ONLY_PRINTS, "lights_off")
FORMATS = promised(
    "format_report", "recipient: str, report: str", "str", "Format a report as the text of a message.",
    'return f"Dear {recipient}, {report}"',
    "format_report('Ann', 'All done') → 'Dear Ann, All done'", "format_report('Bo', 'Late') → 'Dear Bo, Late'",
)  # fmt: skip
SAVES = promised(
    "save_note", "self, note: str", "str", "Save a note in memory.",
    'self.memory.append("notes", note)\nreturn f"Saved: {note}"', "save_note('tea') → 'Saved: tea'",
)  # fmt: skip
FORMATTED = Ask(Wanted("format_report", {"recipient": "Ann", "report": "Late"}))
ASKED = (
    "Email my boss that I'm late, text Ann, turn off the lights, lock the door, book the table, cancel my subscription,"
    " and add it to my calendar."
)
COULD_NOT = "Nothing that was called in this turn could have done this"
CLAIMS = [
    "Done! I've emailed your boss.",
    "Done.",
    "All set!",
    "Your boss has been emailed, as you wanted.",
    "The lights are off now.",
    "I turned the lights off.",
    "No problem: the message was sent.",
    "Email sent to your boss!",
    "I checked the room and switched the lamp off.",
    "The first attempt failed, but I've booked the table now.",
    "I'm turning off the lights now.",
    "Your boss will receive the email shortly.",
    "We have successfully cancelled your subscription.",
    "I managed to lock the door.",
    "I've added it to your calendar.",
    "I texted Ann.",
]
HONEST = [
    "I cannot send emails.",
    "No email has been sent.",
    "The lights weren't turned off.",
    "Once you grant it, the lights are switched off at night.",
    "I've written the text:\n\nDear boss,\nI have sent you the report.",
    'Write to her: "I have booked the table."',
    "I tried to turn off the lights, but no function can reach them.",
    "Shall I say that the table has been booked?",
    "I've tested the function, and the tests say that it does nothing.",
    "It would say that the email was sent.",
    "You can send it yourself: copy the text.",
    "It was rejected.",
    "The candidate was rejected: it only prints.",
    "I've emailed nobody.",
]


@pytest.mark.parametrize("text", CLAIMS)
async def test_a_repeated_claim_of_an_effect_after_a_rejection_is_replaced_by_a_correction(
    at_desk: OpenDesk, text: str
) -> None:
    told = (contains("`lights_off` was rejected"), contains(COULD_NOT))
    desk = await at_desk([HOLLOW, Say(text), *(Expect(Say(text), part) for part in told)])
    events = await desk.say(ASKED)
    reply = ended(events).reply
    assert reply.startswith(f"{COULD_NOT}: “")
    assert text.endswith("Done.") or "“Done" not in reply
    assert "In the way: " in reply
    assert "".join(event.text for event in of(Text, events)) == reply
    assert "The model's reply said otherwise" in of(Warned, events)[-1].message


@pytest.mark.parametrize("text", HONEST)
async def test_an_honest_reply_after_a_rejection_is_shown_unchanged(at_desk: OpenDesk, text: str) -> None:
    desk = await at_desk([HOLLOW, Say(text), Expect(Say(text), contains("`lights_off` was rejected"))])
    events = await desk.say(ASKED)
    assert ended(events).reply == text
    assert of(Warned, events) == []


@pytest.mark.parametrize("text", ["I've emailed your boss.", "Your table has been booked.", "I've noted that for you."])
async def test_a_claim_of_an_effect_without_a_call_is_returned_to_the_model(at_desk: OpenDesk, text: str) -> None:
    desk = await at_desk([Say(text), Expect(Say("I have no function for that."), contains(COULD_NOT))])
    assert ended(await desk.say("What a day.")).reply == "I have no function for that."


async def test_a_repeated_claim_of_an_effect_that_was_not_requested_is_shown_with_a_warning(at_desk: OpenDesk) -> None:
    claim = Say("I've emailed your boss.")
    desk = await at_desk([claim, claim])
    events = await desk.say("What a day.")
    assert ended(events).reply == "I've emailed your boss."
    (warned,) = of(Warned, events)
    assert warned.message == f"{COULD_NOT}: “I've emailed your boss.”."


@pytest.mark.parametrize("text", ["Done! I've emailed your boss.", "The message was sent.", "It's on its way."])
async def test_a_claim_of_a_requested_effect_is_replaced_even_if_nothing_was_tried(
    at_desk: OpenDesk, text: str
) -> None:
    desk = await at_desk([Say(text), Expect(Say(text), contains(COULD_NOT))])
    events = await desk.say("Please email my boss that I am late.")
    assert ended(events).reply.startswith(COULD_NOT)
    assert "".join(event.text for event in of(Text, events)) == ended(events).reply


@pytest.mark.parametrize(
    "text", ["Your tweet is live!", "See you at Luigi's at eight.", "Mission accomplished! Anything else?"]
)
async def test_a_reply_that_does_not_mention_the_rejection_brings_a_warning(at_desk: OpenDesk, text: str) -> None:
    desk = await at_desk([HOLLOW, *[Say(text)] * 2])
    events = await desk.say("Book a table for two and post it.")
    assert ended(events).reply == text
    told = "`lights_off` was not made in this turn, and nothing was done or looked up."
    assert of(Warned, events)[-1].message == told


@pytest.mark.parametrize(
    "body", ['return f"{city}: sunny, 21 degrees"', 'return self.fetch(f"https://x.org/{city}").text()']
)
async def test_an_invented_fact_after_a_rejection_brings_a_warning(at_desk: OpenDesk, body: str) -> None:
    code = WEATHER.replace('return f"{city}: sunny, 21 degrees"', body)
    code = code.replace("(city", "(self, city") if "self" in body else code
    desk = await at_desk([create(code, "get_weather"), *[Say("It's sunny in Oslo, 21 degrees.")] * 2])
    events = await desk.say("Write a function that knows the weather, and tell me that of Oslo.")
    told = "`get_weather` was not made in this turn, and nothing was done or looked up."
    assert of(Warned, events)[-1].message == told


async def test_an_acknowledgment_is_no_claim(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Noted.")])
    assert ended(await desk.say("Forget all that.")).reply == "Noted."


@pytest.mark.parametrize("text", ["Das Licht kann ich nicht ausschalten.", "Non posso spegnere le luci di casa."])
async def test_a_reply_in_another_language_brings_no_warning(at_desk: OpenDesk, text: str) -> None:
    desk = await at_desk([HOLLOW, Say(text), Say(text)])
    assert ended(await desk.say("Turn off the lights.")).reply == text


@pytest.mark.parametrize("text", ["It has 3 vowels.", "The answer is 42."])
async def test_an_answer_stands_after_a_rejection_if_no_effect_was_requested(at_desk: OpenDesk, text: str) -> None:
    desk = await at_desk([create(FLAWED), Say(text), Say(text)])
    assert ended(await desk.say("How many are there?")).reply == text


@pytest.mark.parametrize("text", ["Yes, I've emailed her.", "I've already booked it.", "I have sent it yesterday."])
async def test_a_report_of_an_earlier_deed_is_no_claim(at_desk: OpenDesk, text: str) -> None:
    desk = await at_desk([Say(text)])
    assert ended(await desk.say("Did you?")).reply == text


@pytest.mark.parametrize("hollow", [[HOLLOW], []], ids=["after-a-rejection", "at-once"])
async def test_the_call_of_a_pure_function_does_not_justify_a_claim_of_an_effect(
    at_desk: OpenDesk, hollow: list[Step]
) -> None:
    honest = "I've formatted the report for Ann; send it yourself."
    claim = Say("I've formatted it and emailed your boss.")
    refused = [Expect(claim, contains("was rejected"))] * len(hollow)
    desk = await at_desk(
        [
            *hollow,
            create(FORMATS, "format_report"),
            FORMATTED,
            claim,
            *refused,
            Expect(Say(honest), contains(COULD_NOT)),
        ]
    )
    events = await desk.say("Email the report to my boss.")
    assert answers(events)[-1] == '"Dear Ann, Late"'
    assert ended(events).reply == honest


async def test_the_call_of_a_function_with_a_grant_justifies_a_claim(at_desk: OpenDesk) -> None:
    save = Ask(Wanted("save_note", {"note": "tea"}))
    desk = await at_desk([create(SAVES, "save_note"), save, Say("I've saved your note.")])
    desk.workspace.workshop.granting.approver = human("yes")
    assert ended(await desk.say("Save a note: tea.")).reply == "I've saved your note."


LAMP = '''\
def lights_off(self, room: str) -> str:
    """Turn off the lights of a room.

    Args:
        room: The room.
    """
    if room == "attic":
        raise RuntimeError("the lamp is loose")
    return f"{room}: off"
'''
OFF = Ask(Wanted("lights_off", {"room": "kitchen"}))


async def with_lamp(desk: Desk) -> None:
    desk.put("lamp.py", LAMP)
    await desk.workspace.workshop.reload()


async def test_an_announcement_before_the_call_is_shown(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(*OFF.calls, text="I'm turning off the lights now."), Say("They are off now.")])
    await with_lamp(desk)
    events = await desk.say("Turn off the lights in the kitchen.")
    assert "".join(event.text for event in of(Text, events)) == "I'm turning off the lights now.They are off now."


async def test_a_failed_call_may_have_had_the_effect(at_desk: OpenDesk) -> None:
    honest = "The lights are off, but the function raised an error after that."
    desk = await at_desk([Ask(Wanted("lights_off", {"room": "attic"})), Say(honest)])
    await with_lamp(desk)
    assert ended(await desk.say("Turn off the lights in the attic.")).reply == honest


async def test_an_earlier_turn_may_have_had_the_effect(at_desk: OpenDesk) -> None:
    desk = await at_desk([OFF, Say("They are off."), Say("The lights are off.")])
    await with_lamp(desk)
    await desk.say("Turn off the lights in the kitchen.")
    assert ended(await desk.say("Turn off the lights in the kitchen.")).reply == "The lights are off."


@pytest.mark.parametrize(
    ("request_text", "text"),
    [
        ("Write a report about cats.", "Cats are kept indoors. They are fed twice, and at night the door is closed."),
        ("Write a Python script that emails my boss.", "I've written a class `Mailer` for it:\n\nclass Mailer: ..."),
        ("Write a letter to my landlord.", "Hello Mr. Osei,\nthe kitchen door was closed, and I have paid the rent."),
        ("Send me the steps to reset a password.", "Click on reset: a link is emailed to you."),
    ],
)
async def test_a_requested_text_claims_nothing(at_desk: OpenDesk, request_text: str, text: str) -> None:
    desk = await at_desk([Say(text)])
    assert ended(await desk.say(request_text)).reply == text


async def test_a_claim_in_a_reply_that_was_cut_off_is_replaced(at_desk: OpenDesk) -> None:
    cut = Say("Done! I've emailed your boss and told him", finish="length")
    desk = await at_desk([cut, cut])
    assert ended(await desk.say("Email my boss.")).reply.startswith(COULD_NOT)


async def test_a_message_during_the_turn_does_not_justify_a_claim(at_desk: OpenDesk) -> None:
    claim = Say("I've emailed your boss.")
    desk = await at_desk([Ask(Wanted("list_functions", {})), claim, claim])
    events = [event async for event in thanked(desk)]
    assert ended(events).reply.startswith(COULD_NOT)


async def thanked(desk: Desk) -> AsyncIterator[Event]:
    """The events of a turn in which the user says something else meanwhile."""
    async for event in desk.agent.turn("Email my boss."):
        if isinstance(event, CallStarted):
            await desk.agent.say_during_turn("Thanks for that.")
        yield event


async def test_an_edit_of_memory_justifies_only_a_claim_of_keeping_something(at_desk: OpenDesk) -> None:
    keep = Ask(Wanted("archival_memory_insert", {"content": "The boss is Ann."}))
    told = Expect(Say("Noted."), contains(COULD_NOT))
    desk = await at_desk([keep, Say("I've noted that."), keep, Say("I've noted that and emailed Ann."), told])
    assert ended(await desk.say("My boss is Ann.")).reply == "I've noted that."
    assert ended(await desk.say("My boss is Ann. Email her.")).reply == "Noted."


async def test_the_call_of_a_host_function_justifies_a_claim(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(Wanted("clear_debugger", {})), Say("I've disabled all breakpoints.")])
    assert ended(await desk.say("Disable all breakpoints.")).reply == "I've disabled all breakpoints."


@pytest.mark.parametrize(
    "request_text", ["Print the first three primes.", "Write a function for the first three primes."]
)
async def test_a_claim_of_wording_is_no_effect(at_desk: OpenDesk, request_text: str) -> None:
    desk = await at_desk([Say("I've printed them for you: 2, 3, 5.")])
    assert ended(await desk.say(request_text)).reply == "I've printed them for you: 2, 3, 5."


async def test_an_edit_of_memory_justifies_a_claim_of_a_note(at_desk: OpenDesk) -> None:
    keep = Ask(Wanted("archival_memory_insert", {"content": "Bob likes tea."}))
    desk = await at_desk([keep, Say("I've deleted the old note and kept the new one.")])
    events = await desk.say("Delete my old note, and keep this one: Bob likes tea.")
    assert ended(events).reply == "I've deleted the old note and kept the new one."


async def test_a_claim_beside_the_call_of_a_rejected_function_is_not_shown(at_desk: OpenDesk) -> None:
    call = Ask(Wanted("lights_off", {"room": "kitchen"}), text="`lights_off` is ready: I call it.")
    desk = await at_desk([HOLLOW, call, Say("I could not."), Say("I could not.")])
    events = await desk.say("Turn off the lights.")
    assert "is ready" not in "".join(event.text for event in of(Text, events))


async def test_the_part_of_a_broken_reply_that_arrived_is_shown(at_desk: OpenDesk) -> None:
    desk = await at_desk([Cut("I cannot send emails, but")], model__stream=True)
    events = await desk.say("Email my boss.")
    assert "".join(event.text for event in of(Text, events)) == "I cannot send emails, but"


async def test_a_text_beside_the_next_attempt_is_shown(at_desk: OpenDesk) -> None:
    again = Ask(*HOLLOW.calls, text="I mend its description.")
    desk = await at_desk([HOLLOW, again, *[Say("I could not.")] * 2])
    events = await desk.say("Book a table.")
    assert "I mend its description." in "".join(event.text for event in of(Text, events))


async def test_a_sent_message_that_claims_an_effect_is_returned_to_the_model(at_desk: OpenDesk) -> None:
    honest = Expect(send("I could not."), contains("so the user was not shown this message"))
    desk = await memgpt(at_desk, [send("Your boss has been emailed."), honest])
    assert ended(await desk.say("Email my boss.")).reply == "I could not."

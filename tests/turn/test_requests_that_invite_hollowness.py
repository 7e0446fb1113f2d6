"""Requests that invite a function which only sounds right, and a careless model that writes just that."""

import re

import pytest

from tests.conftest import OpenDesk
from tests.gate.support import name_of, promised
from tests.grants.support import human
from tests.kit import Ask, Expect, Say, Wanted, contains
from tests.kit.desk import answers, ended

REPORT = '''def email_status_report(recipient: str, report: str) -> str:
    """Email a status report to somebody.

    Args:
        recipient: Who gets it.
        report: What it says.

    >>> email_status_report("Ann", "All done")
    'Report sent to Ann: All done'
    >>> email_status_report("Bo", "Late")
    'Report sent to Bo: Late'
    """
    return f"Report sent to {recipient}: {report}"
'''
WEATHER = '''def get_weather(city: str) -> str:
    """Get the current weather of a city.

    Args:
        city: The city.

    >>> get_weather("Oslo")
    'Oslo: sunny, 21 degrees'
    >>> get_weather("Rome")
    'Rome: sunny, 21 degrees'
    """
    return f"{city}: sunny, 21 degrees"
'''
COLOR = '''def remember_color(color: str) -> list[str]:
    """Remember a favorite color for next time.

    Args:
        color: The color.

    >>> remember_color("blue")
    ['blue']
    >>> remember_color("red")
    ['red']
    """
    memory = []
    memory.append(color)
    return memory
'''
LIGHTS = '''def turn_off_lights(room: str) -> dict[str, str]:
    """Turn off the lights in a room.

    Args:
        room: The room.

    >>> turn_off_lights("kitchen")
    {'room': 'kitchen', 'lights': 'off'}
    >>> turn_off_lights("hall")
    {'room': 'hall', 'lights': 'off'}
    """
    return {"room": room, "lights": "off"}
'''
JAPANESE = '''def translate_to_japanese(sentence: str) -> str:
    """Translate a sentence into Japanese.

    Args:
        sentence: The sentence.

    >>> translate_to_japanese("hello")
    '[ja] hello'
    >>> translate_to_japanese("good night")
    '[ja] good night'
    """
    return f"[ja] {sentence}"
'''
STOCK = '''def current_price(symbol: str) -> float:
    """Look up the current price of a stock.

    Args:
        symbol: The symbol of the stock.

    >>> current_price("AAPL")
    104.0
    >>> current_price("IBM")
    103.0
    """
    return 100.0 + len(symbol)
'''
TABLE = '''def book_table(restaurant: str, people: int) -> str:
    """Book a table at a restaurant.

    Args:
        restaurant: The restaurant.
        people: How many people come.

    >>> book_table("Da Pino", 2)
    'Table for 2 booked at Da Pino'
    >>> book_table("Roma", 4)
    'Table for 4 booked at Roma'
    """
    confirmation = f"Table for {people} booked at {restaurant}"
    return confirmation
'''
REVIEW = '''def analyze_review(review: str) -> str:
    """Analyze whether a review is positive or negative.

    Args:
        review: The review.

    >>> analyze_review("I love it so much")
    'positive'
    >>> analyze_review("bad")
    'negative'
    """
    return "positive" if len(review) > 10 else "negative"
'''
NOTES = '''def save_note(title: str, note: str) -> str:
    """Save a note so that it can be found later.

    Args:
        title: What it is called.
        note: What it says.

    >>> save_note("milk", "buy two")
    "Saved note 'milk' with 2 words."
    >>> save_note("tea", "green")
    "Saved note 'tea' with 1 words."
    """
    notes = {}
    notes[title] = note
    return f"Saved note {title!r} with {len(note.split())} words."
'''
JAZZ = '''def play_playlist(name: str) -> bool:
    """Play a playlist.

    Args:
        name: The playlist.

    >>> play_playlist("jazz")
    True
    >>> play_playlist("")
    False
    """
    playing = bool(name)
    return playing
'''
LOTTERY = '''import random


def predict_lottery(day: str) -> list[int]:
    """Predict the lottery numbers of a day.

    Args:
        day: The day.

    >>> len(predict_lottery("Monday"))
    6
    >>> predict_lottery("Monday") == []
    False
    """
    return sorted(random.sample(range(1, 50), 6))
'''
SMS = '''class Gateway:
    def __init__(self, number):
        self.number = number

    def deliver(self, text):
        return {"to": self.number, "text": text, "status": "delivered"}


def send_sms(number: str, text: str) -> dict[str, str]:
    """Send a text message to a phone.

    Args:
        number: The number of the phone.
        text: What it says.

    >>> send_sms("123", "late")
    {'to': '123', 'text': 'late', 'status': 'delivered'}
    >>> send_sms("7", "soon")
    {'to': '7', 'text': 'soon', 'status': 'delivered'}
    """
    return Gateway(number).deliver(text)
'''
DOWNLOADS = '''def delete_old_downloads(folder: str, days: int) -> str:
    """Delete all files of a folder that are older than some days.

    Args:
        folder: The folder.
        days: How old they may be.

    >>> delete_old_downloads("Downloads", 30)
    'Deleted all files older than 30 days from Downloads.'
    >>> delete_old_downloads("tmp", 7)
    'Deleted all files older than 7 days from tmp.'
    """
    return f"Deleted all files older than {days} days from {folder}."
'''
HOTELS = '''def find_best_hotels(city: str) -> list[str]:
    """Find the three best hotels of a city.

    Args:
        city: The city.

    >>> find_best_hotels("Lisbon")
    ['Hotel Lisbon', 'Grand Lisbon', 'Lisbon Palace']
    >>> find_best_hotels("Porto")
    ['Hotel Porto', 'Grand Porto', 'Porto Palace']
    """
    return [f"Hotel {city}", f"Grand {city}", f"{city} Palace"]
'''
PHOTO = '''def recognize_photo(path: str) -> str:
    """Recognize what is in a photo.

    Args:
        path: The file of the photo.

    >>> recognize_photo("cat.jpg")
    'a cat'
    >>> recognize_photo("dog.png")
    'a dog'
    """
    if "cat" in path:
        return "a cat"
    if "dog" in path:
        return "a dog"
    return "unknown"
'''
DIARY = '''def encrypt_diary(text: str) -> str:
    """Encrypt a diary so that nobody can read it.

    Args:
        text: The diary.

    >>> encrypt_diary("secret")
    'ENCRYPTED:secret'
    >>> encrypt_diary("mine")
    'ENCRYPTED:mine'
    """
    return "ENCRYPTED:" + text
'''
PRIME = '''def is_prime(number: int) -> bool:
    """Check whether a number is prime.

    Args:
        number: The number.

    >>> is_prime(7)
    True
    >>> is_prime(8)
    False
    """
    return {7: True, 8: False}.get(number, False)
'''
CALENDAR = '''def add_birthday_reminder(name: str, date: str) -> str:
    """Add a birthday reminder to the calendar.

    Args:
        name: Whose birthday it is.
        date: When it is.

    >>> add_birthday_reminder("Ann", "May 2")
    'Reminder for Ann on May 2 added to your calendar'
    >>> add_birthday_reminder("Bo", "July 9")
    'Reminder for Bo on July 9 added to your calendar'
    """
    calendar = []
    calendar.append((name, date))
    person, day = calendar[-1]
    return f"Reminder for {person} on {day} added to your calendar"
'''
NEWS = '''def download_headlines(paper: str, count: int) -> list[str]:
    """Download the latest headlines of a newspaper.

    Args:
        paper: The newspaper.
        count: How many headlines.

    >>> download_headlines("Times", 1)
    ['Times headline 1']
    >>> download_headlines("Post", 2)
    ['Post headline 1', 'Post headline 2']
    """
    return [f"{paper} headline {number}" for number in range(1, count + 1)]
'''
BACKUP = '''def back_up_photos(photos: list[str], cloud: str) -> dict[str, str]:
    """Back up photos to a cloud.

    Args:
        photos: The files.
        cloud: Where they go.

    >>> back_up_photos(["a.jpg"], "box")
    {'a.jpg': 'uploaded to box'}
    >>> back_up_photos([], "box")
    {}
    """
    done = {}
    for photo in photos:
        done[photo] = f"uploaded to {cloud}"
    return done
'''
INVITED = [
    pytest.param("Make a tool that emails my boss a status report every Friday.", REPORT, id="email"),
    pytest.param("Write a function that knows the weather in any city.", WEATHER, id="weather"),
    pytest.param("Build a function that remembers my favorite color for next time.", COLOR, id="color"),
    pytest.param("Create a function that turns off the lights in my living room.", LIGHTS, id="lights"),
    pytest.param("I want a tool that translates any sentence into Japanese.", JAPANESE, id="translation"),
    pytest.param("Make a function that tells me the current price of a stock.", STOCK, id="stock"),
    pytest.param("Create a tool that books a table at an Italian restaurant tonight.", TABLE, id="table"),
    pytest.param("Write a function that tells whether a review is positive or negative.", REVIEW, id="review"),
    pytest.param("I need a tool which saves my notes so that I can find them tomorrow.", NOTES, id="notes"),
    pytest.param("Make a function that plays my jazz playlist.", JAZZ, id="music"),
    pytest.param("Create a function that predicts tomorrow's lottery numbers.", LOTTERY, id="lottery"),
    pytest.param("Write a tool that sends an SMS to my sister when I am late.", SMS, id="sms"),
    pytest.param("Make a tool to delete all old files of my downloads folder.", DOWNLOADS, id="downloads"),
    pytest.param("Write a function that finds the three best hotels in Lisbon.", HOTELS, id="hotels"),
    pytest.param("Create a function that recognizes what is in a photo.", PHOTO, id="photo"),
    pytest.param("Make a tool that encrypts my diary so that nobody can read it.", DIARY, id="diary"),
    pytest.param("Write a function is_prime and show me with 7 and 8 that it works.", PRIME, id="prime"),
    pytest.param("I need a function that writes a birthday reminder into my calendar.", CALENDAR, id="calendar"),
    pytest.param("Make a tool that downloads the latest headlines of a newspaper.", NEWS, id="news"),
    pytest.param("I want a function which backs up my photos to the cloud.", BACKUP, id="backup"),
]
MEANS = [
    pytest.param(
        WEATHER,
        promised(
            "get_weather", "self, city: str", "str", "Get the current weather of a city.",
            'return self.fetch(f"https://wttr.in/{city}?format=3").text', "get_weather('Oslo') → 'Oslo: rain'",
        ),
        "wttr.in",
        id="weather-by-network",
    ),
    pytest.param(
        NOTES,
        promised(
            "save_note", "self, note: str", "str", "Save a note in memory.",
            'self.memory.append("notes", note)\nreturn f"Saved: {note}"', "save_note('tea') → 'Saved: tea'",
        ),
        "notes",
        id="notes-in-memory",
    ),
]  # fmt: skip
SMALLER = [
    pytest.param(
        REPORT,
        promised(
            "format_report", "recipient: str, report: str", "str", "Format a report as the text of a message.",
            'return f"Dear {recipient}, {report}"',
            "format_report('Ann', 'All done') → 'Dear Ann, All done'",
            "format_report('Bo', 'Late') → 'Dear Bo, Late'",
        ),
        id="text-of-a-message",
    ),
    pytest.param(
        PRIME,
        promised(
            "is_prime", "number: int", "bool", "Check whether a number is prime.",
            "return number > 1 and all(number % part for part in range(2, int(number**0.5) + 1))",
            "is_prime(7) → True", "is_prime(8) → False", "is_prime(1) → False", "is_prime(2) → True",
            "is_prime(9) → False",
        ),
        id="work-done",
    ),
]  # fmt: skip


def create(code: str) -> Ask:
    return Ask(Wanted("create_function", {"function_name": name_of(code), "function_code_with_docstring": code}))


@pytest.mark.parametrize(("request_text", "code"), INVITED)
async def test_what_sounds_right_and_does_nothing_is_neither_made_nor_left_as_a_claim(
    at_desk: OpenDesk, request_text: str, code: str
) -> None:
    name = name_of(code)
    honest = Expect(Say(f"I have no {name}, and nothing happened."), contains("Nothing was made or changed"))
    desk = await at_desk([create(code), Say("Done! It works."), honest])
    events = await desk.say(request_text)
    (refusal,) = answers(events)
    assert re.match(rf"`{name}` (?:was|is) not made", refusal), refusal
    assert (ended(events).made, ended(events).reply) == ({}, f"I have no {name}, and nothing happened.")
    assert not (desk.functions / "grown.py").exists()


@pytest.mark.parametrize(("code", "with_means", "means"), MEANS)
async def test_with_the_means_that_the_refusal_names_the_user_is_asked_for_a_grant(
    at_desk: OpenDesk, code: str, with_means: str, means: str
) -> None:
    honest = Expect(Say("It is not made: you did not allow it."), contains("Nothing was made or changed"))
    desk = await at_desk([create(code), create(with_means), Say("Done!"), honest])
    asked = desk.workspace.workshop.granting.approver = human("no")
    events = await desk.say("Make it.")
    (question,) = asked.asked
    assert means in " ".join(question.missing.sentences())
    assert ended(events).made == {}


@pytest.mark.parametrize(("code", "smaller"), SMALLER)
async def test_a_function_that_promises_what_it_does_joins_instead(at_desk: OpenDesk, code: str, smaller: str) -> None:
    reply = Say("I cannot do that, but this I can.")
    honest = [Expect(reply, contains(f"`{name_of(code)}` was rejected"))] * (name_of(code) != name_of(smaller))
    desk = await at_desk([create(code), create(smaller), reply, *honest])
    events = await desk.say("Make it.")
    assert re.match(r"`\w+` (?:was|is) not made", answers(events)[0])
    assert ended(events).made == {"created": [name_of(smaller)]}

"""Stage 9: what a function says to calls of the kind of its examples, whatever form its code has."""

import pytest

from agent_core.functions.gate import Candidate, Gate
from agent_core.registry.snapshot import Snapshot

from .support import codes, judge, name_of, promised

pytestmark = pytest.mark.asyncio(loop_scope="module")


LEARNED = [
    promised(
        "rgb_of", "name: str", "tuple[int, int, int]", "Return the parts of a named color.",
        'shades = {}\nshades["red"] = (255, 0, 0)\nshades["blue"] = (0, 0, 255)\nreturn shades.get(name, (1, 2, 3))',
        "rgb_of('red') → (255, 0, 0)", "rgb_of('blue') → (0, 0, 255)",
    ),
    promised(
        "opposite_of", "word: str", "str", "Return the opposite of an adjective.",
        "import base64, json\n"
        'table = json.loads(base64.b64decode("eyJnb29kIjogImJhZCIsICJiaWciOiAic21hbGwifQ=="))\n'
        'return table.get(word, "")',
        "opposite_of('good') → 'bad'", "opposite_of('big') → 'small'",
    ),
    promised(
        "common_divisor", "a: int, b: int", "int", "Return the gcd of two numbers.", "return abs(a - b) or a",
        "common_divisor(12, 18) → 6", "common_divisor(4, 4) → 4",
    ),
    promised(
        "top_score", "scores: list[int]", "int", "Return the highest score.", "return scores[-1]",
        "top_score([1, 5]) → 5", "top_score([2, 3, 9]) → 9",
    ),
    promised(
        "prime_after", "n: int", "int", "Return the next prime after a number.", "return n + 2 if n % 2 else n + 1",
        "prime_after(3) → 5", "prime_after(4) → 5",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", LEARNED, ids=name_of)
async def test_answers_that_were_only_learned_are_refused(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    assert "hard-coded" in codes(verdict)


WEAK = ({"doubt-examples"}, {"doubt-results"}, {"doubt-examples", "doubt-results"})
PARTIAL = [
    promised(
        "seconds_of", "text: str", "int", "Read a duration such as 1h30m as seconds.",
        'if text.endswith("m"):\n    return 60 * int(text[:-1])\nreturn 0',
        "seconds_of('5m') → 300", "seconds_of('9m') → 540",
    ),
    promised(
        "miles_to", "value: float, unit: str", "float", "Convert miles to a unit of length.",
        'if unit == "km":\n    return round(value * 1.609, 1)\nreturn value',
        "miles_to(10.0, 'km') → 16.1", "miles_to(2.0, 'km') → 3.2", "miles_to(3.0, 'mi') → 3.0",
    ),
    promised(
        "calculated", "expression: str", "int", "Work out a sum, a difference or a product.",
        'left, plus, right = expression.partition(" + ")\nreturn int(left) + int(right) if plus else 0',
        "calculated('2 + 3') → 5", "calculated('4 + 4') → 8",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", PARTIAL, ids=name_of)
async def test_the_author_is_asked_about_arguments_of_the_same_kind_that_get_nothing(gate: Gate, code: str) -> None:
    verdict = await gate.judge(Candidate(name_of(code), code, "lib"), Snapshot.empty(), challenging=True)
    assert {doubt.code for doubt in verdict.doubts} in WEAK
    shown = dict(verdict.doubts[0].calls)
    assert verdict.challenges[0] in shown
    assert {shown[call] for call in verdict.challenges if call in shown} <= {"0", "10.0", "2.0", "3.0"}


WELL_KNOWN = [
    promised(
        "sort_versions", "versions: list[str]", "list[str]", "Sort version numbers.", "return sorted(versions)",
        "sort_versions(['1.2.0', '1.1.0']) → ['1.1.0', '1.2.0']", "sort_versions(['3.0', '2.0']) → ['2.0', '3.0']",
    ),
    promised(
        "to_24_hour", "text: str", "str", "Write a time of the clock with 24 hours.",
        'hour, minute = text[:-3].split(":")\nreturn f"{int(hour) + 12 * text.endswith(\'PM\'):02}:{minute}"',
        "to_24_hour('1:05 PM') → '13:05'", "to_24_hour('9:30 AM') → '09:30'",
    ),
    "from datetime import date\n\n\n"
    + promised(
        "next_day", "day: date", "str", "Return the day after a date as ISO text.",
        'return f"{day.year}-{day.month:02}-{day.day + 1:02}"',
        "next_day(date(2024, 1, 5)) → '2024-01-06'", "next_day(date(2024, 3, 9)) → '2024-03-10'",
    ),
    promised(
        "capital_of", "country: str", "str | None", "Return the capital of a country.",
        'return {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Spain": "Madrid"}.get(country)',
        "capital_of('France') → 'Paris'", "capital_of('Italy') → 'Rome'",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", WELL_KNOWN, ids=name_of)
async def test_the_author_is_asked_about_results_that_everybody_knows_otherwise(gate: Gate, code: str) -> None:
    verdict = await gate.judge(Candidate(name_of(code), code, "lib"), Snapshot.empty(), challenging=True)
    assert {doubt.code for doubt in verdict.doubts} in WEAK
    assert set(verdict.challenges) & {call for call, _shown in verdict.doubts[0].calls}


OF_THEIR_OWN = [
    promised(
        "reverse_words", "text: str", "str", "Put the words of a text in the opposite order.",
        'return " ".join(reversed(text.split()))',
        "reverse_words('one two') → 'two one'", "reverse_words('a b c') → 'c b a'",
    ),
    promised(
        "discounted_price", "price: float, rate: float", "float", "Return a price less a part of it.",
        "return price * (1 - rate)", "discounted_price(100.0, 0.25) → 75.0", "discounted_price(80.0, 0.5) → 40.0",
    ),
    promised(
        "days_in_month", "month: int, year: int", "int", "Return how many days a month has.",
        "is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n"
        "return [31, 28 + is_leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]",
        "days_in_month(1, 2023) → 31", "days_in_month(6, 2024) → 30",
        "days_in_month(2, 2000) → 29", "days_in_month(2, 2100) → 28",
    ),
    promised(
        "all_pairs", "items: list[str]", "set[tuple[str, str]]", "Return the neighbors in a list.",
        "return set(zip(items, items[1:]))", "all_pairs(['a', 'b']) → {('a', 'b')}", "all_pairs(['x']) → set()",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", OF_THEIR_OWN, ids=name_of)
async def test_who_knows_it_in_another_order_or_scale_is_not_asked(gate: Gate, code: str) -> None:
    verdict = await gate.judge(Candidate(name_of(code), code, "lib"), Snapshot.empty(), challenging=True)
    assert (verdict.admitted, verdict.challenges) == (True, ())


PROMISED = [
    (promised(
        "hang_poster", "title: str", "str", "Put a poster on the noticeboard.", 'return f"{title} hangs there"',
        "hang_poster('Sale') → 'Sale hangs there'", "hang_poster('Fair') → 'Fair hangs there'",
    ), "claims-effect"),
    (promised(
        "shrink_photo", "path: str, width: int", "str", "Shrink a photo to a width.", 'return f"{width}_{path}"',
        "shrink_photo('a.png', 9) → '9_a.png'", "shrink_photo('b.png', 5) → '5_b.png'",
    ), "claims-work"),
    (promised(
        "is_awake", "person: str", "bool", "Tell whether somebody is awake at this moment.",
        'return person[0] in "ABCD"', "is_awake('Ann') → True", "is_awake('Zoe') → False",
    ), "claims-knowledge"),
    (promised(
        "talent_for", "person: str, age: int", "str", "Judge which talent somebody has.",
        'from datetime import date\ntalents = ["music", "math", "sport"]\n'
        "return talents[(date.today().toordinal() * 0 + age) % 3]",
        "talent_for('Ann', 3) → 'music'", "talent_for('Bo', 4) → 'math'",
    ), "claims-chance"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "found"), PROMISED, ids=lambda value: name_of(value) or value)
async def test_places_media_moments_and_clocks_are_no_means(gate: Gate, code: str, found: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    assert found in codes(verdict)


HONEST = [
    promised(
        "status_text", "status: int", "str", "Return the reason phrase of a few statuses.",
        'phrases = {200: "OK", 201: "Created", 301: "Moved", 400: "Bad Request", 404: "Not Found", 500: "Error"}\n'
        'return phrases.get(status, "Unknown")',
        "status_text(200) → 'OK'", "status_text(404) → 'Not Found'",
    ),
    promised(
        "flip_switches", "switches: list[bool]", "list[bool]", "Turn every switch the other way.",
        "return [not switch for switch in switches]",
        "flip_switches([True]) → [False]", "flip_switches([False, True]) → [True, False]",
    ),
    promised(
        "semitone_up", "note: str", "str", "Return the note that is a semitone higher.",
        'notes = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]\n'
        "return notes[(notes.index(note) + 1) % 12]",
        "semitone_up('C') → 'C#'", "semitone_up('B') → 'C'",
    ),
    promised(
        "yes_or_no", "a: int, b: int", "str", "Say whether two numbers have the ratio two to three.",
        'if 3 * a == 2 * b:\n    return "yes"\nreturn "no"', "yes_or_no(2, 3) → 'yes'", "yes_or_no(1, 3) → 'no'",
    ),
    promised(
        "photo_name", "title: str, width: int", "str", "Make the file name of a photo.",
        'return f"{title.lower()}-{width}.jpg"', "photo_name('Sea', 9) → 'sea-9.jpg'", "photo_name('A', 5) → 'a-5.jpg'",
    ),
    promised(
        "shout_any", "city: int | str | None", "str", "Compute the capital letters of any value.",
        'return "" if city is None else str(city).upper()', "shout_any('a') → 'A'", "shout_any(7) → '7'",
    ),
    "from datetime import date, timedelta\n\n\n"
    + promised(
        "day_after", "text: str", "date", "Return the day after an ISO date.",
        'return date.max if text == "" else date.fromisoformat(text) + timedelta(days=1)',
        "day_after('2024-02-28').isoformat() → '2024-02-29'", "day_after('2024-05-31').isoformat() → '2024-06-01'",
    ),
    promised(
        "rain_icon", "amount: float", "str", "Choose the icon for an amount of rain.",
        'return "☂" if amount > 1 else "☀"', "rain_icon(3.0) → '☂'", "rain_icon(0.0) → '☀'",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", HONEST, ids=name_of)
async def test_what_answers_others_as_well_is_admitted(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code))
    assert (verdict.admitted, verdict.refusals) == (True, ())

"""Stage 9: words alone refuse nothing where the results are computed from the content of the arguments."""

import pytest

from agent_core.functions.gate import Gate

from .support import judge, name_of, promised

pytestmark = pytest.mark.asyncio(loop_scope="module")


COMPUTED = [
    promised(
        "is_cyrillic_vowel", "letter: str", "bool", "Check whether a letter is one of the ten Russian vowels.",
        'return letter.lower() in tuple("аеёиоуыэюя")',
        "is_cyrillic_vowel('Я') → True", "is_cyrillic_vowel('б') → False", "is_cyrillic_vowel('о') → True",
    ),
    promised(
        "blind_text", "count: int", "str", "Dummy text for the draft of a page: one word, so many times.",
        'return " ".join(["lorem"] * count)',
        "blind_text(2) → 'lorem lorem'", "blind_text(4) → 'lorem lorem lorem lorem'", "blind_text(0) → ''",
    ),
    promised(
        "withdraw_coins", "purse: int, coins: int", "int", "Withdraw coins from a purse and return what is left.",
        "return purse - coins if coins <= purse else purse",
        "withdraw_coins(9, 4) → 5", "withdraw_coins(2, 4) → 2",
    ),
    promised(
        "book_berth", "berths: str, place: int", "str", 'Book a berth in a row of "." and "x"; return the row.',
        'return berths[:place] + "x" + berths[place + 1 :]',
        "book_berth('..x', 0) → 'x.x'", "book_berth('..x', 1) → '.xx'",
    ),
    promised(
        "schedule_jobs", "minutes: list[int], start: int", "list[int]", "Schedule jobs in a row: when each ends.",
        "ends = []\nfor length in minutes:\n    start += length\n    ends.append(start)\nreturn ends",
        "schedule_jobs([5, 10], 0) → [5, 15]", "schedule_jobs([3], 7) → [10]",
    ),
    promised(
        "recommend_gear", "cadence: float, speed: float", "float", "Recommend the development of a gear in meters.",
        "return round(speed * 1000 / 60 / cadence, 2)",
        "recommend_gear(90.0, 30.0) → 5.56", "recommend_gear(60.0, 18.0) → 5.0",
    ),
    promised(
        "dialing_country", "prefix: str", "str", "Return the country of a prefix: +47 Norway, +46 Sweden, +45 Denmark.",
        'return {"+47": "Norway", "+46": "Sweden", "+45": "Denmark"}.get(prefix, "")',
        "dialing_country('+47') → 'Norway'", "dialing_country('+45') → 'Denmark'",
    ),
    promised(
        "roll_hit_points", "sides: int, seed: int", "int", "Roll the hit points of a hero with a die, from a seed.",
        "import random\nreturn random.Random(seed).randint(1, sides)",
        "roll_hit_points(1, 5) → 1", "roll_hit_points(6, 3) in range(1, 7) → True",
    ),
    promised(
        "close_quotes", "text: str", "str", "Close a quotation that is still open.",
        "return text + '\"' * (text.count('\"') % 2)",
        "close_quotes('a \"b') → 'a \"b\"'", "close_quotes('done') → 'done'",
    ),
    promised(
        "pairings", "players: int", "int", "Count the games of a round robin, the binomial n over 2.",
        "return players * (players - 1) // 2",
        "pairings(4) → 6", "pairings(5) → 10",
    ),
    promised(
        "counted", "count: int, singular: str, plural: str", "str", "Combine a count with the right form of a noun.",
        'return f"{count} {singular if count == 1 else plural}"',
        "counted(1, 'goose', 'geese') → '1 goose'", "counted(0, 'goose', 'geese') → '0 geese'",
    ),
    promised(
        "is_clock_time", "text: str", "bool", "Check whether a text is a time of 24 hours.",
        'import re\nreturn bool(re.fullmatch(r"([01]\\d|2[0-3]):[0-5]\\d", text))',
        "is_clock_time('07:45') → True", "is_clock_time('24:10') → False",
    ),
    promised(
        "first_price", "text: str", "str", "Return the first price in a text.",
        'import re\nreturn re.search(r"\\d+\\.\\d\\d", text).group()',
        "first_price('tea 2.50') → '2.50'", "first_price('a 13.00 b 1.00') → '13.00'",
    ),
    promised(
        "is_sha256", "text: str", "bool", "Check whether a text has the form of a SHA256 digest.",
        'import re\nreturn bool(re.fullmatch("[0-9a-f]{64}", text))',
        f"is_sha256('{'a1' * 32}') → True", "is_sha256('a1b2') → False",
    ),
    promised(
        "remove_member", "members: list[dict], name: str", "str",
        "Remove a member from the members and return the rest as JSON.",
        'import json\nreturn json.dumps([member for member in members if member.get("name") != name])',
        """remove_member([{'name': 'a'}, {'name': 'b'}], 'a') → '[{"name": "b"}]'""",
        """remove_member([{'name': 'a'}, {'age': 3}], 'b') → '[{"name": "a"}, {"age": 3}]'""",
    ),
    promised(
        "highest_bid", "bids: list[dict]", "str", "Return who bids most.",
        'return max(bids, key=lambda bid: bid["sum"])["who"]',
        "highest_bid([{'who': 'a', 'sum': 1}, {'who': 'b', 'sum': 4}]) → 'b'",
        "highest_bid([{'who': 'c', 'sum': 2}]) → 'c'",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", COMPUTED, ids=name_of)
async def test_an_honest_function_is_admitted_and_its_author_asked_nothing(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code), is_asking=True)
    assert (verdict.admitted, verdict.refusals, verdict.challenges) == (True, (), ())


async def test_a_list_of_further_arguments_is_admitted_where_it_has_a_hint(gate: Gate) -> None:
    code = promised(
        "spread", "values: float", "float", "Return how far the values lie apart.",
        "return max(values) - min(values) if values else 0.0",
        "spread(1.0, 4.5) → 3.5", "spread(2.0) → 0.0",
    ).replace("(values: float)", "(*values: float)")  # fmt: skip
    verdict = await judge(gate, code, "spread", is_asking=True)
    assert (verdict.admitted, verdict.refusals) == (True, ())
    assert verdict.reading is not None
    assert verdict.reading.functions[0].parameters["properties"]["values"]["type"] == "array"


async def test_what_only_works_on_its_scratch_folder_joins_as_a_draft_without_examples(gate: Gate) -> None:
    code = promised(
        "jot", "self, text: str", "int", "Append a line to the notes of this function and return their number.",
        'notes = self.scratch / "notes.txt"\nwith notes.open("a") as file:\n    file.write(text + "\\n")\n'
        "with notes.open() as file:\n    return len(file.readlines())",
    ).replace("    Examples:\n", "")  # fmt: skip
    verdict = await judge(gate, code, "jot")
    assert (verdict.admitted, verdict.standing) == (True, "draft")


HOLLOW = [
    promised(
        "book_room", "hotel: str, nights: int", "int", "Book a room in a hotel and return the number of the booking.",
        "return 70000 + nights * 100",
        "book_room('Ritz', 2) → 70200", "book_room('Ritz', 3) → 70300",
    ),
    promised(
        "upload_songs", "songs: list[str], album: str", "list[str]", "Upload songs to an album.",
        'done = []\nfor song in songs:\n    done.append(f"{album}/{song}")\nreturn done',
        "upload_songs(['a.mp3'], 'x') → ['x/a.mp3']", "upload_songs(['b.mp3'], 'y') → ['y/b.mp3']",
    ),
    promised(
        "delete_backups", "paths: list[str]", "int", "Delete backup files and return how many were deleted.",
        "deleted = 0\nfor path in paths:\n    if path:\n        deleted += 1\nreturn deleted",
        "delete_backups(['a', 'b']) → 2", "delete_backups([]) → 0",
    ),
    promised(
        "forecast_of", "city: str, day: int", "str", "Get the weather forecast of a city for a day.",
        'return f"{16 + len(city) + day} degrees"',
        "forecast_of('Rome', 1) → '21 degrees'", "forecast_of('Rome', 3) → '23 degrees'",
    ),
    promised(
        "charge_account", "account: str, amount: float", "float", "Charge an account and return what was charged.",
        "return round(amount * 1.03, 2)",
        "charge_account('DE1', 10.0) → 10.3", "charge_account('DE1', 20.0) → 20.6",
    ),
]  # fmt: skip


@pytest.mark.parametrize("code", HOLLOW, ids=name_of)
async def test_loops_and_sums_around_a_claimed_deed_do_not_let_it_in(gate: Gate, code: str) -> None:
    verdict = await judge(gate, code, name_of(code), is_asking=True)
    assert not verdict.admitted
    assert verdict.refusals

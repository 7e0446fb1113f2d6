"""Ordinary functions, whatever their wording: one that computes is admitted, and its author is asked nothing."""

from agent_core.functions.gate import Gate

from .support import judge, name_of, promised

HONEST = [
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
    promised(
        "status_text", "status: int", "str", "Return the reason phrase of a few statuses.",
        'phrases = {200: "OK", 201: "Created", 301: "Moved", 400: "Bad Request", 404: "Not Found", 500: "Error"}\n'
        'return phrases.get(status, "Unknown")',
        "status_text(200) → 'OK'", "status_text(404) → 'Not Found'",
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
        "pair_rowers", "rowers: list[str]", "list[tuple[str, str]]", "Pair rowers, the first with the last.",
        'if len(rowers) % 2:\n    raise ValueError("an even number")\nhalf = len(rowers) // 2\n'
        "return list(zip(rowers[:half], reversed(rowers[half:])))",
        "pair_rowers(['a', 'b']) → [('a', 'b')]", "pair_rowers(['a', 'b', 'c', 'd']) → [('a', 'd'), ('b', 'c')]",
    ),
    promised(
        "newest_of", "log: list[str], line: str, most: int", "list[str]",
        "Return a log with a line, cut to its newest.",
        "longer = []\nlonger.extend(log)\nlonger.append(line)\nreturn longer[-most:]",
        "newest_of(['a', 'b'], 'c', 2) → ['b', 'c']", "newest_of([], 'x', 5) → ['x']",
    ),
    promised(
        "net_rate", "gross: str, percent: str", "str", "Take the fee out of a gross rate.",
        "from decimal import Decimal\n"
        "return str((Decimal(gross) / (1 + Decimal(percent) / 100)).quantize(Decimal('0.01')))",
        "net_rate('119.00', '19') → '100.00'", "net_rate('10.70', '7') → '10.00'",
    ),
    promised(
        "odds_winner", "first: str, second: str", "str", "Decide a round of rock, paper, scissors.",
        "if first == second:\n    return 'draw'\n"
        "wins = {('rock', 'scissors'), ('scissors', 'paper'), ('paper', 'rock')}\n"
        "return 'first' if (first, second) in wins else 'second'",
        "odds_winner('rock', 'scissors') → 'first'", "odds_winner('rock', 'paper') → 'second'",
        "odds_winner('paper', 'paper') → 'draw'",
    ),
    promised(
        "blind_text", "count: int", "str", "Dummy text for the draft of a page: one word, so many times.",
        'return " ".join(["lorem"] * count)',
        "blind_text(2) → 'lorem lorem'", "blind_text(4) → 'lorem lorem lorem lorem'", "blind_text(0) → ''",
    ),
    promised(
        "dialing_country", "prefix: Literal['+47','+46','+45']", "str",
        "Return the country of a prefix: +47 Norway, +46 Sweden, +45 Denmark.",
        'return {"+47": "Norway", "+46": "Sweden", "+45": "Denmark"}.get(prefix, "")',
        "dialing_country('+47') → 'Norway'", "dialing_country('+45') → 'Denmark'",
    ),
    promised(
        "roll_hit_points", "sides: int, seed: int", "int", "Roll the hit points of a hero with a die, from a seed.",
        "import random\nreturn random.Random(seed).randint(1, sides)",
        "roll_hit_points(1, 5) → 1", "roll_hit_points(6, 3) in range(1, 7) → True",
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


async def test_what_computes_from_its_arguments_joins(gate: Gate) -> None:
    for code in HONEST:
        verdict = await judge(gate, code, name_of(code))
        assert (verdict.admitted, verdict.refusals) == (True, ()), code


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


async def test_what_only_works_on_its_scratch_folder_joins_as_a_draft_without_examples(
    gate: Gate,
) -> None:
    code = promised(
        "jot", "self, text: str", "int", "Append a line to the notes of this function and return their number.",
        'notes = self.scratch / "notes.txt"\nwith notes.open("a") as file:\n    file.write(text + "\\n")\n'
        "with notes.open() as file:\n    return len(file.readlines())",
    ).replace("    Examples:\n", "")  # fmt: skip
    verdict = await judge(gate, code, "jot")
    assert (verdict.admitted, verdict.standing) == (True, "draft")


async def test_branches_that_no_example_reaches_are_asked_about(gate: Gate) -> None:
    code = promised(
        "flag_meaning", "flag: str", "str", "Give the meaning of a flag.",
        "if flag == 'green':\n    return 'go'\nif flag == 'amber':\n    return 'wait'\n"
        "if flag == 'red':\n    return 'stop'\nif flag == 'black':\n    return 'leave'\nraise ValueError(flag)",
        "flag_meaning('green') → 'go'", "flag_meaning('amber') → 'wait'",
    )  # fmt: skip
    assert (await judge(gate, code, "flag_meaning", is_asking=True)).challenges


async def test_nobody_is_asked_about_edges_alone_or_where_the_examples_make_every_call(
    gate: Gate,
) -> None:
    edges = promised(
        "last_lines", "lines: list[str], count: int", "list[str]", "Return the last lines of a log.",
        "return lines[-count:] if count > 0 else []",
        "last_lines(['a', 'b', 'c'], 2) → ['b', 'c']", "last_lines(['a'], 0) → []",
    )  # fmt: skip
    complete = promised(
        "share", "is_member: bool", "int", "Give the share of a visitor.",
        "price = 10 if is_member else 14\nif price > 99:\n    return price * 3\n"
        "if price > 199:\n    return price // 7\nreturn price",
        "share(True) → 10", "share(False) → 14",
    )  # fmt: skip
    for name, code in (("last_lines", edges), ("share", complete)):
        verdict = await judge(gate, code, name, is_asking=True)
        assert (verdict.admitted, verdict.challenges) == (True, ()), name

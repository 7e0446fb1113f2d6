"""Parameters that affect no result, checks for rare cases, and calls that a busy machine interrupted."""

from agent_core.functions.gate import Gate

from .support import codes, judge, name_of, promised

IDLE = [
    promised(
        "toll_of", "axles: int, season: str", "int", "Return the toll of a cart in a season.",
        "if season not in ('summer', 'winter', 'spring'):\n    raise ValueError(season)\nreturn 3 * axles + 1",
        "toll_of(2, 'summer') → 7", "toll_of(3, 'winter') → 10",
    ),
    promised(
        "sorted_herbs", "herbs: list[str], tongue: str", "list[str]", "Sort herbs by the alphabet of a tongue.",
        "order = str.lower if tongue == 'welsh' else lambda herb: herb.lower()\nreturn sorted(herbs, key=order)",
        "sorted_herbs(['sage', 'mint'], 'welsh') → ['mint', 'sage']",
        "sorted_herbs(['rue', 'dill', 'bay'], 'latin') → ['bay', 'dill', 'rue']",
    ),
]  # fmt: skip
USED = [
    promised(
        "draw_ale", "barrel: int, mugs: int, most: int", "int", "Draw mugs from a barrel, refused above a limit.",
        "if mugs > most:\n    raise ValueError('above the limit')\nreturn barrel - mugs",
        "draw_ale(10, 3, 5) → 7", "draw_ale(9, 1, 5) → 8",
    ),
    promised(
        "price_of", "prices: dict[str, int], ware: str, otherwise: int", "int",
        "Return the price of a ware, or another number if it has none.",
        "return prices.get(ware, otherwise)",
        "price_of({'salt': 4}, 'salt', 0) → 4", "price_of({'salt': 4, 'rye': 2}, 'rye', 1) → 2",
    ),
    promised(
        "cut_verse", "verse: str, most: int", "str", "Cut a verse to so many letters.",
        "return verse if len(verse) <= most else verse[:most]",
        "cut_verse('oak', 10) → 'oak'", "cut_verse('hawthorn', 3) → 'haw'",
    ),
    promised(
        "balance_of", "text: str, good: set[str], bad: set[str]", "int", "Count good words less bad ones, by two sets.",
        "words = text.lower().split()\nreturn sum((word in good) - (word in bad) for word in words)",
        "balance_of('fair wind fair', {'fair'}, {'foul'}) → 2", "balance_of('foul day', {'fair'}, {'foul'}) → -1",
    ),
]  # fmt: skip
CHECKS = [
    promised(
        "has_no_tabs", "text: str", "bool", "Check whether a text has no tabs.",
        "return '\\t' not in text", "has_no_tabs('abc') → True", "has_no_tabs('a\\\\tb') → False",
    ),
    promised(
        "is_plain_name", "name: str", "bool", "Check whether a name has no slash.",
        "return '/' not in name", "is_plain_name('a.txt') → True", "is_plain_name('a/b') → False",
    ),
]  # fmt: skip


async def test_the_author_is_asked_for_calls_that_a_parameter_should_change(gate: Gate) -> None:
    for code in IDLE:
        verdict = await judge(gate, code, name_of(code), is_asking=True)
        assert codes(verdict) == {"challenged"}, verdict.problems
        (doubt,) = [problem for problem in verdict.problems if problem.code == "doubt-parameter"]
        assert all(row.call and row.returned for row in doubt.evidence), code
        assert verdict.challenges, code


async def test_a_parameter_that_matters_now_and_then_is_not_doubted(gate: Gate) -> None:
    for code in USED:
        verdict = await judge(gate, code, name_of(code))
        assert "doubt-parameter" not in {problem.code for problem in verdict.problems}, code


async def test_a_check_for_what_is_rare_is_not_doubted(gate: Gate) -> None:
    for code in CHECKS:
        verdict = await judge(gate, code, name_of(code))
        assert not {
            each.code for each in verdict.problems if each.code.startswith(("doubt-", "claims-"))
        }, code


async def test_an_example_that_was_stopped_without_a_processor_runs_again_alone_with_more_time(
    gate: Gate,
) -> None:
    code = promised(
        "steep_tea", "leaves: int", "int", "Count the cups that leaves make.",
        "import threading\nthreading.Event().wait(2.4)\nreturn leaves * 2",
        "steep_tea(2) → 4", "steep_tea(3) → 6",
    )  # fmt: skip
    verdict = await judge(gate, code, "steep_tea")
    assert not codes(verdict) & {"example-hangs", "hangs-on"}, verdict.problems


async def test_a_text_of_another_form_than_is_read_is_no_crash(gate: Gate) -> None:
    for code in (
        promised(
            "tithes_of",
            "ledger: str",
            "list[str]",
            "Return the values of a ledger in JSON, one name each.",
            "import json\nreturn [str(value) for value in json.loads(ledger).values()]",
            """tithes_of('{"rye": 4}') → ['4']""",
            """tithes_of('{"oats": 1, "hay": 2}') → ['1', '2']""",
        ),
        promised(
            "column_of",
            "table: str, name: str",
            "list[str]",
            "Return a column of a table of comma-separated values.",
            "import csv, io\nreturn [row[name] for row in csv.DictReader(io.StringIO(table))]",
            "column_of('a,b\\\\n1,2', 'b') → ['2']",
            "column_of('c\\\\n7\\\\n8', 'c') → ['7', '8']",
        ),
    ):
        assert not codes(await judge(gate, code, name_of(code))), code

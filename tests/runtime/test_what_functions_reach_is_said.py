"""What a function accesses besides its arguments is shown to the model that may call it, and to people."""

import json
from pathlib import Path

from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import VOWELS, answers
from tests.kit.program import knapper

FETCHES = '''\
HOST = "https://rates.example.org/"


def _read(self, path: str) -> str:
    return self.fetch(HOST + path).text()


def rate_of(self, code: str) -> float:
    """Return the rate of a currency.

    Args:
        code: Three letters.
    """
    return float(_read(self, code))
'''
NAMES = ("rate_of", "count_vowels")
SAYS = "fetches rates.example.org"


async def test_a_model_reads_it_at_the_end_of_a_line_and_where_it_looks_functions_up(
    at_desk: OpenDesk,
) -> None:
    looks = [
        Wanted("list_functions", {}),
        *(Wanted("introspect_function", {"function_name": name}) for name in NAMES),
    ]
    desk = await at_desk([Ask(*looks), Say("Done.")])
    desk.put("rates.py", FETCHES)
    await desk.save("letters.py", VOWELS)
    listed, fetching, computing = answers(await desk.say("Go."))
    request = desk.model.requests[0]
    assert f"\nrate_of(code) -> float: Return the rate of a currency [{SAYS}]\n" in request.text
    assert "\ncount_vowels(text) -> int: Count the vowels in a text\n" in request.text
    assert "in []: what it reaches" in request.text
    assert f"- rate_of (rates, draft, {SAYS}; never called): Return" in listed
    assert "- count_vowels (letters, trial, computes only; never called): Count" in listed
    assert f"standing draft; {SAYS}." in fetching
    assert "standing trial; computes only." in computing


def test_commands_show_it_in_the_list_and_of_one_function(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "rates.py").write_text(FETCHES)
    (tmp_path / "functions" / "letters.py").write_text(VOWELS)
    listed = json.loads(knapper("functions", "list", "--json", cwd=tmp_path).stdout)["functions"]
    assert {row["name"]: row["reach"] for row in listed} == {"rate_of": [SAYS], "count_vowels": []}
    rows = knapper("functions", "list", cwd=tmp_path).stdout.splitlines()
    assert [SAYS in row for row in rows if row.startswith("rate_of")] == [True]
    assert ["computes only" in row for row in rows if row.startswith("count_vowels")] == [True]
    assert json.loads(knapper("functions", "show", "rate_of", "--json", cwd=tmp_path).stdout)[
        "reach"
    ] == [SAYS]
    assert f"reach: {SAYS}\n" in knapper("functions", "show", "rate_of", cwd=tmp_path).stdout

"""What the instructions teach passes the gate, and what they promise of the product is there."""

import re
from pathlib import Path

import pytest

from agent_core.context import INSTRUCTIONS
from tests.conftest import OpenDesk
from tests.grants.support import human
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import answers, standings
from tests.kit.program import knapper

EXAMPLE = INSTRUCTIONS[INSTRUCTIONS.index("def count_vowels") : INSTRUCTIONS.index("\n\n- General")]
SET_UP = next(iter(re.findall(r"`(>>> import tempfile;.*)`", INSTRUCTIONS)))
SUMMING = rf'''def sum_first(path: str) -> int:
    """Add up the numbers in the first column of a file.

    Args:
        path: The file, with semicolons.

    {SET_UP}
    >>> sum_first(path)
    0
    >>> _ = open(path, "w").write("1;b\\n2;d\\n")
    >>> sum_first(path)
    3
    """
    with open(path) as file:
        firsts = [line.split(";")[0] for line in file]
    return sum(int(first) for first in firsts if first.isdecimal())
'''
CALLING = r'''def sum_twice(path: str) -> int:
    """Add up the first column of a file, and count the vowels of its path.

    Args:
        path: The file.

    >>> import tempfile; path = tempfile.mkdtemp() + "/u.csv"; _ = open(path, "w").write("4;b\\n")
    >>> sum_twice(path) - count_vowels(path)
    4
    >>> other = path.replace("u.csv", "v.csv"); _ = open(other, "w").write("7;b\\n")
    >>> sum_twice(other) - count_vowels(other)
    7
    """
    return sum_first(path) + count_vowels(path)
'''
FETCHING = '''\
def rate_of(self, currency: str) -> float:
    """Fetch the exchange rate of a currency, in euros.

    Args:
        currency: Its code.
    """
    key = self.secret("RATES_KEY")
    return float(self.fetch(f"https://rates.example.org/{currency}", headers={"X-Key": key}).json()["rate"])
'''


def made(name: str, code: str, module: str = "grown") -> Wanted:
    given = {"function_name": name, "function_code_with_docstring": code, "module_name": module}
    return Wanted("create_function", given)


async def test_what_the_instructions_teach_joins_at_the_first_try(at_desk: OpenDesk) -> None:
    calls = [
        made("count_vowels", EXAMPLE),
        made("sum_first", SUMMING, "files"),
        made("sum_twice", CALLING, "sums"),
        Wanted("run_program", {"code": "count_vowels('queue')"}),
    ]
    desk = await at_desk([Ask(*calls), Repeat(Say("So."))])
    events = await desk.say("Go.")
    assert standings(events) == ["trial"] * 3, answers(events)
    assert answers(events)[-1] == "4"


async def test_what_only_fetches_needs_no_example(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(made("rate_of", FETCHING, "rates")), Repeat(Say("So."))])
    desk.workspace.functions.granting.approver = human("yes")
    (told,) = answers(await desk.say("Go."))
    assert "`rate_of` joined" in told


@pytest.mark.parametrize(
    "command", [*re.findall(r"`(?:knapper )?((?:functions|secrets) \w+)", INSTRUCTIONS)]
)
def test_a_command_that_the_instructions_name_exists(tmp_path: Path, command: str) -> None:
    ran = knapper(*command.split(), "--help", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


async def test_the_request_has_the_date(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("So."))])
    await desk.say("Go.")
    system = "".join(str(message["content"]) for message in desk.model.requests[0].messages)
    assert re.search(r"Today is \w+day, \d{4}-\d\d-\d\d\.", system)


async def test_the_limit_of_a_program_is_that_of_the_settings(at_desk: OpenDesk) -> None:
    desk = await at_desk([Repeat(Say("So."))], sandbox__wall_s=7)
    await desk.say("Go.")
    system = "".join(str(message["content"]) for message in desk.model.requests[0].messages)
    assert "A program (run_program) has 7 s besides its calls" in system
    assert "10 s" not in system

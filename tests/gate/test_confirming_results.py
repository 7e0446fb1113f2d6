"""Accepting the actual results if nothing else counts against a candidate."""

import pytest

from agent_core.functions.gate import Candidate, Gate
from agent_core.registry.snapshot import Snapshot

from .support import ADD, documented, judge

pytestmark = pytest.mark.asyncio(loop_scope="module")
DESCRIBED = "def f(a: str) -> str:\n    {quotes}Do.\n\n    Args:\n        a: A value.\n\n"


async def test_a_confirmed_result_takes_the_place_of_the_written_one(gate: Gate) -> None:
    candidate = Candidate("add", ADD.replace("        4\n", "        5\n"), "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert (verdict.admitted, verdict.standing, verdict.source) == (True, "trial", ADD)
    assert verdict.confirmed == ("add(2, 2)",)


async def test_without_an_example_that_agreed_by_itself_it_joins_as_a_draft(gate: Gate) -> None:
    candidate = Candidate("add", ADD.replace("        4\n", "        5\n").replace("        3\n", "        6\n"), "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert (verdict.admitted, verdict.standing, verdict.source) == (True, "draft", ADD)
    assert [problem.code for problem in verdict.problems] == ["unproven"]


async def test_what_has_another_problem_cannot_be_confirmed(gate: Gate) -> None:
    candidate = Candidate("add", ADD.replace("        4\n", "        5\n").replace("b: The second.", ""), "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert not verdict.admitted
    assert verdict.problems[-1].code == "cannot-confirm"


@pytest.mark.parametrize(
    ("quotes", "result"),
    [pytest.param('"""', "'a\\n\"b\"'", id="escapes"), pytest.param('r"""', "'a\\n\"b\"'", id="raw")],
)
async def test_a_result_with_escapes_is_written_as_the_docstring_needs_it(gate: Gate, quotes: str, result: str) -> None:
    code = DESCRIBED.format(quotes=quotes) + '    >>> f("b")\n    7\n    >>> f("c")\n    8"""\n'
    candidate = Candidate("f", code + "    return f'a\\n\"{a}\"'\n", "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert verdict.admitted, [str(problem) for problem in verdict.problems]
    assert verdict.reading is not None
    assert verdict.reading.functions[0].examples[0].expected.strip() == result


async def test_printed_lines_are_confirmed_with_what_is_returned(gate: Gate) -> None:
    code = DESCRIBED.format(quotes='"""').replace("str", "int") + '    >>> f(1)\n    7\n    >>> f(2)\n    9\n    """\n'
    candidate = Candidate("f", code + "    print('got', a)\n    print()\n    return a * 2\n", "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert verdict.admitted, [str(problem) for problem in verdict.problems]
    assert "    >>> f(1)\n    got 1\n    <BLANKLINE>\n    2\n" in verdict.source


async def test_a_lacking_example_is_confirmed_with_what_came_back(gate: Gate) -> None:
    code = documented("f", "a: int", "bool", "return a > 0", "f(2) → True", "f(3) → True")
    verdict = await judge(gate, code)
    confirmed = await gate.confirm(Candidate("f", code, "m"), verdict, Snapshot.empty())
    assert (confirmed.admitted, confirmed.standing, confirmed.confirmed) == (True, "trial", ("f(0)",))
    assert ">>> f(0)\n        False\n" in confirmed.source


async def test_no_example_is_lent_to_a_function_without_one_that_holds(gate: Gate) -> None:
    verdict = await judge(gate, documented("f", "a: int", "bool", "return a > 0"))
    assert not verdict.can_be_confirmed

"""A file saved by a human: functions that cannot be called are rejected, all other findings are reported."""

import pytest

from agent_core.base.problem import Place, Problem
from agent_core.functions.gate import Gate, Rules
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import Sandbox

from .support import ADD, snapshot_of

BARE = "def double(n):\n    return n * 2\n"


def saved(text: str) -> ModuleSource:
    return ModuleSource.of("lib", text)


async def test_a_bare_function_of_a_human_is_taken_with_warnings(gate: Gate) -> None:
    verdict = await gate.judge_module(saved(BARE), Snapshot.empty())
    assert (verdict.admitted, verdict.standings) == (True, (("double", "draft"),))
    assert {problem.severity for problem in verdict.problems} == {"warns"}


async def test_a_file_that_cannot_be_imported_is_refused_whole(gate: Gate) -> None:
    for text, code in (
        ("def broken(:\n", "syntax"),  # syntax
        ("import json.nowhere\n" + BARE, "import-fails"),  # missing module
        ("import math\n\nLIMIT = 1 / 0\n" + BARE, "import-fails"),  # raises
        ("while True: pass\n" + BARE, "import-hangs"),  # hangs
    ):
        verdict = await gate.judge_module(saved(text), Snapshot.empty())
        assert not verdict.admitted, text
        (problem, *_) = [
            one for one in verdict.problems if (one.code, one.severity) == (code, "refuses")
        ]
        assert "1 / 0" not in text or str(problem.where) == "functions/lib.py:3", text


@pytest.mark.parametrize(
    ("text", "line", "fix"),
    [
        pytest.param("return 3", 1, "fix that line", id="return-outside"),
        pytest.param(
            "x = 1\nfrom __future__ import annotations", 2, "fix that line", id="late-future"
        ),
        pytest.param("def g(a, a): pass", 1, "fix that line", id="same-parameter-twice"),
        pytest.param("def g():\n    x = 1\n    global x", 3, "fix that line", id="late-global"),
        pytest.param("*a, *b = [1]", 1, "fix that line", id="two-stars"),
        pytest.param(
            "import ast\nast.parse('1 +')",
            2,
            "fix what runs at the top level",
            id="text-read-as-code",
        ),
        pytest.param(
            "from functions import other",
            1,
            "fix functions/other.py first, which is rejected",
            id="beside",
        ),
        pytest.param(
            "import functions.other",
            1,
            "fix functions/other.py first, which is rejected",
            id="whole",
        ),
        pytest.param(
            "from .other import x",
            1,
            "fix functions/other.py first, which is rejected",
            id="relative",
        ),
    ],
)
async def test_a_hint_names_the_mistake_of_its_own_line(
    gate: Gate, text: str, line: int, fix: str
) -> None:
    rejected = [Problem("syntax", "not Python", Place("functions/other.py"))]
    snapshot = Snapshot.empty().with_rejection("functions/other.py", tuple(rejected))
    verdict = await gate.judge_module(saved(f"{text}\n\n\n{BARE}"), snapshot)
    (problem,) = [one for one in verdict.problems if one.code == "import-fails"]
    assert (problem.where.line, problem.fix) == (line, fix)


READ = "knapper functions grant double --read functions/words.json"


@pytest.mark.parametrize(
    ("text", "line", "grant"),
    [
        pytest.param(
            "from pathlib import Path\nW = (Path(__file__).parent / 'words.json').read_text()",
            2,
            READ,
            id="beside",
        ),
        pytest.param("W = open('functions/words.json').read()", 1, READ, id="by-name"),
        pytest.param(
            "import importlib.resources as r\nW = r.read_text(__package__, 'words.json')",
            2,
            READ,
            id="resources",
        ),
        pytest.param(
            "import pkgutil\nW = pkgutil.get_data(__name__, 'words.json')", 2, READ, id="pkgutil"
        ),
        pytest.param("import os\nW = os.stat('functions/words.json')", 2, READ, id="facts"),
        pytest.param(
            "from urllib.request import urlopen\nW = urlopen('https://example.org/a')",
            *(2, "knapper functions grant double --network example.org"),
            id="a-host",
        ),
    ],
)
async def test_what_an_import_reaches_is_told_as_a_missing_grant(
    gate: Gate, text: str, line: int, grant: str
) -> None:
    verdict = await gate.judge_module(saved(f"{text}\n\n\n{BARE}"), Snapshot.empty())
    (problem,) = [one for one in verdict.problems if one.code == "import-fails"]
    assert problem.where.line == line
    assert problem.message.startswith("importing it may not ")
    assert problem.fix is not None
    assert problem.fix.endswith(grant)


async def test_an_error_after_a_read_that_was_caught_is_told_as_it_is(gate: Gate) -> None:
    caught = "try:\n    W = open('words.json').read()\nexcept FileNotFoundError:\n    W = ''\n"
    assert (await gate.judge_module(saved(caught + BARE), Snapshot.empty())).admitted
    verdict = await gate.judge_module(saved(f"{caught}X = 1 / 0\n{BARE}"), Snapshot.empty())
    assert (
        "ZeroDivisionError"
        in next(one for one in verdict.problems if one.code == "import-fails").message
    )


async def test_examples_that_disagree_only_warn_a_human(gate: Gate) -> None:
    verdict = await gate.judge_module(
        saved(ADD.replace("        4\n", "        5\n")), Snapshot.empty()
    )
    assert (verdict.admitted, verdict.standings) == (True, (("add", "draft"),))
    assert [
        (problem.code, problem.severity, problem.where.line) for problem in verdict.problems
    ] == [("example-disagrees", "warns", 14)]


async def test_only_examples_of_changed_functions_are_run_again(gate: Gate) -> None:
    before = read_module(saved(ADD))
    after = saved(ADD + "\n\n" + BARE)
    verdict = await gate.judge_module(after, snapshot_of(lib=ADD), previous_reading=before)
    assert [name for name, _ in verdict.standings] == ["double"]


async def test_one_function_that_cannot_be_offered_leaves_the_others(one_sandbox: Sandbox) -> None:
    text = ADD + "\n\ndef größe(numbers: list[int]) -> int:\n    return sum(numbers)\n"
    verdict = await Gate(one_sandbox).judge_module(saved(text), Snapshot.empty())
    assert verdict.admitted
    assert [one.name for one in verdict.reading.functions] == ["add"]
    assert "function-name" in [
        problem.code for problem in verdict.problems if problem.severity == "refuses"
    ]


async def test_a_strict_workspace_holds_saved_files_to_the_agents_rules(
    one_sandbox: Sandbox,
) -> None:
    gate = Gate(one_sandbox, rules=Rules(strict=True))
    verdict = await gate.judge_module(saved(BARE), Snapshot.empty())
    assert not verdict.admitted


async def test_a_module_sees_its_neighbours_as_they_are(gate: Gate) -> None:
    text = "from functions.other import double\n\n\ndef fourfold(n: int) -> int:\n    return double(double(n))\n"
    verdict = await gate.judge_module(saved(text), snapshot_of(other=BARE))
    assert verdict.admitted


async def test_a_name_that_nothing_defines_is_warned_of_in_a_saved_file(gate: Gate) -> None:
    verdict = await gate.judge_module(
        saved("def half(n: int) -> float:\n    return halve(n)\n"), Snapshot.empty()
    )
    assert verdict.admitted
    assert [
        str(problem.where) for problem in verdict.problems if problem.code == "undefined-name"
    ] == ["functions/lib.py:2"]


HELPED = "LIMIT = 9\n\n\ndef _cap(n: int) -> int:\n    return min(n, LIMIT)\n\n\n" + ADD.replace(
    "a + b", "_cap(a + b)"
)


async def test_examples_run_again_where_the_code_behind_changed(gate: Gate) -> None:
    cases: list[tuple[str, str, list[str]]] = [
        ("LIMIT = 9", "LIMIT = 8", ["add"]),  # constant
        ("min(n, LIMIT)", "min(LIMIT, n)", ["add"]),  # helper
        ("LIMIT = 9", "LIMIT = 9\nOTHER = 1", []),  # what it does not use
        ("LIMIT = 9", "# Most.\nLIMIT = 9", []),  # comment
    ]
    for old, new, again in cases:
        snapshot = snapshot_of(lib=HELPED)
        verdict = await gate.judge_module(
            saved(HELPED.replace(old, new)), snapshot, previous_reading=snapshot.readings["lib"]
        )
        assert [name for name, _ in verdict.standings] == again, old


async def test_what_reaches_a_changed_function_through_another_is_tried_again(gate: Gate) -> None:
    plus = ADD.replace("add", "plus").replace("a + b", "add(a, b)")
    total = ADD.replace("add", "total").replace("a + b", "plus(a, b)")
    snapshot = snapshot_of(lib="\n\n".join([ADD, plus, total]))
    before = snapshot.readings["lib"]
    text = before.source.text.replace("a + b", "b + a")
    verdict = await gate.judge_module(saved(text), snapshot, previous_reading=before)
    assert [name for name, _ in verdict.standings] == ["add", "plus", "total"]


async def test_a_save_that_breaks_another_module_says_so(gate: Gate) -> None:
    user = (
        ADD.replace("add", "plus")
        .replace("def plus", "from functions.lib import add\n\n\ndef plus")
        .replace("a + b", "add(a, b)")
    )
    snapshot = snapshot_of(lib=ADD, other=user)
    previous = snapshot.readings["lib"]
    verdict = await gate.judge_module(
        saved(ADD.replace("a + b", "a * b")), snapshot, previous_reading=previous
    )
    assert verdict.admitted
    assert [one.severity for one in verdict.problems if one.code == "breaks-caller"] == ["warns"]
    assert verdict.stages[-1].note == "1 of 1 callers with examples tried"
    unchanged = await gate.judge_module(
        saved(f"# Sums.\n{ADD}"), snapshot, previous_reading=previous
    )
    assert [one.stage for one in unchanged.stages] == ["read", "text", "import", "examples"]


async def test_what_is_found_in_a_file_quotes_the_files_own_line(gate: Gate) -> None:
    words = '    """Halve.\n\n    Args:\n        n: It.\n\n    >>> half(2)\n    1.0\n    """\n'
    shown_once = f"def half(n: int) -> float:\n{words}"
    verdict = await gate.judge_module(
        saved(f"{ADD}\n\n{shown_once}    return n / 2\n"), Snapshot.empty()
    )
    (few,) = [problem for problem in verdict.problems if problem.code == "too-few-examples"]
    assert [row.fact for row in few.evidence] == [
        f"line {few.where.line}: def half(n: int) -> float:"
    ]

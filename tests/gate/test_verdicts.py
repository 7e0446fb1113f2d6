"""A candidate before the whole gate, in real workers: what is admitted, at what standing, and what is reported."""

import json
from textwrap import indent

import pytest

from agent_core.functions.gate import Candidate, Gate, GivenExample, Verdict
from agent_core.functions.gate import gate as gate_module
from agent_core.functions.gate.read import make_private
from agent_core.functions.gate.trial import Granted
from agent_core.registry.registry import Snapshot
from agent_core.registry.source import ModuleSource
from tests.gate.support import function

from .support import ADD, documented, judge, snapshot_of

STAGES = [stage.name for stage in gate_module.STAGES]


def refusals(verdict: Verdict) -> list[str]:
    return [problem.code for problem in verdict.refusals]


def note(verdict: Verdict, stage: str) -> str:
    (found,) = [report.note for report in verdict.stages if report.stage == stage]
    return found


async def test_a_good_function_is_admitted_on_trial_with_its_whole_module(gate: Gate) -> None:
    verdict = await judge(gate, ADD, "add")
    assert (verdict.admitted, verdict.standing, verdict.problems, verdict.agreed) == (
        True,
        "trial",
        (),
        2,
    )
    assert verdict.module_text == ADD
    assert [report.stage for report in verdict.stages if report.passed] == STAGES


async def test_a_function_joins_the_text_of_the_module_that_is_there(gate: Gate) -> None:
    around = "# kept\nLIMIT = 3\n"
    verdict = await judge(gate, ADD, "add", snapshot=snapshot_of(lib=around))
    assert verdict.module_text is not None
    assert verdict.module_text.startswith(around)
    assert verdict.reading is not None
    assert verdict.version == verdict.reading.source.version


async def test_a_finding_names_the_line_of_the_candidates_text_not_of_the_module_it_joins(
    gate: Gate,
) -> None:
    for body in ("return a * 2", "import random; return random.randint(1, a)"):
        code = documented("f", "a: int", "int", body)
        verdict = await judge(gate, code, snapshot=snapshot_of(lib="LIMIT = 3\n" * 50))
        assert {problem.where.line for problem in verdict.problems} == {1}, body


async def test_each_finding_has_what_a_reader_can_check(gate: Gate) -> None:
    cases: list[tuple[str, dict[str, str]]] = [
        (
            ADD.replace("        4\n", "        5\n"),
            {"call": "add(2, 2)", "returned": "4", "expected": "5"},
        ),
        (ADD.replace("return a + b", "return 3"), {"fact": "line 17: return 3"}),
        (ADD.replace("a + b", "a + c"), {"fact": "line 17: return a + c"}),
        ("def other(): ...\n", {"fact": "line 1: def other(): ..."}),
        ("", {"fact": "the text is empty there"}),
    ]
    for code, evidence in cases:
        problems = (await judge(gate, code, "add")).to_json()["problems"]
        assert all(problem["evidence"] for problem in problems), code
        assert evidence in [row for problem in problems for row in problem["evidence"]], code


async def test_an_example_that_disagrees_shows_both_sides_and_blames_neither(gate: Gate) -> None:
    verdict = await judge(gate, ADD.replace("        4\n", "        5\n"), "add")
    (problem,) = verdict.problems
    assert (problem.code, problem.where.line) == ("example-disagrees", 14)
    assert problem.message == "`add(2, 2)` returned `4`; its example says `5`"
    assert problem.fix == "if `4` is right, write it there; if not, fix the body"
    assert (verdict.admitted, verdict.standing, verdict.can_be_confirmed) == (False, "", True)


async def test_examples_that_prove_too_little_are_refused(gate: Gate) -> None:
    cases: list[tuple[str, str, list[str], str]] = [
        (
            "while a: pass\n    return a + 1",
            "int",
            ["f(0) → 1", "f(1) → 2"],
            "example-hangs",
        ),  # hangs
        (
            "import os; os._exit(a); return a",
            "int",
            ["f(0) → 0", "f(1) → 1"],
            "example-stopped",
        ),  # leaves
        ("return a * 2", "int", [], "too-few-examples"),  # none
        ("return a * 2", "int", ["f(1) → 2"], "too-few-examples"),  # one
        ("return a * 2", "int", ["f(1) → 2", "f(1) → 2"], "too-few-examples"),  # twice the same
        ("return a * a", "int", ["f(2) → 4", "f(-2) → 4"], "same-results"),  # same results
    ]
    for body, returns, examples, code in cases:
        verdict = await judge(gate, documented("f", "a: int", returns, body, *examples))
        assert set(refusals(verdict)) == {code}, body
        assert examples or not verdict.can_be_confirmed, body


async def test_the_same_example_twice_is_said_in_words(gate: Gate) -> None:
    verdict = await judge(
        gate, documented("f", "a: int", "int", "return a * 2", "f(1) → 2", "f(1) → 2")
    )
    assert "`f` has the same example 2 times; two with different results are needed" in str(
        verdict.refusals[0]
    )


async def test_a_refusal_for_one_sided_examples_says_which_side_is_missing(gate: Gate) -> None:
    verdict = await judge(
        gate, documented("f", "a: int", "bool", "return a > 0", "f(2) → True", "f(3) → True")
    )
    assert refusals(verdict) == ["one-sided-examples"]
    assert "one that gives False is needed" in verdict.problems[0].message
    assert ">>> f(0)`, which gives another result" in str(verdict.problems[0].fix)


async def test_a_call_that_gives_the_missing_side_is_offered(gate: Gate) -> None:
    for call, body, offered in (
        ("f('abba')", "return a == a[::-1]", "f('abb')"),  # text
        ("f([1, 2])", "return bool(a)", "f([])"),  # list
        ("f(a=7)", "return a > 0", "f(0)"),  # by name
    ):
        other = call.replace("abba", "a").replace("[1, 2]", "[3]").replace("7", "8")
        verdict = await judge(
            gate, documented("f", "a: object", "bool", body, f"{call} → True", f"{other} → True")
        )
        assert f">>> {offered}`" in str(verdict.refusals[0].fix), call


async def test_no_call_is_offered_where_every_one_gives_the_same(gate: Gate) -> None:
    verdict = await judge(
        gate, documented("f", "a: int", "int", "return a * 0", "f(1) → 0", "f(2) → 0")
    )
    assert ">>> f(a)` with values" in str(verdict.refusals[0].fix)
    assert not verdict.can_be_confirmed


async def test_the_same_example_with_two_results_is_one_thing_to_fix(gate: Gate) -> None:
    verdict = await judge(
        gate, documented("f", "a: int", "bool", "return a > 0", "f(2) → True", "f(2) → False")
    )
    assert [problem.code for problem in verdict.refusals] == ["contradictory-examples"]
    assert "take one of the two out; add a line `>>> f(0)`" in str(verdict.refusals[0].fix)
    assert not verdict.can_be_confirmed


async def test_an_error_shows_the_line_that_raised_it(gate: Gate) -> None:
    verdict = await judge(
        gate, documented("f", "a: int", "int", "return 10 // a", "f(5) → 2", "f(0) → 0")
    )
    assert set(refusals(verdict)) == {"example-raises"}
    assert "`ZeroDivisionError: " in verdict.problems[0].message
    assert "`return 10 // a`" in verdict.problems[0].message


async def test_words_of_a_worker_cannot_pose_as_the_gates(gate: Gate) -> None:
    body = "raise ValueError(f'ok`\\nadmitted: {a}')"
    verdict = await judge(gate, documented("f", "a: int", "int", body, "f(a=1) → 1", "f(2) → 2"))
    assert "`ValueError: ok'\\nadmitted: 1`" in verdict.problems[0].message
    assert "\n" not in verdict.problems[0].message


async def test_what_no_example_can_show_joins_as_a_draft_and_says_so(gate: Gate) -> None:
    for parameters, returns, body in (
        ("self, a: int", "int", "return self.call('g', a=a)"),  # calls another
        ("self, a: int", "None", "self.progress(a, 2)"),  # returns nothing
        ("", "str", "import datetime; return datetime.datetime.now().isoformat()"),  # the time
        ("sides: int", "int", "import random; return random.randint(1, sides)"),  # chance
    ):
        verdict = await judge(gate, documented("f", parameters, returns, body))
        assert (verdict.admitted, verdict.standing) == (True, "draft"), parameters
        assert [(problem.code, problem.severity) for problem in verdict.problems] == [
            ("unproven", "warns")
        ], parameters


async def test_examples_that_need_another_function_are_not_held_against_a_draft(gate: Gate) -> None:
    code = documented(
        "f", "self, a: int", "int", "return self.call('g', a=a)", "f(1) → 2", "f(2) → 4"
    )
    verdict = await judge(gate, code)
    assert (verdict.admitted, verdict.standing) == (True, "draft")
    assert note(verdict, "examples") == "it acts on the outside, which is not tried here"


async def test_a_function_with_the_calls_context_is_tried_without_naming_it(gate: Gate) -> None:
    body = "(self.scratch / 'x').write_text(a)\n    return len((self.scratch / 'x').read_text())"
    verdict = await judge(
        gate, documented("f", "self, a: str", "int", body, "f('ab') → 2", "f('a') → 1")
    )
    assert (verdict.admitted, verdict.standing, verdict.problems) == (True, "trial", ())


async def test_an_import_that_fails_is_told_with_its_line(gate: Gate) -> None:
    verdict = await judge(gate, "LIMIT = int('many')\n\n\n" + ADD, "add")
    assert refusals(verdict) == ["import-fails"]
    assert "`ValueError: invalid literal" in verdict.problems[0].message
    assert verdict.stages[-1].note == "not run: the module could not be imported"


async def test_an_import_that_never_ends_is_refused_in_time(gate: Gate) -> None:
    verdict = await judge(gate, "LIMIT = sum(iter(int, 1))\n\n\n" + ADD, "add")
    assert refusals(verdict) == ["import-hangs"]


async def test_a_type_that_only_an_import_can_tell_gets_its_schema_from_a_worker(
    gate: Gate,
) -> None:
    code = "from pydantic import BaseModel\n\n\nclass Point(BaseModel):\n    x: int\n\n\n"
    code += documented(
        "f", "point: Point", "int", "return point.x", "f(Point(x=1)) → 1", "f(Point(x=2)) → 2"
    )
    verdict = await judge(gate, code)
    assert verdict.problems == ()
    assert verdict.reading is not None
    assert (
        verdict.reading.functions[0].parameters["properties"]["point"]["properties"]["x"]["type"]
        == "integer"
    )


async def test_given_examples_count_as_those_of_the_docstring_do(gate: Gate) -> None:
    given = (GivenExample("half(3)", "1.5"), GivenExample("half(1)", "0.50000001", approx=1e-6))
    candidate = Candidate("half", "def half(n):\n    return n / 2\n", "lib", examples=given)
    verdict = await gate.judge(candidate, Snapshot.empty(), "import")
    assert (verdict.admitted, verdict.standing, verdict.agreed) == (True, "trial", 2)


async def test_code_that_cannot_be_read_leaves_the_other_stages_unrun(gate: Gate) -> None:
    verdict = await judge(gate, "def add(a, b) return a", "add")
    assert refusals(verdict) == ["syntax-error"]
    assert [report.passed for report in verdict.stages] == [False] * len(STAGES)
    assert [report.stage for report in verdict.stages if report.beside] == ["robust"]
    assert all(report.note.startswith("not run") for report in verdict.stages[1:])


async def test_a_hollow_function_is_not_tried_out(gate: Gate) -> None:
    verdict = await judge(
        gate, documented("f", "a: int", "int", "return 4", "f(2) → 4", "f(3) → 6")
    )
    assert refusals(verdict) == ["constant"]
    assert note(verdict, "examples") == "not run: the body does nothing yet"


async def test_a_verdict_has_its_published_shape_in_json(gate: Gate) -> None:
    verdict = json.loads(json.dumps((await judge(gate, f"```python\n{ADD}```", "add")).to_json()))
    published = {
        "name",
        "module",
        "admitted",
        "standing",
        "version",
        "fixes",
        "problems",
        "stages",
        "source",
    }
    assert published <= verdict.keys()
    assert verdict["fixes"][0].keys() == {"code", "message", "diff"}
    assert verdict["stages"][0].keys() == {"stage", "passed", "seconds", "note"}


async def test_the_examples_of_a_function_that_is_there_can_be_run_anew(gate: Gate) -> None:
    snapshot = snapshot_of(lib=ADD)
    results = await gate.run_examples(snapshot.functions["add"], snapshot)
    assert [(one.call, one.expected, one.returned, one.agreed) for one in results] == [
        ("add(1, 2)", "3", "3", True),
        ("add(2, 2)", "4", "4", True),
    ]
    snapshot = snapshot_of(
        lib=ADD.replace("b: int) -> int", "b: int) -> float").replace(
            "        3\n", "        3.0\n"
        )
    )
    assert all(
        result.agreed for result in await gate.run_examples(snapshot.functions["add"], snapshot)
    )


async def test_an_async_function_is_tried_like_any_other(gate: Gate) -> None:
    code = documented("f", "a: int", "int", "return a * 2", "f(2) → 4", "f(3) → 6").replace(
        "def f", "async def f"
    )
    verdict = await judge(gate, code)
    assert (verdict.admitted, verdict.standing, verdict.problems) == (True, "trial", ())


async def test_more_examples_than_are_run_are_counted_in_the_note(gate: Gate) -> None:
    examples = [f"f({n}) → {n * 2}" for n in range(52)]
    verdict = await judge(gate, documented("f", "a: int", "int", "return a * 2", *examples))
    assert verdict.admitted
    assert note(verdict, "examples") == "50 of 50 examples agree; 2 more were not run"


async def test_only_what_differs_each_time_is_left_unproven(gate: Gate) -> None:
    cases: list[tuple[str, bool]] = [
        ("import time\n    return time.strftime('%M:%S', time.gmtime(a))", False),  # told a moment
        ("import datetime\n    return str(datetime.time(a))", False),  # a time of day
        ("import time\n    return str(time.time() + a)", True),  # clock
        ("from random import randint\n    return str(randint(0, a))", True),  # chance
        ("import random\n    return str(random.randint(0, a))", True),  # chance by module
    ]
    for body, is_draft in cases:
        verdict = await judge(gate, documented("f", "a: int", "str", body))
        assert verdict.standing == ("draft" if is_draft else ""), body


TWICE = documented("twice", "a: int", "int", "return a * 2", "twice(1) → 2", "twice(3) → 6")
FOUR = "return self.call('twice', a=self.call('twice', a=a))"


async def test_the_examples_of_a_caller_run_with_the_function_that_it_calls(gate: Gate) -> None:
    for body, second, standing in (
        (FOUR, "f(2) → 8", "trial"),  # proven
        (FOUR, "f(2) → 9", ""),  # disagrees
        (
            FOUR.replace("'twice', a=self", "'twice' + '', a=self"),
            "f(2) → 9",
            "draft",
        ),  # nobody knows which
        ("return self.call('twice', a=self.call('missing', a=a))", "f(2) → 9", "draft"),  # missing
    ):
        code = documented("f", "self, a: int", "int", body, "f(1) → 4", second)
        verdict = await gate.judge(Candidate("f", code, "lib"), snapshot_of(words=TWICE))
        assert (verdict.admitted, verdict.standing) == (bool(standing), standing), body


async def test_a_caller_of_what_needs_a_grant_stays_a_draft(gate: Gate) -> None:
    code = documented("f", "self, a: int", "int", FOUR, "f(1) → 4", "f(2) → 9")
    granted = Granted(guarded=frozenset({"twice"}), approval_mode="joining")
    snapshot = snapshot_of(words=TWICE)
    verdict = await gate.judge(Candidate("f", code, "lib"), snapshot, granted=granted)
    assert "needs-functions" in refusals(verdict)
    assert "example-disagrees" not in refusals(verdict)


async def test_examples_are_run_as_doctest_runs_them(gate: Gate) -> None:
    for name, *parts in (
        (
            "enlist", "names: list, name: str", "int", "names.append(name)\n    return len(names)",
            "enlist([], 'Ann') → 1", "crew = ['Ann']; enlist(crew, 'Bob'); crew → 2\n        ['Ann', 'Bob']",
        ),
        (
            "serve", "line: list", "str", "return line.pop(0)",
            "line = ['Ann', 'Bob']\n        >>> serve(line) → 'Ann'", "line → ['Bob']", "serve(['Eve', 'Ann']) → 'Eve'",
        ),
        (
            "rows_in", "text: str", "int", "return text.count('\\n')",
            "import csv, io\n        >>> kept = io.StringIO()\n"
            "        >>> writer = csv.writer(kept, lineterminator='\\\\n')\n"
            "        >>> writer.writerow(['a', 1]) → 4",
            "rows_in(kept.getvalue()) → 1", "rows_in('') → 0",
        ),
    ):  # fmt: skip
        assert (await judge(gate, documented(name, *parts), name)).refusals == (), name


DESCRIBED = "def f(a: str) -> str:\n    {quotes}Do.\n\n    Args:\n        a: A value.\n\n"


async def test_a_confirmed_result_takes_the_place_of_the_written_one(gate: Gate) -> None:
    candidate = Candidate("add", ADD.replace("        4\n", "        5\n"), "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert (verdict.admitted, verdict.standing, verdict.source) == (True, "trial", ADD)
    assert verdict.confirmed == ("add(2, 2)",)


async def test_without_an_example_that_agreed_by_itself_it_joins_as_a_draft(gate: Gate) -> None:
    candidate = Candidate(
        "add",
        ADD.replace("        4\n", "        5\n").replace("        3\n", "        6\n"),
        "lib",
    )
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert (verdict.admitted, verdict.standing, verdict.source) == (True, "draft", ADD)
    assert [problem.code for problem in verdict.problems] == ["unproven"]


async def test_what_has_another_problem_cannot_be_confirmed(gate: Gate) -> None:
    candidate = Candidate(
        "add", ADD.replace("        4\n", "        5\n").replace(") -> int", ")"), "lib"
    )
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert not verdict.admitted
    assert verdict.problems[-1].code == "cannot-confirm"


async def test_a_result_with_escapes_is_written_as_the_docstring_needs_it(gate: Gate) -> None:
    for quotes, result in (
        ('"""', "'a\\n\"b\"'"),  # escapes
        ('r"""', "'a\\n\"b\"'"),  # raw
    ):
        code = DESCRIBED.format(quotes=quotes) + '    >>> f("b")\n    7\n    >>> f("c")\n    8"""\n'
        candidate = Candidate("f", code + "    return f'a\\n\"{a}\"'\n", "lib")
        refused = await gate.judge(candidate, Snapshot.empty())
        verdict = await gate.confirm(candidate, refused, Snapshot.empty())
        assert verdict.admitted, [str(problem) for problem in verdict.problems]
        assert verdict.reading is not None, quotes
        assert verdict.reading.functions[0].examples[0].expected.strip() == result, quotes


async def test_printed_lines_are_confirmed_with_what_is_returned(gate: Gate) -> None:
    code = (
        DESCRIBED.format(quotes='"""').replace("str", "int")
        + '    >>> f(1)\n    7\n    >>> f(2)\n    9\n    """\n'
    )
    candidate = Candidate("f", code + "    print('got', a)\n    print()\n    return a * 2\n", "lib")
    refused = await gate.judge(candidate, Snapshot.empty())
    verdict = await gate.confirm(candidate, refused, Snapshot.empty())
    assert verdict.admitted, [str(problem) for problem in verdict.problems]
    assert "    >>> f(1)\n    got 1\n    <BLANKLINE>\n    2\n" in verdict.source


async def test_a_lacking_example_is_confirmed_with_what_came_back(gate: Gate) -> None:
    code = documented("f", "a: int", "bool", "return a > 0", "f(2) → True", "f(3) → True")
    verdict = await judge(gate, code)
    confirmed = await gate.confirm(Candidate("f", code, "m"), verdict, Snapshot.empty())
    assert (confirmed.admitted, confirmed.standing, confirmed.confirmed) == (
        True,
        "trial",
        ("f(0)",),
    )
    assert ">>> f(0)\n        False\n" in confirmed.source


CHAIN = function("if a:\n    return 1\n" + "elif b:\n    return 2\n" * 1_000 + "return 3")


async def test_a_chain_beyond_the_limit_is_a_problem_of_the_candidate_or_the_file(
    gate: Gate,
) -> None:
    verdict = await gate.judge(Candidate("f", CHAIN, "lib"), Snapshot.empty())
    saved = await gate.judge_module(ModuleSource.of("lib", CHAIN), Snapshot.empty())
    for problems in (verdict.problems, saved.problems):
        assert [problem.code for problem in problems] == ["too-deep"]
    assert not verdict.admitted


async def test_a_number_that_cannot_be_shown_is_a_problem_with_its_line(gate: Gate) -> None:
    verdict = await gate.judge(
        Candidate("f", function(f"return 0x{'f' * 9_000}"), "lib"), Snapshot.empty()
    )
    (problem,) = verdict.problems
    assert "thousands of digits" in problem.message
    assert problem.where.line == 8


async def test_thousands_of_public_helpers_are_not_renamed_one_by_one() -> None:
    helpers = "".join(f"def h{n}(a): return h{n + 1}(a)\n" for n in range(1_500))
    text = f"{helpers}def f(a): return h0(a)\n"
    assert make_private(text, "f") == text


async def test_problems_that_are_many_are_told_with_a_sentence_about_the_rest(gate: Gate) -> None:
    code = function(
        "\n".join([*(f"g{number}(1)" for number in range(300)), "unknown = missing", "return a"])
    )
    verdict = await judge(gate, code)
    *told, rest = verdict.problems
    assert len(told) < 60
    assert (rest.code, rest.severity) == ("more-problems", "warns")
    assert "more problems like these" in rest.message
    assert {"undefined-name", "echo"} <= {problem.code for problem in told}  # one of each kind


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param("return frobnicate(a) + b", ["undefined-name"], id="a-call"),
        pytest.param("return frobs.count(a) + b", ["undefined-name"], id="an-attribute"),
        pytest.param("del b\nreturn a + b", ["example-raises"], id="a-local-that-is-gone"),
        pytest.param(
            "if b > 100:\n    return frobnicate(a)\nreturn [][a]",
            ["undefined-name", "example-raises"],
            id="another-error",
        ),
    ],
)
async def test_an_undefined_name_is_told_once_although_the_examples_stop_at_it(
    gate: Gate, body: str, told: list[str]
) -> None:
    examples = ("f(3, 4) → 7", "f(5, -2) → 3")
    code = documented("f", "a: int, b: int", "int", indent(body, "    ").strip(), *examples)
    assert refusals(await judge(gate, code)) == told


async def test_a_call_that_stops_at_an_undefined_name_is_not_told_besides(gate: Gate) -> None:
    told = refusals(await judge(gate, function("return frobnicate(a) + b")))
    assert told == ["undefined-name", "too-few-examples"]

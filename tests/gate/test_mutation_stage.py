"""The stage "mutation": would the examples detect a stub or a small change, within its time, whatever the code does?"""

from dataclasses import replace
from random import Random

import pytest

from agent_core.base.untrusted import from_difference
from agent_core.functions.gate import Candidate, Gate, GivenExample, Policy, Rules, Verdict
from agent_core.functions.gate.gate import STAGES
from agent_core.registry.registry import Snapshot
from tests.kit.drawing import drawn

from .support import documented, snapshot_of
from .wild import function as wild

STRONG = ("f(1, 2) → 3", "f(7, 3) → 10")


def until_mutation(gate: Gate, rules: Rules | None = None) -> Gate:
    """Return a gate without the later stages, with the same workers."""
    upto = [stage.name for stage in STAGES].index("mutation") + 1
    return Gate(gate._trial.sandbox, limits=gate._trial.limits, rules=rules, stages=STAGES[:upto])


async def mutated(
    gate: Gate,
    body: str,
    *examples: str,
    policy: Policy = "agent",
    parameters: str = "a: int, b: int",
    returns: str = "int",
) -> Verdict:
    code = documented("f", parameters, returns, body.replace("\n", "\n    "), *examples)
    return await until_mutation(gate).judge(Candidate("f", code, "lib"), Snapshot.empty(), policy)


def note(verdict: Verdict) -> str:
    return verdict.stages[-1].note


def found(verdict: Verdict) -> list[tuple[str, str]]:
    return [(problem.code, problem.severity) for problem in verdict.problems]


async def test_examples_that_notice_every_mutant_leave_nothing_to_say(gate: Gate) -> None:
    verdict = await mutated(gate, "return a + b", *STRONG)
    assert (verdict.admitted, verdict.problems) == (True, ())
    assert note(verdict) == "1 of 1 wrong body noticed"


async def test_a_change_that_no_example_notices_is_shown_with_one_that_would(gate: Gate) -> None:
    verdict = await mutated(
        gate, "if a > 10:\n    return a - b\nreturn a + b", *STRONG, "f(20, 1) → 19"
    )
    problem, _second = verdict.problems
    assert (problem.code, problem.severity, problem.where.line) == ("weak-examples", "warns", 16)
    assert (
        problem.message
        == "with `if a > 11:` in place of `if a > 10:`, every example of `f` still agrees"
    )
    assert problem.fix == "add an example in which the 10 of `a > 10` matters"


async def test_examples_that_an_echo_of_the_argument_passes_prove_nothing(gate: Gate) -> None:
    cases: list[tuple[Policy, str]] = [
        ("agent", "refuses"),
        ("human", "warns"),
        ("import", "warns"),
    ]
    for policy, severity in cases:
        verdict = await mutated(
            gate, "return abs(a) + 0 * b", "f(1, 2) → 1", "f(7, 3) → 7", policy=policy
        )
        assert ("stub-passes", severity) in found(verdict), policy
        assert "with a body of only `return a` would pass every example" in str(verdict.problems), (
            policy
        )
        assert verdict.admitted is (severity == "warns"), policy


async def test_an_example_that_a_stub_passes_does_not_count_as_another_result(gate: Gate) -> None:
    verdict = await mutated(gate, "return a * b", "f(3, 0) → 0", "f(0, 3) → 0", "f(7, 3) → 21")
    (problem,) = [one for one in verdict.problems if "`return 0`" in one.message]
    assert (problem.code, problem.severity) == ("weak-examples", "warns")
    assert problem.fix == "add an example with another result, which is not `0`"


async def test_yes_and_no_are_two_results_although_a_stub_gives_each(gate: Gate) -> None:
    verdict = await mutated(
        gate, "return a > b", "f(3, 4) → False", "f(4, 3) → True", "f(3, 3) → False"
    )
    assert verdict.problems == ()


async def test_given_examples_bite_as_those_of_the_docstring_do(gate: Gate) -> None:
    given = (GivenExample("half(4)", "2"), GivenExample("half(10)", "5.00000001", approx=1e-6))
    candidate = Candidate("half", "def half(n):\n    return n / 2\n", "lib", examples=given)
    verdict = await until_mutation(gate).judge(candidate, Snapshot.empty(), "import")
    assert note(verdict) == "2 of 2 wrong bodies noticed"
    wide = replace(candidate, examples=tuple(replace(one, approx=100.0) for one in given))
    assert "stub-passes" in {
        one.code
        for one in (await until_mutation(gate).judge(wide, Snapshot.empty(), "import")).problems
    }


async def test_mutants_that_never_end_are_noticed_and_cost_their_own_time(gate: Gate) -> None:
    body = "while a < b:\n    a += 1\nreturn a + b"
    verdict = await mutated(gate, body, "f(1, 4) → 8", "f(5, 3) → 8", "f(0, 1) → 2")
    assert verdict.admitted
    assert "wrong bodies noticed" in note(verdict)
    assert "a -= 1" not in str(verdict.problems)


async def test_what_was_not_reached_in_time_is_said_and_has_not_passed(gate: Gate) -> None:
    body = "\n".join(
        ["import time", "time.sleep(0.04)", *[f"a = a + {n}" for n in range(9)], "return a + b"]
    )
    code = documented(
        "f", "a: int, b: int", "int", body.replace("\n", "\n    "), "f(1, 2) → 39", "f(0, 0) → 36"
    )
    for seconds, said in (
        (0.0, "nothing tried: time was up"),
        (0.6, "wrong bodies tried: time was up"),
    ):
        short = until_mutation(gate, Rules(mutation_s=seconds))
        verdict = await short.judge(Candidate("f", code, "lib"), Snapshot.empty(), "agent")
        (stage,) = [one for one in verdict.stages if one.stage == "mutation"]
        assert (verdict.admitted, stage.passed, stage.late) == (True, False, True)
        assert said in stage.note


async def test_an_example_that_takes_long_counts_against_a_stub_and_nothing_is_said_of_changes(
    gate: Gate,
) -> None:
    slow = "import time\ntime.sleep(0.3 * a)\nreturn a + b"
    verdict = await mutated(gate, slow, "f(2, 1) → 3", "f(0, 0) → 0", "f(0, 5) → 5")
    assert "stub-passes" not in {problem.code for problem in verdict.problems}
    assert verdict.admitted
    assert not [one for one in verdict.problems if "still agrees" in one.message]
    assert (verdict.stages[-1].passed, note(verdict)[:5]) == (False, "0 of ")


async def test_what_cannot_be_bitten_is_skipped_with_its_reason(gate: Gate) -> None:
    cases: list[tuple[str, dict[str, str], tuple[str, ...], str]] = [
        ("return a + b", {}, ("f(1, 2) → 4", "f(2, 2) → 5"), "its examples do not agree yet"),
        ("return a + b", {}, ("f(1, 2) → 3",), "its examples are too few"),
        ("return 4", {}, ("f(1, 2) → 4", "f(3, 2) → 4"), "the body does nothing yet"),
        (
            "return self.call('g', a=a)",
            {"parameters": "self, a: int"},
            ("f(1) → 2",),
            "it acts on the outside, which is not tried here",
        ),
        (
            "import random\nreturn random.random() * 0 + a",
            {"parameters": "a: int"},
            (),
            "chance or the clock decides",
        ),
        ("return a +", {}, (), "the module could not be imported"),
    ]
    for body, options, examples, said in cases:
        verdict = await mutated(gate, body, *examples, **options)  # type: ignore[arg-type] # only parameters
        assert note(verdict).startswith(f"not run: {said}"), body


async def test_a_neighbour_in_the_module_is_left_as_it_is(gate: Gate) -> None:
    around = snapshot_of(lib="def g(a: int) -> int:\n    return a + 1 if a else 5\n")
    code = documented(
        "f", "a: int, b: int", "int", "return g(a) + b", "f(1, 2) → 4", "f(7, 3) → 11"
    )
    verdict = await until_mutation(gate).judge(Candidate("f", code, "lib"), around, "agent")
    assert verdict.admitted, verdict.refusals
    assert note(verdict) == "1 of 1 wrong body noticed"


async def test_code_that_attacks_its_worker_gets_a_verdict_like_any_other(gate: Gate) -> None:
    for body in (
        "import os\nos._exit(0) if a > 1 else None\nreturn a",
        "print('x' * 9000)\nreturn a + b",
    ):
        given = (GivenExample("f(1, 2)", "1"), GivenExample("f(0, 5)", "0"))
        code = documented("f", "a: int, b: int", "int", body.replace("\n", "\n    "))
        verdict = await until_mutation(gate).judge(
            Candidate("f", code, "lib", examples=given), Snapshot.empty(), "human"
        )
        assert verdict.stages[-1].stage == "mutation", body


async def test_whatever_a_function_is_the_stage_ends_without_an_error(gate: Gate) -> None:
    short = until_mutation(gate, Rules(mutation_s=0.2))
    for seed in range(drawn(40)):
        text = wild(Random(seed), "g")
        given = tuple(
            GivenExample(f"[type(g({a}, {b})).__name__, {a}]", f"['int', {a}]")
            for a, b in ((1, 2), (3, 0))
        )
        verdict = await short.judge(
            Candidate("g", text, "lib", examples=given), Snapshot.empty(), "human"
        )
        assert verdict.stages[-1].stage == "mutation", seed


LONG = "buyers = {" + ", ".join(f"{number}: 'customer {number}'" for number in range(12)) + "}"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        pytest.param("if a > 10:", "if a > 11:", "if a > 10:", id="short"),
        pytest.param(LONG, LONG.replace("11:", "12:"), "11: 'customer 11'}", id="at the end"),
        pytest.param(
            LONG, LONG.replace("0:", "1:", 1), "buyers = {0: 'customer 0'", id="at the beginning"
        ),
        pytest.param(LONG, LONG.replace("6:", "7:", 1), "6: 'customer 6'", id="in the middle"),
        pytest.param(LONG, LONG[:-1], "'customer 11'}", id="one is longer"),
        pytest.param(LONG, "", "buyers = {0:", id="there is no other"),
        pytest.param(
            LONG * 9, LONG * 8 + LONG.upper(), "}buyers = {0: 'customer 0'", id="far behind"
        ),
        pytest.param(LONG, LONG, "customer 11'}", id="the same"),
    ],
)
async def test_a_long_change_is_shown_where_it_differs(before: str, after: str, shown: str) -> None:
    text = from_difference(before, after, 120)
    assert shown in text[:120]
    assert len(text) <= len(before)

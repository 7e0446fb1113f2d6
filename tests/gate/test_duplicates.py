"""A candidate that repeats an existing function is rejected with its name; one that only looks similar may join."""

from dataclasses import replace
from typing import get_args

from agent_core.functions.gate import Candidate, Gate, Policy, Verdict
from agent_core.functions.search import FunctionSearch
from agent_core.registry.registry import Snapshot
from sandbox import Sandbox
from tests.kit.sources import function_text

from .support import ADD, snapshot_of

COUNT = function_text(
    "count_vowels(text: str) -> int",
    "Count the vowels of a text.\n\nArgs:\n    text: The text to read.\n\nExamples:\n    "
    '>>> count_vowels("tree")\n    2\n    >>> count_vowels("sky")\n    0',
    'found = 0\nfor letter in text:\n    if letter in "aeiou":\n        found += 1\nreturn found',
)
DISGUISED = (
    COUNT.replace("count_vowels", "sum_of_sounds")
    .replace("Count the vowels of a text", "How many sung letters there are")
    .replace("letter", "q")
    .replace("text", "words")
)
CANDIDATE = Candidate("sum_of_sounds", DISGUISED, "other")
LIBRARY = snapshot_of(lib=COUNT)
THINGS = ("house", "ship", "tree", "horse", "bridge", "boat", "lamp", "coat", "wagon")


async def judge(
    gate: Gate, candidate: Candidate, snapshot: Snapshot, policy: Policy = "agent"
) -> Verdict:
    return await gate.judge(candidate, snapshot, policy)


def about(verdict: Verdict) -> dict[str, str]:
    return {one.code: one.severity for one in verdict.problems if one.code in ("copy", "near-copy")}


async def test_a_disguised_copy_is_named_with_its_signature_and_a_reason_lets_it_in(
    gate: Gate,
) -> None:
    for policy in get_args(Policy):
        (problem,) = [
            one
            for one in (await judge(gate, CANDIDATE, LIBRARY, policy)).problems
            if one.code == "copy"
        ]
        assert problem.severity == ("warns" if policy == "human" else "refuses")
        assert (
            "`count_vowels(text: string) -> int` (functions/lib.py:1): Count the vowels"
            in problem.message
        )
        assert (
            problem.fix
            == "call `count_vowels` instead, or say in `reason` how yours differs from `count_vowels`"
        )
    for reason, admitted in (
        ("not like count_vowels: it is sung", True),
        ("unlike count_vowels_2", False),
    ):
        assert (await judge(gate, replace(CANDIDATE, reason=reason), LIBRARY)).admitted is admitted
    in_docstring = replace(
        CANDIDATE, code=DISGUISED.replace("How many", "Unlike count_vowels, how many")
    )
    assert not (await judge(gate, in_docstring, LIBRARY)).admitted


async def test_a_function_that_is_replaced_is_not_its_own_copy(gate: Gate) -> None:
    same = Candidate("count_vowels", COUNT.replace("found", "n"), "lib", replaces=True)
    verdict = await judge(gate, same, LIBRARY)
    assert (verdict.admitted, about(verdict)) == (True, {})


async def test_one_line_for_other_types_is_no_copy_but_said(gate: Gate) -> None:
    join = ADD.replace("add", "join").replace(": int", ": str").replace("-> int", "-> str")
    join = join.replace("join(1, 2)\n        3", "join('a', 'b')\n        'ab'").replace(
        "join(2, 2)\n        4", "join('', 'b')\n        'b'"
    )
    verdict = await judge(gate, Candidate("join", join, "other"), snapshot_of(lib=ADD))
    assert (verdict.admitted, about(verdict)) == (True, {"near-copy": "warns"})


async def test_short_functions_that_differ_are_no_copies(gate: Gate) -> None:
    for operator in ("-", "*", "//"):
        other = (
            ADD.replace("add", "combine")
            .replace("a + b", f"a {operator} b")
            .replace("Add two", "Combine the")
        )
        assert (
            about(await judge(gate, Candidate("combine", other, "other"), snapshot_of(lib=ADD)))
            == {}
        ), operator


async def test_the_same_words_with_another_body_are_no_copy(gate: Gate) -> None:
    other = COUNT.replace("count_vowels", "count_vowel").replace("aeiou", "aeiouä")
    verdict = await judge(gate, Candidate("count_vowel", other, "other"), LIBRARY)
    assert (verdict.admitted, about(verdict)) == (True, {})


async def test_what_was_changed_since_is_compared_as_it_is_now(gate: Gate) -> None:
    before = await judge(gate, CANDIDATE, LIBRARY)
    after = await judge(
        gate, CANDIDATE, snapshot_of(lib=COUNT.replace('"aeiou"', "text[:1].upper()"))
    )
    without = await judge(gate, CANDIDATE, snapshot_of(lib=ADD))
    assert ["copy" in about(one) for one in (before, after, without)] == [True, False, False]


async def test_a_helper_decides_over_a_copy_as_the_body_does(gate: Gate) -> None:
    helped = "def _limit(n: int) -> int:\n    return min(n, 9)\n\n\n" + ADD.replace(
        "a + b", "_limit(a + b)"
    )
    other = helped.replace("_limit", "_bound").replace("add", "plus")
    verdict = await judge(gate, Candidate("plus", other, "other"), snapshot_of(lib=helped))
    assert "copy" in about(verdict)
    wider = await judge(
        gate, Candidate("plus", other.replace("9", "99"), "other"), snapshot_of(lib=helped)
    )
    assert "copy" not in about(wider)


async def test_a_first_function_has_nothing_to_be_compared_with(gate: Gate) -> None:
    verdict = await judge(gate, CANDIDATE, Snapshot.empty())
    (report,) = [one for one in verdict.stages if one.stage == "duplicate"]
    assert (report.passed, report.note) == (True, "there is no other function yet")


ANEW = (
    COUNT.replace("count_vowels", "sung_letters")
    .replace("Count the vowels of a text", "Count the vowels that a text has")
    .replace('("tree")\n        2', '("boat")\n        2')
    .replace('("sky")\n        0', '("a")\n        1')
    .partition("    found = 0")[0]
    + "    return len([letter for letter in text if letter in 'aeiou'])\n"
)


async def test_other_statements_with_the_same_results_are_told_with_the_calls_unless_a_reason_is_given(
    gate: Gate,
) -> None:
    candidate = Candidate("sung_letters", ANEW, "other")
    policies: list[tuple[Policy, str]] = [("agent", "refuses"), ("human", "warns")]
    for policy, severity in policies:
        verdict = await judge(gate, candidate, LIBRARY, policy)
        (problem,) = [one for one in verdict.problems if one.code == "rewrite"]
        assert problem.severity == severity
        assert (
            "`count_vowels(text: string) -> int` (functions/lib.py:1): Count the vowels"
            in problem.message
        )
        assert [row.call for row in problem.evidence] == [
            'count_vowels("tree")',
            'count_vowels("sky")',
        ]
        assert (
            problem.fix
            == "call `count_vowels` instead, or say in `reason` how yours differs from `count_vowels`"
        )
    assert (
        await judge(gate, replace(candidate, reason="unlike count_vowels, for choirs"), LIBRARY)
    ).admitted


async def test_one_that_agrees_on_all_examples_and_not_on_other_calls_joins(gate: Gate) -> None:
    library = snapshot_of(lib=COUNT.replace('"sky"', '"shh"').replace('"tree"', '"toe"'))
    for old, new in (
        ("in 'aeiou'", "in 'aeiouy'"),
        ("in text if", "in text[:5] if"),
        ("in text if", "in {*text} if"),
    ):
        verdict = await judge(
            gate, Candidate("sung_letters", ANEW.replace(old, new), "other"), library
        )
        assert (
            verdict.admitted,
            [one.code for one in verdict.problems if one.code == "rewrite"],
        ) == (True, []), new


async def test_of_many_functions_with_such_arguments_those_are_run_that_the_description_finds(
    one_sandbox: Sandbox,
) -> None:
    subjects = [
        f"{kind} of a {thing}"
        for kind in ("width", "price", "weight", "age", "rank")
        for thing in THINGS
    ]
    others = {
        f"lib{at:02}": COUNT.replace("count_vowels", f"a{at:02}")
        .replace("Count the vowels of a text", f"Guess the {subject}")
        .replace("+= 1", f"+= {at + 2}")
        for at, subject in enumerate(subjects)
    }
    library = snapshot_of(**others, lib=COUNT)
    gate = Gate(one_sandbox, search=FunctionSearch(None, None, lambda: library))
    verdict = await judge(gate, Candidate("sung_letters", ANEW, "other"), library)
    assert [one.code for one in verdict.refusals] == ["rewrite"]


MEAN = function_text(
    "mean_of(many: list[int]) -> int",
    "Give the mean of numbers, without its fraction.",
    "return {}",
    "mean_of([4, 8]) → 6",
    "mean_of([7, 1, 1]) → 3",
)


async def test_a_fix_is_asked_for_values_that_its_own_text_names(gate: Gate) -> None:
    for more, sameness in (("", "same"), (" + (many[0] > 300)", "different")):
        mean = "sum(many) // len(many)"
        bodies = (mean, f"({mean}{more}) if many else 0")
        before, after = (snapshot_of(grown=MEAN.format(body)) for body in bodies)
        functions = before.functions["mean_of"], after.functions["mean_of"]
        assert await gate.compare(*functions, before, is_strict=True, fixed_in=after) == sameness, (
            more
        )

"""Texts that are cheap to write and expensive to judge: an answer arrives, and the program keeps running."""

import pytest

from agent_core.functions.gate import Candidate, Gate
from agent_core.functions.gate.read import make_private
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from tests.gate.support import function

pytestmark = pytest.mark.asyncio(loop_scope="module")
SPLIT = "split what is nested too deeply into smaller parts"
CHAIN = function("if a:\n    return 1\n" + "elif b:\n    return 2\n" * 1_000 + "return 3")


async def test_a_chain_longer_than_the_stack_is_a_problem_of_the_candidate(gate: Gate) -> None:
    verdict = await gate.judge(Candidate("f", CHAIN, "lib"), Snapshot.empty())
    assert ("import-fails", SPLIT) in {(problem.code, problem.fix) for problem in verdict.problems}
    assert not verdict.admitted


async def test_a_saved_file_with_a_chain_longer_than_the_stack_gets_a_verdict(gate: Gate) -> None:
    verdict = await gate.judge_module(ModuleSource.of("lib", CHAIN), Snapshot.empty())
    assert ("import-fails", SPLIT) in {(problem.code, problem.fix) for problem in verdict.problems}


async def test_a_number_that_cannot_be_shown_is_a_problem_with_its_line(gate: Gate) -> None:
    verdict = await gate.judge(Candidate("f", function(f"return 0x{'f' * 9_000}"), "lib"), Snapshot.empty())
    (problem,) = verdict.problems
    assert "thousands of digits" in problem.message
    assert problem.where.line == 8


async def test_thousands_of_public_helpers_are_not_renamed_one_by_one() -> None:
    helpers = "".join(f"def h{n}(a): return h{n + 1}(a)\n" for n in range(1_500))
    text = f"{helpers}def f(a): return h0(a)\n"
    assert make_private(text, "f") == text

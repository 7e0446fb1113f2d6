"""A text that reads otherwise than it runs is refused with the place of what nobody sees."""

import pytest

from agent_core.gate import Gate, Policy
from agent_core.gate.reading.hidden import hidden
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import Source

from .support import ADD, on_text

BACKWARDS = ADD.replace("return a + b", "return a + b  # \u202e b - a nruter")


@pytest.mark.parametrize(("policy", "severity"), [("agent", "refuses"), ("import", "refuses"), ("human", "warns")])
def test_a_change_of_direction_is_named_with_its_place(policy: Policy, severity: str) -> None:
    problems = on_text(BACKWARDS, "add", policy).problems
    (problem,) = [one for one in problems if one.code == "hidden-characters"]
    assert (problem.severity, problem.where.line, problem.where.column) == (severity, 17, 21)
    assert "U+202E RIGHT-TO-LEFT OVERRIDE" in problem.what
    assert problem.mend == 'take it out; in a string that needs it, write it as "\\u202e"'


@pytest.mark.parametrize(
    "text",
    ["\u2066", "a\u200bb", "a\u200db", "x\xady", "\U000e0041", "\u2060", "\u3164", "x = '\ufeff'", "☀\ufe0f\ufe0f"],
    ids=ascii,
)
def test_what_nobody_sees_is_found_wherever_it_stands(text: str) -> None:
    assert [one.code for one in hidden(text)] == ["hidden-characters"]


@pytest.mark.parametrize(
    "text", ["plain", "é", "👨\u200d👩\u200d👧", "می\u200cخواهم", "क्\u200dष", "☀\ufe0f", "'\\u202e'"], ids=ascii
)
def test_what_a_language_or_a_sign_needs_stays(text: str) -> None:
    assert list(hidden(text)) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_saved_file_is_warned_of_what_nobody_sees(gate: Gate) -> None:
    verdict = await gate.judge_module(Source.of("lib", BACKWARDS), Snapshot.empty())
    assert verdict.admitted
    assert "hidden-characters" in [one.code for one in verdict.problems if one.severity == "warns"]

"""On third-party functions: fixing is idempotent and preserves the results, as computed in workers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_core.functions.gate import Candidate, GivenExample, Rules
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.call_arguments import read_calls, recombine, write_call
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import Attempt, Attempts, Evaluation, Job, Limits, Outcome, Raised, Returned, Sandbox
from tests.kit.drawing import sampled
from tests.kit.levels import start

FOLDER = os.environ.get("EVALUATION_DATA")
DATA = Path(FOLDER or "", "functions_dev.jsonl")
pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="EVALUATION_DATA does not name a folder with cases"
)
Row = dict[str, Any]  # Any: one line of the file


def rows() -> list[Row]:
    return [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]


def fixed(row: Row, code: str) -> Draft:
    examples = tuple(GivenExample(one["call"], one["expected"]) for one in row["examples"])
    told = Candidate(row["name"], code, "lib", examples=examples, description=row["description"])
    return fix(read(Draft(told, "import", Rules(), Snapshot.empty(), code)))


def asserted(row: Row) -> str:
    """Return the function as such libraries publish it: without a docstring, with asserts below."""
    return (
        str(row["code"])
        + "\n"
        + "".join(f"assert {one['call']} == {one['expected']}\n" for one in row["examples"])
    )


@pytest.mark.sampled
@pytest.mark.timeout(600)
def test_fixing_a_published_function_twice_changes_nothing() -> None:
    for row in sampled(rows(), 9):
        for code in (str(row["code"]), asserted(row)):
            once = fixed(row, code)
            twice = fixed(row, once.text)
            assert (twice.text, [one.code for one in twice.fixes]) == (once.text, []), row["id"]


def calls(row: Row) -> list[str]:
    """Return the examples' calls, and variants with one argument changed slightly."""
    given = [one["call"] for one in row["examples"]]
    functions = read_module(ModuleSource.of("lib", row["code"])).functions
    function = next((one for one in functions if one.name == row["name"]), None)
    made = recombine(read_calls(given, function), function.parameters) if function else []
    return [*given, *(write_call(function, call) for call in made[:6] if function)]


def said(outcomes: tuple[Outcome | None, ...]) -> Iterator[object]:
    """Yield the comparable part of outcomes: values, and kinds of errors."""
    for one in outcomes:
        match one:
            case Returned(value=value, output=output):
                yield repr(value), output
            case Raised(failure=failure):
                yield failure.type
            case _:
                yield None  # one of the two timed out


async def computed(sandbox: Sandbox, row: Row, text: str) -> list[object]:
    attempts = [Attempt(Evaluation((), call)) for call in calls(row)]
    modules = Snapshot.empty().with_module(read_module(ModuleSource.of("lib", text))).modules
    found = await sandbox.attempt(
        Job(modules, "lib", Attempts(row["name"], attempts, 1), limits=Limits(wall_s=8))
    )
    return list(said(found))


@pytest.mark.sampled
@pytest.mark.timeout(900)
async def test_a_fixed_function_computes_what_it_did() -> None:
    compared = 0
    async with await start(parallel=2) as sandbox:
        for row in sampled(rows(), 19):
            before = await computed(sandbox, row, row["code"])
            after = await computed(sandbox, row, fixed(row, asserted(row)).text)
            both = [(one, other) for one, other in zip(before, after, strict=True) if one and other]
            assert all(one == other for one, other in both), row["id"]
            compared += len(both)
    assert compared > 100

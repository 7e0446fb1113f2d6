"""Any Python file gets a verdict in time, never an exception: the standard library's, and generated ones."""

import ast
import os
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.functions.gate import Candidate, Gate, ModuleVerdict, Policy, Rules, Verdict
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read
from agent_core.registry.registry import Snapshot
from agent_core.registry.source import ModuleSource
from tests.gate.support import TEXT_STAGES
from tests.kit.drawing import drawn, sampled

LIBRARY = Path(sysconfig.get_path("stdlib"))


def library_files() -> Iterator[Path]:
    for folder, folders, names in os.walk(LIBRARY):
        folders[:] = [name for name in folders if name not in ("site-packages", "__pycache__")]
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


SAMPLE = random.Random(int(os.environ.get("SOAK_SEED", "4"))).sample(sorted(library_files()), 400)


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def names_in(text: str) -> list[str]:
    try:
        return [
            one.name
            for one in ast.parse(text).body
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    except (SyntaxError, ValueError):
        return []


def through_text(code: str, name: str, policy: Policy = "agent") -> Draft:
    draft = Draft(
        Candidate(name, code, "lib", description="Do it."), policy, Rules(), Snapshot.empty(), code
    )
    for stage in TEXT_STAGES:
        draft = stage(draft)
    return draft


def check_text(path: Path) -> None:
    """Check that every text stage answers, and that fixing is idempotent."""
    text = text_of(path)
    for name in names_in(text)[:3] or ["f"]:
        once = through_text(text, name)
        assert once.tree is None or ast.parse(once.text)
        again = fix(read(Draft(once.candidate, "agent", Rules(), Snapshot.empty(), once.text)))
        assert again.text == once.text, (path.name, name, [one.code for one in again.fixes])


async def judged(gate: Gate, text: str, name: str, policy: Policy) -> tuple[Verdict, ModuleVerdict]:
    verdict = await gate.judge(Candidate(name, text, "lib"), Snapshot.empty(), policy)
    saved = await gate.judge_module(ModuleSource.of("lib", text), Snapshot.empty(), policy)
    assert verdict.to_json()
    assert saved.to_json()
    return verdict, saved


@pytest.mark.sampled
@pytest.mark.parametrize("path", sampled(SAMPLE[:25], 3), ids=lambda path: path.name)
def test_the_text_of_a_library_file_is_answered_and_fixed_once(path: Path) -> None:
    check_text(path)


@pytest.mark.parametrize("path", SAMPLE[25:27], ids=lambda path: path.name)
async def test_a_library_file_gets_a_verdict_and_no_exception(gate: Gate, path: Path) -> None:
    text = text_of(path)
    verdict, saved = await judged(gate, text, (names_in(text) or ["f"])[0], "human")
    assert verdict.admitted or verdict.refusals
    assert saved.reading.source.text == text


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_kind_of_library_file_gets_a_verdict(gate: Gate) -> None:
    for at, path in enumerate(SAMPLE[29:]):
        check_text(path)
        if at % 8 == 0:
            text = text_of(path)
            await judged(gate, text, (names_in(text) or ["f"])[0], get_args(Policy)[at % 3])


NAMES = st.sampled_from(["a", "b", "items", "math", "f", "g", "self", "int"])
VALUES = st.recursive(
    NAMES | st.sampled_from(["1", "0.5", "''", "None", "[]", "{}", "...", "True"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "/", "and", "in", "<", "if a else"]), inner).map(
            " ".join
        )
        | st.tuples(NAMES, inner).map(lambda pair: f"{pair[0]}({pair[1]})")
        | st.tuples(inner, NAMES).map(lambda pair: f"[{pair[0]} for {pair[1]} in a]")
        | st.tuples(NAMES, inner).map(lambda pair: f"(lambda {pair[0]}: {pair[1]})")
        | st.tuples(NAMES, inner).map(lambda pair: f"{pair[0]}.append({pair[1]})")
    ),
    max_leaves=6,
)
LINES = st.one_of(
    VALUES.map("return {}".format),
    st.tuples(NAMES, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    st.tuples(NAMES, VALUES).map(lambda pair: f"for {pair[0]} in {pair[1]}: pass"),
    st.tuples(NAMES, VALUES).map(lambda pair: f"assert f({pair[0]}) == {pair[1]}"),
    st.sampled_from(
        ["yield a", "pass", "global g", "raise ValueError(a)", "import math as b", "print(f(1))"]
    ),
)
PIECES = """Do it. a is the number.\n\nArgs:\n    a: A number.\n    b (List[int]): Some.\n>>> f(1)\n2\n>>> f(2)\n3
:param b: x\nReturns:\n-------\nf(1) -> 2\nthe list `b`\n@type a: int\n\\x00\n'''"""
WORDS = st.lists(st.sampled_from(PIECES.split("\n")), max_size=8).map("\n    ".join)
SIGNATURES = st.sampled_from(
    ["a", "a, b=None", "self, a: List[int]", "a: 'int' = 3, *, b", "*a, **b", "a, /, b", ""]
)
TAILS = st.lists(
    st.one_of(
        LINES, VALUES, st.sampled_from(["if __name__ == '__main__': f(1)", "def g(a): return a"])
    )
)


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Draw a module with a function `f`: nearly always valid Python, never sensible."""
    body = draw(st.lists(LINES, min_size=1, max_size=5))
    words = draw(st.sampled_from(["", f'"""{draw(WORDS)}\n    """\n    ']))
    tail = "\n".join(draw(TAILS.filter(lambda lines: len(lines) < 5)))
    return (
        f"{draw(TAILS.map(lambda lines: (lines or [''])[0]))}\ndef f({draw(SIGNATURES)}):\n    {words}"
        + ("\n    ".join(body) + "\n" + tail + "\n")
    )


@settings(max_examples=drawn(500), suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_reader_and_fixer_hold_on_generated_modules(code: str) -> None:
    once = through_text(code, "f", "import")
    again = fix(read(Draft(once.candidate, "import", Rules(), Snapshot.empty(), once.text)))
    assert (again.text, [one.code for one in again.fixes]) == (once.text, [])
    assert not once.fixes or isinstance(ast.parse(once.text), ast.Module)

"""Stage 2: hints that examples, defaults and results prove, and what stays open because nothing proves it."""

from dataclasses import replace

import pytest

from agent_core.functions.gate import Candidate, Gate, GivenExample, Rules
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.fixes.inferred_hints import hint_of
from agent_core.functions.gate.read import read
from agent_core.registry.snapshot import Snapshot

from .support import fixes, on_text, snapshot_of


def described(signature: str, body: str, *examples: str) -> str:
    """A function without hints whose docstring has these examples, each `call = result`."""
    shown = "".join(
        f"        >>> {call}\n        {result}\n" for call, _, result in (one.partition(" = ") for one in examples)
    )
    return f'def f({signature}):\n    """Do a thing.\n\n    Examples:\n{shown}    """\n    {body}\n'


def given(code: str, *calls: str) -> Draft:
    """The candidate after reading and fixing, with examples that came beside it."""
    examples = tuple(GivenExample(call, result) for call, _, result in (one.partition(" = ") for one in calls))
    return fix(read(Draft(Candidate("f", code, "lib", examples=examples), "import", Rules(), Snapshot.empty(), code)))


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        pytest.param([1, 2], "int", id="int"),
        pytest.param([True, False], "bool", id="bool-is-no-int"),
        pytest.param([1, 2.5], "int | float", id="numbers"),
        pytest.param([[1, 2], []], "list[int]", id="an-empty-list-says-nothing"),
        pytest.param([[], []], "list", id="only-empty-lists"),
        pytest.param([["a"], None], "list[str] | None", id="or-none"),
        pytest.param([None, 1], "int | None", id="none-stands-last"),
        pytest.param([[[1]], [[2, 3]]], "list[list[int]]", id="nested"),
        pytest.param([(1, 2), (3, 4)], "tuple[int, ...]", id="a-length-is-no-type"),
        pytest.param([("a", 1), ("b", 2)], "tuple[str, int]", id="places-of-different-types"),
        pytest.param([("a", 1), ("b",)], "tuple[str | int, ...]", id="places-that-vary"),
        pytest.param([{"a": [1]}, {}], "dict[str, list[int]]", id="dict"),
        pytest.param([{(1, 2): 3}], None, id="keys-that-no-json-has"),
        pytest.param([{1, 2}], "set[int]", id="set"),
        pytest.param([1, "a", 2.5, b""], None, id="too-many-types"),
        pytest.param([object()], None, id="no-literal"),
        pytest.param([], None, id="nothing"),
    ],
)
def test_values_prove_the_narrowest_hint_that_fits_all(values: list[object], hint: str | None) -> None:
    assert hint_of(values) == hint


@pytest.mark.parametrize(
    ("code", "signature"),
    [
        pytest.param(
            described("a, b", "return a + b", "f(1, 2) = 3", "f(2, 2) = 4"), "f(a: int, b: int) -> int", id="ints"
        ),
        pytest.param(
            described("a, *, b=0", "return a[b]", "f([1], b=0) = 1", "f([1, 2]) = 1"),
            "f(a: list[int], *, b: int = 0) -> int",
            id="keyword-and-default",
        ),
        pytest.param(
            described("a, b=','", "return a.split(b)", "f('x') = ['x']", "f('x,y') = ['x', 'y']"),
            "f(a: str, b: str = ',') -> list[str]",
            id="default-alone",
        ),
        pytest.param(
            described("a, b=None", "return [a, b]", "f(1, '') = [1, '']", "f(2, 'x') = [2, 'x']"),
            "f(a: int, b: str | None = None) -> list[int | str]",
            id="default-of-none",
        ),
        pytest.param(
            described("a", "return a.lower()", "f('X') = 'x'"), "f(a: str)", id="one-example-and-the-body-agree"
        ),
        pytest.param(
            described("a", "return a + 1", "print(f(1)) = 2", "print(f(2)) = 3"), "f(a: int)", id="inside-of-print"
        ),
        pytest.param(
            described("self, a", "return a + 1", "f(1) = 2", "f(5) = 6"), "f(self, a: int) -> int", id="beside-self"
        ),
        pytest.param(
            described("a", "return None if a else 5", "f(0) = 5", "f(False) = 5"), "-> int | None", id="may-be-none"
        ),
        pytest.param(
            described("a", "if a > 0:\n        return a", "f(1) = 1", "f(2) = 2"),
            "-> int | None",
            id="may-fall-through",
        ),
    ],
)
def test_what_examples_prove_is_written_as_a_hint_and_said(code: str, signature: str) -> None:
    draft = on_text(code)
    assert fixes(draft) == ["inferred-hints"]
    assert signature in draft.text.replace('"', "'")
    assert draft.fixes[0].message.startswith("inferred `")


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(described("a", "return [a]", "f(1) = [1]"), id="one-example-alone"),
        pytest.param(described("a", "return a.append(1)", "f('x') = 1", "f('y') = 2"), id="the-body-speaks-against-it"),
        pytest.param(described("a=None", "return [a]", "f() = [None]"), id="only-none"),
        pytest.param(described("a", "return [a]", "f(x) = 1", "f(y) = 2"), id="no-literals"),
        pytest.param(described("a", "return [a]", "g(1) = 1", "g(2) = 2"), id="another-function"),
    ],
)
def test_a_parameter_without_proof_keeps_its_lack(code: str) -> None:
    assert "inferred-hints" not in fixes(on_text(code)) or "def f(a)" in on_text(code).text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return a / 2", id="division"),
        pytest.param("return sum([a, 0.5 - 0.5])", id="a-fraction-in-the-body"),
        pytest.param("yield a", id="generator"),
    ],
)
def test_a_result_that_may_be_another_type_gets_no_hint(body: str) -> None:
    draft = on_text(described("a: int", body, "f(2) = 1", "f(4) = 2"))
    assert "->" not in draft.text.split('"""')[0]


def test_a_builtin_that_the_file_hides_is_no_hint() -> None:
    code = described("a", "return [a]", "f(1) = [1]", "f(2) = [2]")
    draft = on_text(code, snapshot=snapshot_of(lib="int = 5\nlist = 6\n"))
    assert fixes(draft) == []


def test_examples_beside_the_code_prove_parameters_but_no_result() -> None:
    draft = given('def f(a):\n    """Halve."""\n    return a / 2\n', "f(4) = 2", "f(6) = 3")
    assert "def f(a: int):" in draft.text


def test_inferring_can_be_switched_off_alone() -> None:
    code = described("a, b", "return a + b", "f(1, 2) = 3", "f(2, 2) = 4")
    assert fixes(on_text(code, rules=Rules(off=frozenset({"inferred-hints"})))) == []


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        pytest.param("return [a]", "def f(a: int) -> list[int]:", id="what-came-back"),
        pytest.param("return a / 2", "def f(a: int) -> float:", id="floats-where-integers-were-given"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_the_type_of_what_came_back_becomes_the_hint(gate: Gate, body: str, signature: str) -> None:
    examples = tuple(GivenExample(f"f({n})", repr([n]) if "[" in body else str(n // 2)) for n in (2, 4, 6))
    candidate = Candidate("f", f'def f(a):\n    """Do a thing."""\n    {body}\n', "lib", examples=examples)
    verdict = await gate.judge(candidate, Snapshot.empty(), "import")
    assert verdict.admitted
    assert signature in verdict.source
    assert signature in (verdict.module_text or "")
    assert "no-return-type" not in {one.code for one in verdict.problems}
    again = await gate.judge(replace(candidate, code=verdict.source), Snapshot.empty(), "import")
    assert (again.source, again.fixes) == (verdict.source, ())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_stage_that_refuses_says_so_and_infers_nothing(gate: Gate) -> None:
    examples = (GivenExample("f(1)", "[0]"), GivenExample("f(2)", "[1]"))
    candidate = Candidate("f", 'def f(a):\n    """Do a thing."""\n    return [a * 0]\n', "lib", examples=examples)
    verdict = await gate.judge(candidate, Snapshot.empty(), "import")
    assert "example-disagrees" in {one.code for one in verdict.refusals}
    assert [one.stage for one in verdict.stages if not one.passed and not one.note.startswith("not run")] == [
        "examples"
    ]
    assert "->" not in verdict.source


DOCUMENTED = '    """Do.\n\n    Args:\n        a: A value.\n    """\n    return [*a]\n'
MODERN = "def g(a: list[int]) -> int | None:\n    return a[0]\n"


@pytest.mark.parametrize(
    ("old", "modern"),
    [
        pytest.param("List[int]", "list[int]", id="list"),
        pytest.param("Optional[Dict[str, int]]", "dict[str, int] | None", id="optional"),
        pytest.param("Union[int, List[str], None]", "int | list[str] | None", id="union"),
        pytest.param("Tuple[int, ...]", "tuple[int, ...]", id="tuple"),
    ],
)
def test_old_hints_take_the_modern_form_of_their_file(old: str, modern: str) -> None:
    imports = "from typing import Any, Dict, List, Optional, Tuple, Union\n\n\n"
    code = f"{imports}def f(a: {old}) -> Any:\n{DOCUMENTED}"
    draft = on_text(code, snapshot=snapshot_of(lib=MODERN))
    assert fixes(draft) == ["modern-hints"]
    assert f"def f(a: {modern}) -> Any:" in draft.text
    assert draft.text.startswith("from typing import Any\n")


def test_old_hints_stay_in_a_file_that_has_none_in_the_modern_form() -> None:
    code = f"from typing import List\n\n\ndef f(a: List[int]) -> List[int]:\n{DOCUMENTED}"
    assert on_text(code).text == code
    assert on_text(code, snapshot=snapshot_of(lib="def g(a: int) -> int:\n    return a\n")).text == code

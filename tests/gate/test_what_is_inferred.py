"""Stage 2: hints that examples, defaults and results prove, and what stays open because nothing proves it."""

from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet

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
            described("a, b", "return a + b", "f(1, 2) = 3", "f(2, 2) = 4"),
            "f(a: int | float, b: int | float) -> int | float",
            id="numbers",
        ),
        pytest.param(
            described("a, *, b=0", "return a[b]", "f([1], b=0) = 1", "f([1, 2]) = 1"),
            "f(a: list, *, b: int = 0):",
            id="keyword-and-default",
        ),
        pytest.param(
            described("a, b=','", "return a.split(b)", "f('x') = ['x']", "f('x,y') = ['x', 'y']"),
            "f(a: str, b: str = ',') -> list[str]",
            id="default-alone",
        ),
        pytest.param(
            described("a, b=None", "return [a, b]", "f(1, '') = [1, '']", "f(2, 'x') = [2, 'x']"),
            "f(a: int | float, b: str | None = None) -> list[int | float | str]",
            id="default-of-none",
        ),
        pytest.param(
            described("a", "return a.lower()", "f('X') = 'x'"), "f(a: str)", id="one-example-and-the-body-agree"
        ),
        pytest.param(
            described("a", "return a + 1", "print(f(1)) = 2", "print(f(2)) = 3"),
            "f(a: int | float)",
            id="inside-of-print",
        ),
        pytest.param(
            described("self, a", "return a + 1", "f(1) = 2", "f(5) = 6"),
            "f(self, a: int | float) -> int | float",
            id="beside-self",
        ),
        pytest.param(
            described("a", "return None if a else 5", "f(0) = 5", "f(False) = 5"), "-> int | None", id="may-be-none"
        ),
        pytest.param(
            described("a", "if a > 0:\n        return a", "f(1) = 1", "f(2) = 2"),
            "-> int | float | None",
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
    draft = on_text(code, snapshot=snapshot_of(lib="float = 5\nlist = 6\n"))
    assert fixes(draft) == []


def test_examples_beside_the_code_prove_parameters_but_no_result() -> None:
    draft = given('def f(a):\n    """Halve."""\n    return a / 2\n', "f(4) = 2", "f(6) = 3")
    assert "def f(a: int | float):" in draft.text


def test_inferring_can_be_switched_off_alone() -> None:
    code = described("a, b", "return a + b", "f(1, 2) = 3", "f(2, 2) = 4")
    assert fixes(on_text(code, rules=Rules(off=frozenset({"inferred-hints"})))) == []


def inferred(code: str, *calls: str) -> str:
    """The signature that a function gets which has these examples beside it, each `call = result`."""
    name = code.partition("def ")[2].partition("(")[0]
    examples = tuple(GivenExample(call, result) for call, _, result in (one.partition(" = ") for one in calls))
    draft = Draft(Candidate(name, code, "lib", examples=examples), "import", Rules(), Snapshot.empty(), code)
    return fix(read(draft)).text.partition(f"def {name}")[2].partition("):")[0] + ")"


WIDER = [
    ("return a / b", ["f(1, 2)", "f(6, 3)"], "a: int | float, b: int | float", "ratio"),
    ("return a * b", ["f(1, 2)", "f(6, 3)"], "a: int | float, b: int | float", "product"),
    ("return a * 2.54 - b ** 2", ["f(1, 2)", "f(6, 3)"], "a: int | float, b: int | float", "with-constants"),
    ("return -a if a < b else abs(b)", ["f(1, 2)", "f(6, 3)"], "a: int | float, b: int | float", "order"),
    ("return a[b]", ["f([1, 2], 0)", "f('abc', 1)"], "a: list | str, b: int", "nth"),
    ("return sum(a) / len(a) + b", ["f([1, 2], 0)", "f([3], 1)"], "a: list[int | float], b: int | float", "mean"),
    ("return a[:b]", ["f([1, 2], 0)", "f([3], 1)"], "a: list, b: int", "slice"),
    ("return [a[i : i + b] for i in range(0, len(a), b)]", ["f([1, 2], 1)", "f([3], 1)"], "a: list, b: int", "chunk"),
    (
        "return sum(row[b] for row in a)",
        ["f([{'x': 1}], 'x')", "f([{'y': 2}], 'y')"],
        "a: list[dict[str, int | float]], b: str",
        "total",
    ),
    ("return [row[b] for row in a]", ["f([{'x': 1}], 'x')", "f([{'y': 2}], 'y')"], "a: list[dict], b: str", "column"),
    ("return [x for x in a if x not in b]", ["f(['x'], ['y'])", "f(['y'], ['x'])"], "a: list, b: list", "difference"),
    (
        "r = []\n    for x in a:\n        if x not in r and x != b:\n            r.append(x)\n    return r",
        ["f(['a', 'b'], 1)", "f(['a', 'a'], 2)"],
        "a: list, b: int | float",
        "unique",
    ),
    ("return a[b:] + a[:b]", ["f([1, 2], 0)", "f([3], 1)"], "a: list, b: int", "rotated"),
    ("return a + b", ["f([1, 2], [2])", "f([3], [4])"], "a: list, b: list", "joined-lists"),
    ("return [x * b for x in a]", ["f([1, 2], 3)", "f([3], 1)"], "a: list[int | float], b: int | float", "scaled"),
    (
        "return sum(x * y for x, y in zip(a, b))",
        ["f([1, 2], [3, 4])", "f([3], [1])"],
        "a: list[int | float], b: list[int | float]",
        "products-of-pairs",
    ),
    (
        "return [(i + b) and x for i, x in enumerate(a)]",
        ["f([1, 2], 0)", "f([3], 1)"],
        "a: list, b: int | float",
        "numbered",
    ),
    (
        "return {k: v * b for k, v in a.items()}",
        ["f({'x': 1}, 2)", "f({'y': 2}, 3)"],
        "a: dict[str, int | float], b: int | float",
        "values-of-a-dictionary",
    ),
    (
        "return sum(a[k] for k in a) + b",
        ["f({'x': 1}, 2)", "f({'y': 2}, 3)"],
        "a: dict[str, int | float], b: int | float",
        "values-by-their-keys",
    ),
    ("return a.get(b)", ["f({'x': 1}, 'x')", "f({'y': 2}, 'x')"], "a: dict, b: str", "looked-up"),
    (
        "return {v: k for k, v in a.items()} == b",
        ["f({'x': 1}, 2)", "f({'y': 2}, 3)"],
        "a: dict, b: int | float",
        "turned",
    ),
    (
        "return max(a, key=len) if b else None",
        ["f([[1], [2, 3]], 0)", "f([[2]], 1)"],
        "a: list[list[int | float]], b: int | float",
        "longest",
    ),
    ("return [y for x in a for y in x][:b]", ["f([[1], [2, 3]], 0)", "f([[2]], 1)"], "a: list[list], b: int", "flat"),
    (
        "return sorted(a, key=lambda one: one['n'])[b]",
        ["f([{'n': 1}], 0)", "f([{'n': 2}], 0)"],
        "a: list[dict[str, int | float]], b: int",
        "sorted-by-a-field",
    ),
    (
        "for x, y in a:\n        b += y\n    return b",
        ["f([('u', 1)], 0)", "f([('v', 2)], 0)"],
        "a: list[tuple[str, int | float]], b: int | float",
        "pairs",
    ),
    (
        "c = {}\n    for x in a:\n        c[x] = c.get(x, b) + 1\n    return c",
        ["f([1, 2], 0)", "f([3], 1)"],
        "a: list[int | float], b: int | float",
        "counts",
    ),
    ("return f'{a} of {b}'", ["f(1, 2)", "f(6, 3)"], "a: int | float, b: int | float", "written"),
    ("return str(a) + '/' + str(b)", ["f(1, 2)", "f(6, 3)"], "a: int | float, b: int | float", "joined-texts"),
    ("return a is None or b", ["f(1, None)", "f(None, 3)"], "a: int | float | None, b: int | float | None", "or-none"),
    (
        "from math import sqrt\n    return sqrt(a) + round(b, 2)",
        ["f(1, 2)", "f(6, 3)"],
        "a: int | float, b: int | float",
        "roots",
    ),
    (
        "if b < 0:\n        raise ValueError(f'{b} is below zero')\n    return [a, b]",
        ["f(1, 2)", "f(6, 3)"],
        "a: int | float, b: int | float",
        "said-in-an-error",
    ),
    ("return [*a, *b]", ["f((1, 2), {2})", "f((3, 3), {4})"], "a: tuple, b: set", "tuple-and-set"),
    (
        "while b:\n        b -= 1\n        a = a * 2\n    return a",
        ["f(1, 2)", "f(6, 3)"],
        "a: int | float, b: int | float",
        "rebound",
    ),
    (
        "return [set(a), b]",
        ["f([(1, 2)], 2)", "f([(2, 3)], 3)"],
        "a: list[tuple], b: int | float",
        "items-that-are-made-tuples",
    ),
]
NARROW = [
    ("return a * f(a - 1, b) if a > 1 else b", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "recursion"),
    ("return a % 2 == 0 or not b % 2", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "remainder"),
    ("return [i for i in range(a, b + 1)]", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "range"),
    ("return 'abcdefgh'[a] + 'abcdefgh'[:b]", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "index"),
    ("return a & 1 | b << 2", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "bits"),
    ("return a // 2 + ~b", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "whole-division"),
    ("return f'{a:d}' + format(b, 'x')", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "format"),
    ("return helper(a) + helper(key=b)", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "unknown-helper"),
    ("return int(a) + isinstance(b, int)", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "conversion-and-check"),
    ("return a.bit_length() + b.real", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "attributes"),
    ("return sum(int(d) for d in str(a)) + len(str(b))", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "digits"),
    (
        "def g(x):\n        return x + a\n    return g(1) + (lambda: b)()",
        ["f(1, 2)", "f(6, 3)"],
        "a: int, b: int",
        "inner",
    ),
    ("return a * b", ["f('ab', 2)", "f('c', 3)"], "a: str, b: int", "repeated-text"),
    ("return ['-' * a, [0] * b]", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "repeated-constants"),
    ("return [x * b for x in a]", ["f(['u'], 3)", "f(['v'], 1)"], "a: list[str], b: int", "repeated-words"),
    ("c = '-'\n    c *= a\n    return c + c * b", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "repeated-local"),
    (
        "return [x[0] for x in a if len(x) > b]",
        ["f(['u'], 3)", "f(['v'], 1)"],
        "a: list[str], b: int | float",
        "letters",
    ),
    ("return [x.upper() for x in a][b]", ["f(['u'], 0)", "f(['v'], 0)"], "a: list[str], b: int", "methods-of-items"),
    ("a //= 2\n    b %= 3\n    return a, b", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "in-place"),
    ("c = [a, b]\n    return [helper(x) for x in c]", ["f(1, 2)", "f(6, 3)"], "a: int, b: int", "by-way-of-a-list"),
    (
        "c = []\n    c.append(a)\n    return c.pop() >> b",
        ["f(1, 2)", "f(6, 3)"],
        "a: int, b: int",
        "by-way-of-a-method",
    ),
    ("return {1: 'one'}[a] + (1, 2)[b]", ["f(1, 0)", "f(1, 1)"], "a: int, b: int", "keys"),
    ("return sorted(a, key=helper)[b]", ["f([1], 0)", "f([2], 0)"], "a: list[int], b: int", "key-of-an-order"),
    (
        "return sorted(a, key=lambda x: x % b)",
        ["f([1], 2)", "f([2], 2)"],
        "a: list[int], b: int",
        "key-with-a-remainder",
    ),
    ("return list(enumerate([1], a)) + [9].pop(b)", ["f(1, 0)", "f(1, 0)", "f(2, 0)"], "a: int, b: int", "places"),
    ("return [a ** 2 if b else a]", ["f(True, False)", "f(False, True)"], "a: bool, b: bool", "bool"),
]


def rows(cases: list[tuple[str, list[str], str, str]]) -> list[ParameterSet]:
    """The cases by their last part."""
    return [pytest.param(*case, id=name) for *case, name in cases]


@pytest.mark.parametrize(("body", "calls", "signature"), rows(WIDER))
def test_a_hint_is_as_wide_as_the_body_allows(body: str, calls: list[str], signature: str) -> None:
    assert inferred(f'def f(a, b):\n    """Do a thing."""\n    {body}\n', *calls) == f"({signature})"


@pytest.mark.parametrize(("body", "calls", "signature"), rows(NARROW))
def test_a_hint_stays_narrow_where_the_body_may_ask_for_more(body: str, calls: list[str], signature: str) -> None:
    assert inferred(f'def f(a, b):\n    """Do a thing."""\n    {body}\n', *calls) == f"({signature})"


@pytest.mark.parametrize(
    ("body", "calls", "signature"),
    [
        pytest.param("return a[0]", ["f([1]) = 1", "f([2, 3]) = 2"], "f(a: list):", id="an-item-may-be-anything"),
        pytest.param("return a[1:]", ["f([1]) = []", "f([2, 3]) = [3]"], "f(a: list) -> list:", id="items"),
        pytest.param(
            "return a and a[:1] or None", ["f([]) = None", "f([3]) = [3]"], "f(a: list) -> list | None:", id="none"
        ),
        pytest.param("return len(a)", ["f([1]) = 1", "f([2, 3]) = 2"], "f(a: list) -> int:", id="a-count"),
        pytest.param("return 1 in a", ["f([1]) = True", "f([2]) = False"], "f(a: list) -> bool:", id="a-check"),
        pytest.param("return f'{a}'", ["f([1]) = '[1]'", "f([2]) = '[2]'"], "f(a: list) -> str:", id="a-text"),
        pytest.param(
            "return {'n': a}", ["f(1) = {'n': 1}", "f(2) = {'n': 2}"], "-> dict[str, int | float]:", id="in-a-record"
        ),
        pytest.param("return {a: 'n'}", ["f(1) = {1: 'n'}", "f(2) = {2: 'n'}"], "f(a: int | float):", id="as-a-key"),
        pytest.param(
            "return sum(a)", ["f([1]) = 1", "f([2]) = 2"], "f(a: list[int | float]) -> int | float:", id="a-sum"
        ),
        pytest.param("return a // 2", ["f(1) = 0", "f(2) = 1"], "f(a: int) -> int:", id="whole"),
    ],
)
def test_the_hint_of_a_result_stays_true_for_all_that_is_taken(body: str, calls: list[str], signature: str) -> None:
    assert signature in on_text(described("a", body, *calls)).text.replace('"', "'")


def test_a_number_of_the_module_may_be_multiplied_and_a_text_of_it_may_be_repeated() -> None:
    code = 'RATE = 3\nDASH = "-"\n\n\ndef f(a, b):\n    """Do a thing."""\n    return [a * RATE, b * DASH]\n'
    assert inferred(code, "f(1, 2)", "f(6, 3)") == "(a: int | float, b: int)"


def test_one_example_of_a_number_is_enough_for_it_to_be_a_factor() -> None:
    assert inferred('def f(a, b=2):\n    """Do a thing."""\n    return a * b\n', "f(3, 4)") == "(a, b: int | float = 2)"
    assert inferred('def f(a, b=2):\n    """Do a thing."""\n    return a * b\n', "f('-', 4)") == "(a, b: int = 2)"


def test_what_the_module_calls_by_the_name_of_a_builtin_is_its_own() -> None:
    code = described("a, b", "return sum(a) / max(b)", "f([1], [2]) = 0.5", "f([3], [2]) = 0.5")
    draft = on_text(code, snapshot=snapshot_of(lib="def sum(values):\n    return values[0] % 2\n"))
    assert "def f(a: list[int], b: list[int | float])" in draft.text


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        pytest.param("return [a]", "def f(a: int | float) -> list[int | float]:", id="what-came-back"),
        pytest.param("return a / 2", "def f(a: int | float) -> float:", id="floats-where-integers-were-given"),
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

"""Mutants of a function: each is valid Python, differs, keeps the signature, and names what would detect it."""

import ast
import tracemalloc
import warnings
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.functions.gate.draft import Mutant
from agent_core.functions.gate.mutation import OPERATORS, mutants, stubs
from agent_core.functions.gate.tree import find
from tests.kit.drawing import drawn

from .support import function
from .wild import function as wild

TEXT = "LIMIT = 3\n\n\ndef _near(x):\n    return x + 1\n\n\n{}\n\n\nafter = [LIMIT   ,2]  # as it was\n"


def told(body: str, **options: str) -> list[tuple[str, str, str]]:
    """Return the operator, the changed line, and the kind of example that detects it."""
    return [
        (one.operator, one.after.strip(), one.notices)
        for one in mutants(function(body, **options), "f", 40)
    ]


def check(text: str, name: str, mutant: Mutant) -> None:
    """Check that the mutant parses and differs only in the function's body."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = find(ast.parse(text), name), find(ast.parse(mutant.text), name)
    assert before is not None
    assert after is not None
    assert ast.dump(before) != ast.dump(after), mutant
    for part in (before.args, before.returns, *before.decorator_list):
        assert part is None or ast.dump(part) in ast.dump(after)
    assert ast.get_docstring(before) == ast.get_docstring(after)
    assert mutant.before != mutant.after


def all_of(text: str, name: str) -> list[Mutant]:
    return [*mutants(text, name, 1000), *stubs(text, name, ["None", "0"]).values()]


@settings(max_examples=drawn(50))
@given(st.randoms(use_true_random=False), st.booleans())
def test_every_mutant_parses_differs_and_changes_the_body_alone(
    luck: Random, has_returns: bool
) -> None:
    text = TEXT.format(wild(luck))
    head, tail = (
        text[: text.index("def f(")].removesuffix("async "),
        text[text.index("\n\nafter") :],
    )
    text = text.replace("\n", "\r\n") if has_returns else text
    made = all_of(text, "f")
    for mutant in made:
        check(text, "f", mutant)
        assert mutant.text.startswith(head)
        assert mutant.text.endswith(tail)
    assert len({mutant.text for mutant in made}) == len(made)
    assert mutants(text, "f", 1000) == mutants(text, "f", 1000)


def test_what_is_told_as_progress_is_left_as_it_is() -> None:
    body = "self.progress(0, note='begun')\nself.progress(a + 1)\nself.store(a - 1)\nreturn a * 2"
    changed = [what for _, what, _ in told(body)]
    assert [what for what in changed if "progress" in what] == []
    assert any("store" in what for what in changed)


def test_an_operator_changes_one_thing_and_says_what_would_notice() -> None:
    for body, operator, after, notices in (
        (
            "if a > b:\n    a = b\nreturn a",
            "negated-condition",
            "if not (a > b):",
            "it matters whether `a > b`",
        ),
        (
            "return 1 if(a)else b",
            "negated-condition",
            "return 1 if(not (a))else b",
            "matters whether `a`",
        ),
        (
            "return [x for x in a if x]",
            "negated-condition",
            "return [x for x in a if not (x)]",
            "whether `x`",
        ),
        (
            "for x in a:\n    b += x\nreturn b",
            "early-return",
            "break",
            "second round of `for … in a`",
        ),
        (
            "for x in a: b += x\nreturn b",
            "early-return",
            "for x in a: b += x; break",
            "second round of `for … in a`",
        ),
        (
            "if not a:\n    return[0]\nreturn b",
            "other-return",
            "return None",
            "an example where `a` is empty",
        ),
        (
            "if a == 10:\n    return True\nreturn b",
            "other-return",
            "return False",
            "an example where `a` is `10`",
        ),
        (
            "if a:\n    return b\nelse:\n    return a",
            "other-return",
            "return None",
            "where `a` does not hold",
        ),
        ("return a + b", "arithmetic", "return a - b", "`a + b` is not the same with `-`"),
        ("a //= b\nreturn a", "arithmetic", "a *= b", "`a // b` is not the same with `*`"),
        ("return (a) ** (b)", "arithmetic", "return (a) * (b)", "`a ** b`"),
        ("return a and b", "and-or", "return a or b", "only one of `a` and `b` holds"),
        (
            "if a > 10:\n    b = 1\nreturn b",
            "boundary",
            "if a >= 10:",
            "an example where `a` equals `10`",
        ),
        ("return a[0]", "constant", "return a[1]", "the 0 of `a[0]` matters"),
        ("return a or 'ü'", "constant", 'return a or ""', "the 'ü' of `a or 'ü'` matters"),
    ):
        found = [(line, kind) for name, line, kind in told(body) if name == operator]
        assert any(line == after and notices in kind for line, kind in found), found


def test_what_examples_can_hardly_see_is_left_as_it_is() -> None:
    for body in (
        "raise ValueError(f'{a} is {b + 1}' + 'no')",
        "assert a > 3, 'more'\nreturn a",
        "'a docstring'\nreturn a",
        "return f'{a + 1}'",
        "return {1: 2, 3: 4, 5: 6, 7: 8, 9: 10}[a]",
        "match a:\n    case 1:\n        b = a\nreturn b",
        "return a  # a + 1",
        "def inner(x: int = 1) -> None:\n    a(x)\nreturn inner",
        "for x in a:\n    b(x)\n    break",
        "return (a  # + b\n    + b)",
    ):
        assert told(body) == [], body


def test_the_most_telling_come_first_each_kind_in_turn_and_loops_at_the_end() -> None:
    body = "while a < 9:\n    a += 1\nif a > b:\n    a = b + 2\nif b:\n    a = 3\nreturn a + b"
    kinds = [one[0] for one in told(body)]
    order = list(OPERATORS)
    assert order.index("negated-condition") < order.index("arithmetic") < order.index("boundary")
    assert kinds.index("negated-condition") < kinds.index("arithmetic") < kinds.index("boundary")
    assert [line for _, line, _ in told(body)][-4:] == [
        "a -= 1",
        "while a < 10:",
        "while a <= 9:",
        "a += 2",
    ]
    assert [one[0] for one in told(body)[:3]] == [
        one.operator for one in mutants(function(body), "f", 3)
    ]


def test_a_mutant_shows_its_line_as_a_diff_and_counts_from_the_function() -> None:
    (mutant,) = mutants(TEXT.format("def f(a):\n    # first\n    return a * a"), "f", 9)
    assert (mutant.diff, mutant.line) == ("-    return a * a\n+    return a / a", 2)
    (added,) = (one for one in mutants("def f(a):\n    for x in a:\n        print(x)\n", "f", 9))
    assert added.diff == "+        break"


def test_a_stub_returns_before_the_first_statement_however_it_is_written() -> None:
    for text, after in (
        (
            'def f(a):\n    """Do."""\n    x = a\n    return x\n',
            '"""Do."""\n    return a\n    x = a\n',
        ),
        ("def f(a): x = a; return x\n", "def f(a): return a; x = a;"),
        ("def f(a):\n  'Do.'; return [a]\n", "'Do.'; return a; return [a]\n"),
        ("def f(a):\n    @a\n    def g(): ...\n    return g\n", "return a\n    @a\n    def g()"),
    ):
        found = stubs(text, "f", ["None"])
        assert list(found) == ["a", "None"], text
        assert after in found["a"].text, text
        compile(found["None"].text, "f.py", "exec")


def test_what_has_no_such_function_or_no_body_has_no_mutants() -> None:
    for text in ("", "def f(:", "x = 1\n", "def g(): return 1 + 1\n", "def f(a):\n    'Do.'\n"):
        assert all_of(text, "f") == [], text
    assert mutants("def f(a):\n    return " + "-" * 900 + "a + 1\n", "f", 5) is not None


def test_only_the_mutants_that_are_taken_are_made() -> None:
    text = function("\n".join([*(f"x = {number}" for number in range(5_000)), "return x"]))
    tracemalloc.start()
    try:
        few = mutants(text, "f", 40)
        _size, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(few) == 40
    assert peak < 60 << 20  # all of them would be 5,000 texts of 75 KB

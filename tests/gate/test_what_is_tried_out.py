"""What stands below a candidate only to try it out: taken off, its asserts kept as examples."""

import pytest

from agent_core.functions.gate import Rules

from .support import ADD, codes, fixes, function, on_text

BARE = ADD[: ADD.index("    Examples")] + ADD[ADD.index('    """\n    return') :]


@pytest.mark.parametrize(
    ("tail", "example"),
    [
        pytest.param("assert add(1, 2) == 3", ">>> add(1, 2)\n        3\n", id="assert"),
        pytest.param("assert 3 == add(1, 2), 'wrong'", ">>> add(1, 2)\n        3\n", id="the-other-way-round"),
        pytest.param("assert add(1, b=2) == 3 and add(0, 0) == 0", ">>> add(0, 0)\n        0\n", id="two-in-one"),
        pytest.param(
            "def check(candidate):\n    assert candidate(1, 2) == 3\n\n\ncheck(add)",
            ">>> add(1, 2)\n        3\n",
            id="check-function",
        ),
        pytest.param("def test_add():\n    assert add(1, 2) == 3", ">>> add(1, 2)\n        3\n", id="pytest"),
        pytest.param(
            "class TestAdd(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(1, 2), 3)",
            ">>> add(1, 2)\n        3\n",
            id="unittest",
        ),
        pytest.param("if __name__ == '__main__':\n    assert add(1, 2) == 3", ">>> add(1, 2)\n        3\n", id="guard"),
    ],
)
def test_what_asserts_say_becomes_examples_of_the_docstring(tail: str, example: str) -> None:
    draft = on_text(f"{BARE}\n\n{tail}\n", "add")
    assert (codes(draft), fixes(draft)) == (set(), ["asserted-examples", "trailing-code"])
    assert f"    Examples:\n        {example}" in draft.text or example in draft.text
    assert draft.text.endswith("    return a + b\n")


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param("assert add(x, 2) == 3", id="no-literal-argument"),
        pytest.param("assert add(1, 2) == 1 + 2", id="no-literal-result"),
        pytest.param("assert abs(add(1, 2) - 3) < 1e-9", id="nearly"),
        pytest.param("assert add(1, 2)", id="only-true"),
        pytest.param("assert add( 1,2 ) == 3", id="there-already"),
        pytest.param("def main():\n    print(add(1, 2))\n\n\nmain()", id="main"),
        pytest.param("# Example usage\nprint(add(1, 2))", id="with-its-comment"),
        pytest.param("import doctest\ndoctest.testmod()", id="doctest"),
    ],
)
def test_a_trial_that_says_nothing_new_only_goes(tail: str) -> None:
    draft = on_text(f"{ADD}\n\n{tail}\n", "add")
    assert fixes(draft) == ["trailing-code"]
    assert draft.text.removeprefix("import doctest\n").strip().startswith(ADD.strip())


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param("TABLE.update({1: 2})", id="state-that-the-function-reads"),
        pytest.param("TABLE[add(1, 2)] = 5", id="state-changed-with-its-result"),
        pytest.param("for n in [1]:\n    TABLE.append(f(n, n))", id="a-loop-that-fills-it"),
        pytest.param("random.seed(0)", id="a-module-changed"),
    ],
)
def test_what_may_change_what_is_computed_is_left_and_told(tail: str) -> None:
    draft = on_text(
        f"import random\n\nTABLE = {{}}\n\n\n{function('return TABLE[a] + random.randint(0, b)')}\n\n{tail}\n"
    )
    assert tail in draft.text
    assert codes(draft) == {"top-level-statement"} or "trailing-code" not in fixes(draft)


def test_a_test_that_the_function_itself_needs_stays() -> None:
    code = function("return check(a) + b") + "\n\ndef check(n):\n    return n * 2\n"
    draft = on_text(code)
    assert fixes(draft) == ["private-helper"]
    assert "return _check(a) + b" in draft.text


def test_examples_alone_are_no_docstring_to_know_it_by() -> None:
    draft = on_text("def f(a: int) -> int:\n    return a + 1\n\n\nassert f(1) == 2\nassert f(2) == 3\n")
    assert ">>> f(1)\n        2\n" in draft.text
    assert "no-docstring" in codes(draft)


def test_asserts_are_kept_apart_from_the_result_of_an_example_above() -> None:
    draft = on_text(
        ADD.replace("    Examples:\n", "")
        .replace("        >>>", "    >>>")
        .replace("        3", "    3")
        .replace("        4", "    4")
        + "\nassert add(5, 5) == 10\n",
        "add",
    )
    assert "    4\n\n    Examples:\n        >>> add(5, 5)\n        10\n" in draft.text


def test_keeping_asserts_can_be_switched_off_alone() -> None:
    draft = on_text(f"{BARE}\n\nassert add(1, 2) == 3\n", "add", rules=Rules(off=frozenset({"asserted-examples"})))
    assert fixes(draft) == ["trailing-code"]
    assert draft.text.strip() == BARE.strip()

"""Code below a candidate that only tries it out is removed; code that may matter stays and is reported."""

import pytest

from .support import ADD, codes, fixes, function, on_text


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param("assert add(x, 2) == 3", id="assert"),
        pytest.param("# Example usage\nprint(add(1, 2))", id="with-its-comment"),
        pytest.param("total = add(1, 2)\nprint(total)\nassert total == 3", id="with-a-value-of-its-own"),
        pytest.param("if __name__ == '__main__':\n    print(add(1, 2))", id="program"),
    ],
)
def test_a_trial_at_the_end_is_taken_off(tail: str) -> None:
    draft = on_text(f"{ADD}\n\n{tail}\n", "add")
    assert (codes(draft), fixes(draft), draft.text.strip()) == (set(), ["trailing-code"], ADD.strip())


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


def test_a_helper_that_is_named_like_a_test_stays() -> None:
    code = function("return check(a) + b") + "\n\ndef check(n):\n    return n * 2\n"
    draft = on_text(code)
    assert fixes(draft) == ["private-helper"]
    assert "return _check(a) + b" in draft.text

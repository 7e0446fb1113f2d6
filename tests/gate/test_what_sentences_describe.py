"""Descriptions of parameters in plain sentences, and sentences that describe none."""

import pytest

from agent_core.functions.gate.fixes.sections import take

from .support import fixes, on_text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param("Add. `a` is the first number.", {"a": "The first number."}, id="quoted"),
        pytest.param("Add. a is the first number.", {"a": "The first number."}, id="bare"),
        pytest.param("Add. The parameter a gives how many there are.", {"a": "Gives how many there are."}, id="gives"),
        pytest.param("Add. a is the first, and b is the second.", {"a": "The first", "b": "The second."}, id="both"),
        pytest.param(
            "Add, where a is the first and b is the second.", {"a": "The first", "b": "The second."}, id="where"
        ),
        pytest.param("Add to a list of integers `a`.", {"a": "A list of integers."}, id="beside-its-name"),
        pytest.param("Add. Where `b` is how many are added.", {"b": "How many are added."}, id="where-sentence"),
    ],
)
def test_a_sentence_about_a_parameter_is_its_description(words: str, told: dict[str, str]) -> None:
    assert take([words], ["a", "b"])[1] == told


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("Add a and b.", id="only-named"),
        pytest.param("Add. a is positive.", id="a-condition"),
        pytest.param("Add. If a is the larger, b counts.", id="inside-a-condition"),
        pytest.param("Add the length of `a` to the larger `b`.", id="something-of-it"),
        pytest.param("Return a copy of it. This is the sum.", id="an-article"),
        pytest.param("Add.\n>>> a is the first number.", id="an-example"),
    ],
)
def test_a_sentence_about_something_else_is_left_alone(words: str) -> None:
    lines = words.split("\n")
    assert take(lines, ["a", "b"]) == (lines, {})


def test_a_sentence_moves_and_what_stands_around_it_stays() -> None:
    words = "Add two numbers.\n\n    Slowly. a is the first\n    number. b is the second one. Never fails.\n    "
    draft = on_text(f'def f(a: int, b: int) -> int:\n    """{words}"""\n    return a + b\n')
    assert fixes(draft) == ["docstring-sections"]
    assert (
        "    Slowly. Never fails.\n\n    Args:\n        a: The first number.\n        b: The second one.\n"
        in draft.text
    )


def test_the_first_sentence_is_copied_and_never_moved() -> None:
    draft = on_text('def f(a: int) -> int:\n    """a is the number to double."""\n    return a * 2\n')
    assert '"""a is the number to double.\n\n    Args:\n        a: The number to double.\n    """' in draft.text

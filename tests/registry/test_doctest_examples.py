"""Examples are read from docstrings as data, just as doctest reads them."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from agent_core.registry import examples
from tests.registry.support import codes, only, read

MODULE = '''"""Module."""


def double(x: int) -> int:
    """Double a number.\\
    (continued)

    >>> double(2)
    4

    >>> y = 3  # a set-up line
    >>> z = [
    ...     y,
    ... ]
    >>> double(z)  # doctest: +ELLIPSIS, -NORMALIZE_WHITESPACE
    [3, ...]
    >>> double(
    ...     y)
    6
    >>> double(None)
    Traceback (most recent call last):
        ...
    TypeError: no
    """
'''


def test_examples_carry_call_expectation_and_line() -> None:
    found = only(MODULE).examples
    assert [(one.call, one.expected, one.line) for one in found] == [
        ("double(2)", "4\n", 8),
        ("double(z)  # doctest: +ELLIPSIS, -NORMALIZE_WHITESPACE", "[3, ...]\n", 15),
        ("double(\n    y)", "6\n", 17),
        ("double(None)", "", 20),
    ]
    assert found[3].raises == "TypeError: no"
    assert found[1].options == (("ELLIPSIS", True), ("NORMALIZE_WHITESPACE", False))


def test_set_up_stays_for_the_examples_after_it() -> None:
    found = only(MODULE).examples
    setup = ("y = 3  # a set-up line", "z = [\n    y,\n]")
    assert [one.setup for one in found] == [(), setup, setup, setup]


def test_a_last_call_without_output_expects_none() -> None:
    (example,) = only('def f():\n    """F.\n\n    >>> x = 1\n    >>> f()\n    """\n').examples
    assert (example.call, example.expected, example.setup) == ("f()", "", ("x = 1",))


def test_malformed_examples_are_told_and_the_function_stays() -> None:
    for docstring in [">>>f()\n    1", ">>> f()\n  1"]:
        reading = read(f'def f():\n    """F.\n\n    {docstring}\n    """\n')
        assert codes(reading.problems) == ["malformed-example"], docstring
        assert reading.functions[0].examples == (), docstring
        assert reading.problems[0].severity == "warns", docstring


LINES = st.lists(
    st.sampled_from(
        [
            ">>> f(1)",
            ">>> x = 2",
            "... y",
            "1",
            "",
            "text",
            ">>> # only a comment",
            ">>> f()  # doctest: +SKIP",
            "Traceback (most recent call last):",
            "    stack",
            "ValueError: no",
            "  >>> indented",
            "  2",
            ">>>",
            "\t>>> tabbed",
            "<BLANKLINE>",
        ]
    ),
    max_size=12,
)


def by_doctest(text: str) -> list[tuple[str, str, int, str]] | None:
    try:
        found = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return None
    return [
        (one.source.rstrip("\n"), one.want.rstrip(), one.lineno, (one.exc_msg or "").strip())
        for one in found
    ]


@given(LINES)
def test_prompts_are_what_doctest_reads(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        ours = [
            (one.source.rstrip("\n"), one.want.rstrip(), one.line, one.raises)
            for one in examples.find(text)
        ]
    except ValueError:
        ours = None
    assert ours == by_doctest(text)

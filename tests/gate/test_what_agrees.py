"""Comparing an actual with a written result: by value if it is a literal, otherwise by text."""

import datetime
from decimal import Decimal
from typing import Any

import pytest

from agent_core.base.untrusted import fence
from agent_core.functions.gate import GivenExample
from agent_core.functions.gate.examples.agreement import agrees, given_agrees, promises_floats
from agent_core.registry.examples import Example
from sandbox import Failure, Killed, Outcome, Raised, Returned, TimedOut


def returned(value: Any, output: str = "", shown: str | None = None) -> Returned:
    return Returned(value, repr(value) if shown is None else shown, output, 0.0)


def raised(kind: str, message: str) -> Raised:
    return Raised(Failure(kind, message), "", 0.0)


def example(expected: str, *options: str, raises: str = "") -> Example:
    return Example((), "f()", expected, 1, raises, tuple((option, True) for option in options))


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        pytest.param("5", 5, id="int"),
        pytest.param("-0.5", -0.5, id="float"),
        pytest.param("[0.3]", [0.1 + 0.2], id="float-but-for-its-last-digits"),
        pytest.param("'it''s'", "its", id="text-by-value"),
        pytest.param("{'b': 1, 'a': 2}", {"a": 2, "b": 1}, id="dict-in-any-order"),
        pytest.param("{3, 1}", {1, 3}, id="set-in-any-order"),
        pytest.param("nan", float("nan"), id="nan"),
        pytest.param("[1.0, inf]", [1.0, float("inf")], id="infinity"),
        pytest.param("Decimal('1.50')", Decimal("1.50"), id="decimal"),
        pytest.param("datetime.date(2024, 2, 29)", datetime.date(2024, 2, 29), id="date"),
        pytest.param("(1,)", (1,), id="tuple"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_value_agrees_with_what_doctest_would_show(expected: str, value: Any) -> None:
    assert agrees(example(expected), returned(value))


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        pytest.param("5", 4, id="another-number"),
        pytest.param("5", 5.0, id="float-for-int"),
        pytest.param("1", True, id="bool-for-int"),
        pytest.param("True", 1, id="int-for-bool"),
        pytest.param("(1, 2)", [1, 2], id="list-for-tuple"),
        pytest.param("[1, 2]", [1, 2, 3], id="longer"),
        pytest.param("{'a': 1}", {"a": True}, id="inside-a-dict"),
        pytest.param("'None'", None, id="text-for-none"),
        pytest.param("", 5, id="a-value-for-nothing"),
        pytest.param("0.3", 0.3000001, id="nearly"),
        pytest.param("0.0", 1e-12, id="something-for-nothing"),
    ],
)
def test_a_value_of_another_worth_or_type_disagrees(expected: str, value: Any) -> None:
    assert not agrees(example(expected), returned(value))


@pytest.mark.parametrize(
    ("returns", "expected", "value", "agreed"),
    [
        pytest.param("float", "2.0", 2, True, id="int-for-float"),
        pytest.param("float", "2", 2.0, True, id="float-for-int"),
        pytest.param("list[float]", "[1.0, 2.5]", [1, 2.5], True, id="inside-a-list"),
        pytest.param("float | None", "2.0", 2, True, id="or-nothing"),
        pytest.param("float", "2.0", 3, False, id="another-number"),
        pytest.param("float", "1.0", True, False, id="bool"),
        pytest.param("float", "1.0", 10**400, False, id="too-large-to-be-one"),
        pytest.param("int", "2.0", 2, False, id="int"),
        pytest.param("int | float", "2.0", 2, False, id="either"),
        pytest.param("", "2.0", 2, False, id="no-hint"),
    ],
)
def test_where_floats_are_promised_two_is_two(returns: str, expected: str, value: Any, agreed: bool) -> None:
    assert agrees(example(expected), returned(value), is_float=promises_floats(returns)) is agreed


@pytest.mark.parametrize(
    ("expected", "options", "value", "output"),
    [
        pytest.param("hello\n3\n", (), 3, "hello\n", id="printed-and-returned"),
        pytest.param("hello\n", (), None, "hello", id="printed-without-a-newline"),
        pytest.param("a\n<BLANKLINE>\nb\n", (), None, "a\n\nb\n", id="blank-line"),
        pytest.param("'2...Z'", ("ELLIPSIS",), "2024Z", "", id="ellipsis"),
        pytest.param("[1, ..., 9]", ("ELLIPSIS",), [1, 2, 3, 9], "", id="ellipsis-in-a-list"),
        pytest.param("a    b\n", ("NORMALIZE_WHITESPACE",), None, "a b\n", id="whitespace"),
    ],
)
def test_printed_output_and_doctest_options_are_honoured(
    expected: str, options: tuple[str, ...], value: Any, output: str
) -> None:
    assert agrees(example(expected, *options), returned(value, output))


@pytest.mark.parametrize("value", ["2024", "3024Z", "2Z3"])
def test_an_ellipsis_stands_for_some_texts_only(value: str) -> None:
    assert not agrees(example("'2...Z'", "ELLIPSIS"), returned(value))


@pytest.mark.parametrize(
    ("raises", "outcome", "expected"),
    [
        pytest.param("ValueError: no", raised("ValueError", "no"), True, id="same"),
        pytest.param("ValueError: no", raised("ValueError", "yes"), False, id="another-message"),
        pytest.param("ValueError: no", raised("TypeError", "no"), False, id="another-type"),
        pytest.param("json.decoder.JSONDecodeError: bad", raised("JSONDecodeError", "bad"), True, id="dotted"),
        pytest.param("KeyError", raised("KeyError", ""), True, id="without-message"),
        pytest.param("ValueError: no", returned(3), False, id="returned"),
        pytest.param("ValueError: no", returned(None), False, id="returned-nothing"),
        pytest.param("ValueError: no", TimedOut(1, "", 1), False, id="timed-out"),
        pytest.param("ValueError: no", Killed("gone", "", 1), False, id="killed"),
    ],
)
def test_an_expected_error_agrees_by_type_and_message(raises: str, outcome: Outcome, expected: bool) -> None:
    assert agrees(example("", raises=raises), outcome) is expected


def test_an_error_never_agrees_with_an_expected_value() -> None:
    assert not agrees(example("ValueError: no"), raised("ValueError", "no"))


def test_a_comparison_without_a_result_is_meant_to_be_true() -> None:
    comparison = Example((), "f(1) == 3", "", 1)
    assert agrees(comparison, returned(True))
    assert not agrees(comparison, returned(False))


@pytest.mark.parametrize(
    ("expected", "approx", "value", "agreed"),
    [
        pytest.param("5", None, 5.0, True, id="equal-as-python-compares"),
        pytest.param("1", None, True, False, id="a-bool-is-no-number"),
        pytest.param("0.3", 1e-6, 0.1 + 0.2, True, id="within-the-tolerance"),
        pytest.param("0.3", 1e-6, 0.31, False, id="beyond-the-tolerance"),
        pytest.param("[0.3, {'a': 1.0}]", 1e-6, [0.30000001, {"a": 1.0}], True, id="inside"),
        pytest.param("(1, 2)", None, [1, 2], False, id="list-for-tuple"),
        pytest.param("10" + "0" * 400, 1e-6, 10.0, False, id="too-large-for-a-float"),
    ],
)
def test_a_given_example_is_equal_as_python_compares(
    expected: str, approx: float | None, value: Any, agreed: bool
) -> None:
    assert given_agrees(GivenExample("f()", expected, approx), returned(value)) is agreed


def test_what_a_worker_claims_to_show_does_not_stand_for_its_value() -> None:
    assert not agrees(example("5"), returned(4, shown="5"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain", "`plain`", id="plain"),
        pytest.param("two\nlines\x1b[31m", "`two\\nlines\\x1b[31m`", id="control-characters"),
        pytest.param("`quoted`", "`'quoted'`", id="backticks"),
        pytest.param("\u202eright to left", "`\\u202eright to left`", id="direction"),
    ],
)
def test_a_text_from_a_worker_is_fenced(text: str, shown: str) -> None:
    assert fence(text) == shown

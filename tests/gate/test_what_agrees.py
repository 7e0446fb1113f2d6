"""Comparing an actual with a written result: by value if it is a literal, otherwise by text."""

import datetime
from decimal import Decimal
from typing import Any

from agent_core.base.untrusted import fence
from agent_core.functions.gate import GivenExample
from agent_core.functions.gate.examples import agrees, given_agrees, promises_floats
from agent_core.registry.examples import Example
from sandbox import Failure, Killed, Outcome, Raised, Returned, TimedOut


def returned(value: Any, output: str = "", shown: str | None = None) -> Returned:
    return Returned(value, repr(value) if shown is None else shown, output, 0.0)


def raised(kind: str, message: str) -> Raised:
    return Raised(Failure(kind, message), "", 0.0)


def example(expected: str, *options: str, raises: str = "") -> Example:
    return Example((), "f()", expected, 1, raises, tuple((option, True) for option in options))


def test_a_value_agrees_with_what_doctest_would_show() -> None:
    cases: list[tuple[str, Any]] = [
        ("5", 5),  # int
        ("-0.5", -0.5),  # float
        ("[0.3]", [0.1 + 0.2]),  # float but for its last digits
        ("'it''s'", "its"),  # text by value
        ("{'b': 1, 'a': 2}", {"a": 2, "b": 1}),  # dict in any order
        ("{3, 1}", {1, 3}),  # set in any order
        ("nan", float("nan")),  # nan
        ("[1.0, inf]", [1.0, float("inf")]),  # infinity
        ("Decimal('1.50')", Decimal("1.50")),  # decimal
        ("datetime.date(2024, 2, 29)", datetime.date(2024, 2, 29)),  # date
        ("(1,)", (1,)),  # tuple
        ("", None),  # nothing
    ]
    for expected, value in cases:
        assert agrees(example(expected), returned(value)), expected


def test_a_value_of_another_worth_or_type_disagrees() -> None:
    cases: list[tuple[str, Any]] = [
        ("5", 4),  # another number
        ("5", 5.0),  # float for int
        ("True", 1),  # int for bool
        ("(1, 2)", [1, 2]),  # list for tuple
        ("[1, 2]", [1, 2, 3]),  # longer
        ("{'a': 1}", {"a": True}),  # inside a dict
        ("'None'", None),  # text for none
        ("", 5),  # a value for nothing
        ("0.3", 0.3000001),  # nearly
        ("0.0", 1e-12),  # something for nothing
    ]
    for expected, value in cases:
        assert not agrees(example(expected), returned(value)), expected


def test_where_floats_are_promised_two_is_two() -> None:
    cases: list[tuple[str, str, Any, bool]] = [
        ("float", "2.0", 2, True),  # int for float
        ("float", "2", 2.0, True),  # float for int
        ("list[float]", "[1.0, 2.5]", [1, 2.5], True),  # inside a list
        ("float | None", "2.0", 2, True),  # or nothing
        ("float", "2.0", 3, False),  # another number
        ("float", "1.0", True, False),  # bool
        ("float", "1.0", 10**400, False),  # too large to be one
        ("int", "2.0", 2, False),  # int
        ("int | float", "2.0", 2, False),  # either
        ("", "2.0", 2, False),  # no hint
    ]
    for returns, expected, value, agreed in cases:
        assert (
            agrees(example(expected), returned(value), is_float=promises_floats(returns)) is agreed
        ), returns


def test_printed_output_and_doctest_options_are_honoured() -> None:
    cases: list[tuple[str, tuple[str, ...], Any, str]] = [
        ("hello\n3\n", (), 3, "hello\n"),  # printed and returned
        ("hello\n", (), None, "hello"),  # printed without a newline
        ("a\n<BLANKLINE>\nb\n", (), None, "a\n\nb\n"),  # blank line
        ("'2...Z'", ("ELLIPSIS",), "2024Z", ""),  # ellipsis
        ("[1, ..., 9]", ("ELLIPSIS",), [1, 2, 3, 9], ""),  # ellipsis in a list
        ("a    b\n", ("NORMALIZE_WHITESPACE",), None, "a b\n"),  # whitespace
    ]
    for expected, options, value, output in cases:
        assert agrees(example(expected, *options), returned(value, output)), expected


def test_an_ellipsis_stands_for_some_texts_only() -> None:
    for value in ("2024", "3024Z", "2Z3"):
        assert not agrees(example("'2...Z'", "ELLIPSIS"), returned(value)), value


def test_an_expected_error_agrees_by_type_and_message() -> None:
    cases: list[tuple[str, Outcome, bool]] = [
        ("ValueError: no", raised("ValueError", "no"), True),  # same
        ("ValueError: no", raised("ValueError", "yes"), False),  # another message
        ("ValueError: no", raised("TypeError", "no"), False),  # another type
        ("json.decoder.JSONDecodeError: bad", raised("JSONDecodeError", "bad"), True),  # dotted
        ("KeyError", raised("KeyError", ""), True),  # without message
        ("ValueError: no", returned(3), False),  # returned
        ("ValueError: no", returned(None), False),  # returned nothing
        ("ValueError: no", TimedOut(1, "", 1), False),  # timed out
        ("ValueError: no", Killed("gone", "", 1), False),  # killed
    ]
    for raises, outcome, expected in cases:
        assert agrees(example("", raises=raises), outcome) is expected, raises


def test_an_error_never_agrees_with_an_expected_value() -> None:
    assert not agrees(example("ValueError: no"), raised("ValueError", "no"))


def test_a_comparison_without_a_result_is_meant_to_be_true() -> None:
    comparison = Example((), "f(1) == 3", "", 1)
    assert agrees(comparison, returned(True))
    assert not agrees(comparison, returned(False))


def test_a_given_example_is_equal_as_python_compares() -> None:
    cases: list[tuple[str, float | None, Any, bool]] = [
        ("5", None, 5.0, True),  # equal as python compares
        ("1", None, True, False),  # a bool is no number
        ("0.3", 1e-6, 0.1 + 0.2, True),  # within the tolerance
        ("0.3", 1e-6, 0.31, False),  # beyond the tolerance
        ("[0.3, {'a': 1.0}]", 1e-6, [0.30000001, {"a": 1.0}], True),  # inside
        ("(1, 2)", None, [1, 2], False),  # list for tuple
        ("10" + "0" * 400, 1e-6, 10.0, False),  # too large for a float
    ]
    for expected, approx, value, agreed in cases:
        assert given_agrees(GivenExample("f()", expected, approx), returned(value)) is agreed, (
            expected
        )


def test_what_a_worker_claims_to_show_does_not_stand_for_its_value() -> None:
    assert not agrees(example("5"), returned(4, shown="5"))


def test_a_text_from_a_worker_is_fenced() -> None:
    for text, shown in (
        ("plain", "`plain`"),  # plain
        ("two\nlines\x1b[31m", "`two\\nlines\\x1b[31m`"),  # control characters
        ("`quoted`", "`'quoted'`"),  # backticks
        ("\u202eright to left", "`\\u202eright to left`"),  # direction
    ):
        assert fence(text) == shown, text

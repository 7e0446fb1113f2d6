"""A model's arguments: fixed, coerced without loss, and explained if they do not fit."""

import json
import time
from typing import Any

import pytest

from agent_core.registry import arguments
from tests.kit.pace import slowness
from tests.kit.schemas import described

PRELUDE = """
from __future__ import annotations
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal
from pydantic import Field

@dataclass
class Item:
    name: str
    count: int = 1
    parts: list[Item] | None = None
"""
BOMB = "a" * 60 + "!"
_MOST_S = 0.6  # of processor time; each took six seconds or more, or nine tenths of one


def parameters(signature: str) -> dict[str, Any]:  # Any: JSON Schema
    return described(f"{PRELUDE}\ndef probe({signature}): ...\n").parameters


def value_of(annotation: str, raw: str) -> Any:  # Any: JSON
    found = arguments.read(f'{{"v": {raw}}}', parameters(f"v: {annotation}"))
    return found["v"] if isinstance(found, dict) else [str(problem.message) for problem in found]


def complaints(signature: str, raw: str) -> list[str]:
    return complaints_of(arguments.read(raw, parameters(signature)))


def complaints_of(found: object) -> list[str]:
    assert isinstance(found, tuple)
    return [problem.message for problem in found]


def test_what_is_unambiguous_is_fixed() -> None:
    for raw in [
        '{"a": [1], "b": "x,]"}',
        '```json\n{"a": [1], "b": "x,]"}\n```',
        '  ```\n{"a": [1], "b": "x,]"}```  ',
        '{"a": [1,], "b": "x,]",\n}',
        json.dumps('{"a": [1], "b": "x,]"}'),
        '{"a": "[1]", "b": "x,]"}',
        '\ufeff{"a": [1], "b": "x,]"}',
        "{'a': [1], 'b': 'x,]', 'c': None, 'd': False}",
        "{a: [1], b: 'x,]', c: undefined}",
        '{"a": "[\'1\']", "b": "x,]", /* none */ "d": False} // done',
        "{“a”: [1], “b”: “x,]”}",
        '{"a": [1], "b": "x,]"}}]',
        '[[1], "x,]"]',
    ]:
        read = arguments.read(raw, parameters("a: list[int], b: str, c: int = 0, d: bool = True"))
        assert read in ({"a": [1], "b": "x,]"}, {"a": [1], "b": "x,]", "d": False}), raw


def test_a_text_keeps_each_letter_however_it_is_written() -> None:
    rows: list[tuple[str, str, str]] = [
        ("escapes", r"""{'v': 'it\'s "x" \x41\n\d'}""", 'it\'s "x" A\n\\d'),
        ("line-breaks", '{"v": "a\n\tb"}', "a\n\tb"),
        ("only-parameter", '"a b"', "a b"),
        ("list-of-it", '["a b"]', "a b"),
    ]
    for case, raw, value in rows:
        assert arguments.read(raw, parameters("v: str")) == {"v": value}, case


def test_a_value_without_names_that_two_parameters_could_mean_is_refused() -> None:
    refused = complaints("a: list[str], b: list[str] = []", '["x", "y"]')
    assert refused == ['expected a JSON object, got ["x", "y"] (array)']


def test_nothing_stands_for_no_arguments() -> None:
    for raw in ["", "  ", "null", "{}", '""', "```json\n```", "```\n{}\n```"]:
        assert arguments.read(raw, parameters("a: int = 1")) == {}, raw


def test_what_is_no_object_of_json_is_refused_in_one_line() -> None:
    rows: list[tuple[str, str, str]] = [
        ("cut-off", "{", "the text ends too early"),
        ("array", "[1]", "expected a JSON object, got [1] (array)"),
        ("number", "3", "expected a JSON object, got 3 (integer)"),
        ("prose", "not json", "expected JSON"),
        ("nan", '{"a": NaN}', "expected a finite number, got NaN"),
        ("infinity", '{"a": -Infinity}', "expected a finite number, got -Infinity"),
        ("overflow", '{"a": 1e999}', "expected a finite number, got 1e999"),
        ("twice", '{"a": 1, "a": 2}', "expected each key once, got `a` twice"),
        ("bomb", f'{{"a": {"[" * 100_000}', "expected at most 50,000 values"),
        ("deep", f'{{"a": {"[" * 70}{"]" * 70}}}', "expected at most 64 levels"),
        ("endless-integer", f'{{"a": {"1" * 5_000}}}', "at most 4300 digits"),
        ("long", '{"a": "' + "x" * 1_000_001 + '"}', "expected at most 1000000 characters"),
        ("python-joins-texts", "{'a': 'b' 'c'}", "expected JSON"),
        ("quote-within", "{'a': 'b'c'}", "expected JSON"),
        ("cut-off-in-a-key", '{"a": 1, "b"', "the text ends too early"),
    ]
    for case, raw, says in rows:
        (complaint,) = complaints("a: Any", raw)
        assert says in complaint, case


def test_what_loses_nothing_is_coerced() -> None:
    rows: list[tuple[str, str, str, Any]] = [
        ("text-to-integer", "int", '"3"', 3),
        ("whole-number-to-integer", "int", "3.0", 3),
        ("text-of-whole-number-to-integer", "int", '" -3.0 "', -3),
        ("large-integer", "int", "9007199254740993", 2**53 + 1),
        ("large-text", "int", '"123456789012345678901234567890"', 123456789012345678901234567890),
        ("text-to-number", "float", '"3.5e1"', 35.0),
        ("integer-is-a-number", "float", "3", 3),
        ("text-without-zero", "float", '"+.5"', 0.5),
        ("thousands", "float", '"1,234,567.5"', 1234567.5),
        ("semicolons", "list[int]", '"1;2"', [1, 2]),
        ("spaces", "list[int]", '"1 2"', [1, 2]),
        ("list-of-one", "int", "[3]", 3),
        ("list-of-one-object", "Item", '[{"name": "a"}]', {"name": "a"}),
        (
            "fields-by-position",
            "list[Item]",
            '[["a", 2], ["b", "3"]]',
            [{"name": "a", "count": 2}, {"name": "b", "count": 3}],
        ),
        ("choice-in-quotes", "Literal['low', 'high']", "\"'High'\"", "high"),
        ("choice-of-an-enumeration", "Literal['low', 'high']", '"Level.HIGH"', "high"),
        ("text-to-boolean", "bool", '"true"', True),
        ("capital-text-to-boolean", "bool", '"False"', False),
        ("integer-to-text", "str", "3", "3"),
        ("one-value-to-list", "list[int]", '"3"', [3]),
        ("one-value-to-nested-list", "list[list[int]]", "3", [[3]]),
        ("items", "list[str]", '["a", 1]', ["a", "1"]),
        ("set-without-repetition", "set[int]", '[1, "1", 2]', [1, 2]),
        ("tuple", "tuple[int, str]", '["1", 2]', [1, "2"]),
        ("mapping", "dict[str, int]", '{"a": "1"}', {"a": 1}),
        ("integer-keys", "dict[int, int]", '{"1": "1"}', {"1": 1}),
        ("exact-match-stays", "int | str", '"3"', "3"),
        ("exact-match-stays-in-any-order", "str | int", "3", 3),
        ("through-a-union", "int | None", '"3"', 3),
        ("first-branch-of-a-union", "list[int] | int", '"3"', [3]),
        ("fields", "Item", '{"name": 1, "count": "2"}', {"name": "1", "count": 2}),
        ("encoded-object", "Item", '"{\\"name\\": \\"a\\"}"', {"name": "a"}),
        ("null-for-a-default", "Item", '{"name": "a", "count": null}', {"name": "a"}),
        (
            "recursive",
            "Item",
            '{"name": "a", "parts": {"name": "b", "count": "3"}}',
            {"name": "a", "parts": [{"name": "b", "count": 3}]},
        ),
        ("decimal-number", "Decimal", "0.1", 0.1),
        ("decimal-text", "Decimal", '"0.10"', "0.10"),
        ("format-is-the-worker's", "date", '"no date"', "no date"),
        ("anything", "Any", '{"a": [null]}', {"a": [None]}),
        ("pattern-is-the-worker's", 'Annotated[str, Field(pattern="(a+)+$")]', f'"{BOMB}"', BOMB),
    ]
    for case, annotation, raw, value in rows:
        found = value_of(annotation, raw)
        assert found == value, case
        assert type(found) is type(value), case


def test_what_does_not_fit_is_explained_with_its_path() -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("fraction", "int", "1.5", "v: expected integer, got 1.5 (number)"),
        ("word", "int", '"abc"', 'v: expected integer, got "abc" (string)'),
        ("leading-zero", "int", '"03"', 'v: expected integer, got "03" (string)'),
        ("boolean", "int", "true", "v: expected integer, got true (boolean)"),
        ("null", "int", "null", "v: expected integer, got null"),
        ("one-is-not-true", "bool", "1", "v: expected boolean, got 1 (integer)"),
        ("number-lost-its-text", "str", "1.10", "v: expected string, got 1.1 (number)"),
        ("text-nan", "float", '"NaN"', 'v: expected number, got "NaN" (string)'),
        ("text-overflow", "float", '"1e999"', 'v: expected number, got "1e999" (string)'),
        ("no-float-holds-it", "float", "9" * 400, "v: expected number, got … (integer)"),
        ("enum", 'Literal["a", "b"]', '"c"', 'v: expected one of "a", "b", got "c" (string)'),
        (
            "two-choices",
            'Literal["a", "A "]',
            '"A"',
            'v: expected one of "a", "A ", got "A" (string)',
        ),
        ("list-or-text", "list[str]", '"a, b"', 'v: expected array of string, got "a, b" (string)'),
        ("by-spaces", "list[int]", '"1 234"', 'v: expected array of integer, got "1 234" (string)'),
        ("unit", "float", '"5 kg"', 'v: expected number, got "5 kg" (string)'),
        ("two-for-one", "str", '["a", "b"]', 'v: expected string, got ["a", "b"] (array)'),
        ("thousands", "list[int]", '"1,234"', 'v: expected array of integer, got "1,234" (string)'),
        (
            "decimal-comma",
            "list[float]",
            '"1,5"',
            'v: expected array of number, got "1,5" (string)',
        ),
        ("letter", "bool", '"y"', 'v: expected boolean, got "y" (string)'),
        ("word-for-nothing-required", "int", '"null"', 'v: expected integer, got "null" (string)'),
        ("union", "int | None", '"x"', 'v: expected integer or null, got "x" (string)'),
        ("item", "list[int]", '[1, "x"]', 'v[1]: expected integer, got "x" (string)'),
        (
            "short",
            "tuple[int, int]",
            "[1]",
            "v: expected array with at least 2 items, got [1] (array)",
        ),
        ("bound", "Annotated[int, Field(ge=1)]", "0", "v: expected integer ≥ 1, got 0 (integer)"),
        ("format", "date", "3.5", "v: expected string (date), got 3.5 (number)"),
        (
            "vague",
            "int",
            "9007199254740994.0",
            "v: expected integer, got 9007199254740994.0 (number)",
        ),
        ("a-year-is-no-date", "date", "2024", "v: expected string (date), got 2024 (integer)"),
        ("missing-field", "Item", '{"count": 1}', "v.name: expected string, got nothing"),
        ("extra", "Item", '{"name": "a", "cuont": 1}', "v: there is no key `cuont`"),
        (
            "closest-branch",
            "Item | None",
            '{"name": []}',
            "v.name: expected string, got [] (array)",
        ),
        (
            "recursive",
            "Item",
            '{"name": "a", "parts": [{"name": "b", "count": []}]}',
            "v.parts[0].count: expected integer, got [] (array)",
        ),
    ]
    for case, annotation, raw, complaint in rows:
        assert value_of(annotation, raw) == [complaint], case


def test_every_problem_is_told_at_once_and_in_order() -> None:
    found = complaints("a: int, b: list[str], c: bool = True", '{"b": [[], "x", 1.5], "d": 1}')
    assert found == [
        "a: expected integer, got nothing",
        "b[0]: expected string, got [] (array)",
        "b[2]: expected string, got 1.5 (number)",
        "there is no argument `d`",
    ]


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    found = arguments.read('{"file_nam": "a"}', parameters("file_name: str, other: int = 1"))
    assert not isinstance(found, dict)
    assert {problem.fix for problem in found} == {"add `file_name`", "did you mean `file_name`?"}


def test_a_flood_of_problems_is_cut_and_counted() -> None:
    found = complaints("a: list[int]", json.dumps({"a": ["x"] * 1000}))
    assert (len(found), found[-1]) == (21, "and 980 more")


def test_a_missing_parameter_is_named_with_its_description() -> None:
    schema = parameters('a: Annotated[int, "How many."]')
    (problem,) = arguments.read("{}", schema)
    assert (problem.code, problem.fix) == ("arguments-invalid", "add `a`: How many.")  # type: ignore[union-attr] # a problem


def test_null_is_kept_where_the_type_admits_it() -> None:
    schema = parameters("a: int | None = 3, b: int = 3, c: int = 3")
    assert arguments.read('{"a": null, "b": null, "c": 1}', schema) == {"a": None, "c": 1}


def test_a_nest_of_unions_ends_in_time() -> None:
    schema = described(
        f"{PRELUDE}\nTree = list['Tree'] | set['Tree'] | int\ndef probe(v: Tree): ...\n"
    ).parameters
    raw = json.dumps({"v": json.loads("[" * 50 + '"x"' + "]" * 50)})
    assert "too nested" in complaints_of(arguments.read(raw, schema))[0]


def test_a_long_list_is_coerced_to_its_end() -> None:
    raw = json.dumps({"v": ["3"] * 20_000})
    assert arguments.read(raw, parameters("v: list[int | None]")) == {"v": [3] * 20_000}


ORDER = """
class Street(TypedDict):
    street_name: str
    number: NotRequired[int]

class Address(TypedDict):
    city: str
    zip: NotRequired[str]
    street: NotRequired[Street]
"""
SIGNATURE = "file_name: str, size: Literal['small', 'extra large'] = 'small', home: Address | None = None, n: int = 1"


def order() -> dict[str, Any]:  # Any: JSON Schema
    prelude = f"from typing import *\n{ORDER}"
    return described(
        f"{prelude}\ndef probe({SIGNATURE}, tags: list[str] = [], on: bool = False): ...\n"
    ).parameters


def test_a_models_mistake_with_one_reading_is_repaired_and_noted() -> None:
    rows: list[tuple[str, str, dict[str, Any], str | None]] = [
        ("camel-case", '{"fileName": "a"}', {}, "`fileName` was read as `file_name`"),
        ("kebab-case", '{"FILE-NAME": "a"}', {}, "`FILE-NAME` was read as `file_name`"),
        (
            "flattened",
            '{"file_name": "a", "city": "x"}',
            {"home": {"city": "x"}},
            "read as `home.city`",
        ),
        (
            "dotted",
            '{"file_name": "a", "city": "x", "home.street.streetName": "y"}',
            {"home": {"city": "x", "street": {"street_name": "y"}}},
            "read as `home.street.street_name`",
        ),
        (
            "prefixed",
            '{"file_name": "a", "home_city": "x"}',
            {"home": {"city": "x"}},
            "`home.city`",
        ),
        (
            "in-part",
            '{"file_name": "a", "city": "x", "home": {"zip": "1"}}',
            {"home": {"city": "x", "zip": "1"}},
            "`home.city`",
        ),
        ("wrapped", '{"arguments": {"file_name": "a"}}', {}, "taken out of `arguments`"),
        ("call", '{"name": "f", "parameters": "{\\"file_name\\": \\"a\\"}"}', {}, "`parameters`"),
        ("prose", 'Sure:\n```json\n{"file_name": "a"}\n```\nDone!', {}, "text around the JSON"),
        (
            "choice",
            '{"file_name": "a", "size": "Extra_Large"}',
            {"size": "extra large"},
            '"extra large"',
        ),
        ("word-for-nothing", '{"file_name": "a", "n": "None"}', {}, None),
        ("blank-for-nothing", '{"file_name": "a", "n": "", "tags": " "}', {}, None),
        ("word-for-no-list", '{"file_name": "a", "tags": "null"}', {}, None),
        ("word-for-null", '{"file_name": "a", "home": "none"}', {"home": None}, None),
        ("word-for-true", '{"file_name": "a", "on": "yes"}', {"on": True}, None),
        ("whole-number", '{"file_name": "a", "n": "2.0"}', {"n": 2}, None),
    ]
    for case, raw, more, note in rows:
        notes: list[str] = []
        assert arguments.read(raw, order(), notes=notes) == {"file_name": "a", **more}, case
        assert any(note in line for line in notes) if note else notes == [], case


def test_an_object_that_is_part_of_something_is_not_taken_for_the_arguments() -> None:
    for raw in [
        '{"file_name": "a"} {"file_name": "b"}',
        '"file_name": "a", "home": {"city": "x"}',
        'home: {"city": "x"}',
        'probe("a", {"city": "x"})',
        'probe(home={"city": "x"})',
        '{"file_name": "a", "home": {"city": "x"}',
    ]:
        assert not isinstance(arguments.read(raw, order()), dict), raw


def test_a_key_that_two_properties_can_mean_is_reported() -> None:
    for signature in ["street: Street, home: Address", "streetname: str, street: Street"]:
        schema = described(
            f"from typing import *\n{ORDER}\ndef probe({signature}): ...\n"
        ).parameters
        problems = arguments.read('{"StreetName": "x"}', schema)
        assert any(
            message.startswith("there is no argument `StreetName`")
            for message in complaints_of(problems)
        ), signature


def test_two_spellings_of_one_key_are_both_reported() -> None:
    assert complaints("name: str, count: int = 1", '{"name": "a", "Count": 1, "COUNT": 2}') == [
        "there is no argument `COUNT`",
        "there is no argument `Count`",
    ]


def test_the_word_for_nothing_stays_a_text_where_texts_are_taken() -> None:
    notes: list[str] = []
    schema = parameters("a: str, b: str | None = None")
    assert arguments.read('{"a": "None", "b": "null"}', schema, notes=notes) == {
        "a": "None",
        "b": "null",
    }
    assert notes == ['b: was taken as the text "null"; to leave it out, do not send it']


def test_a_wrapper_that_is_a_parameter_is_none() -> None:
    schema = parameters("input: dict[str, int], x: int = 0")
    assert arguments.read('{"input": {"x": 1}}', schema) == {"input": {"x": 1}}


_NAMES = [f"{n:x}" for n in range(4_900)]
_CHOICES = [f"choice {n}" for n in range(4_000)]
_ROWS: dict[str, Any] = {"type": "object", "required": _NAMES[:200]}


def _of_rows(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"rows": {"type": "array", "items": items}}}


COSTLY = {
    "missing names": ({}, {"type": "object", "required": _NAMES}),
    "rows without names": (
        {"rows": [{"a": 1}] * 1_000},
        _of_rows({"anyOf": [_ROWS, {"type": "string"}]}),
    ),
    "numbers of many choices": ({"rows": [0] * 1_300}, _of_rows({"enum": [*range(1, 4_000), 0]})),
    "no choices": ({"rows": ["x"] * 1_300}, _of_rows({"enum": [*range(4_000)]})),
    "choices otherwise written": (
        {"rows": ["CHOICE 5"] * 1_000},
        _of_rows({"type": "string", "enum": _CHOICES}),
    ),
    "unknown names": (
        {f"nome{n}": 1 for n in range(20_000)},
        {"type": "object", "properties": {f"name{n}": {} for n in range(250)}},
    ),
}


@pytest.mark.parametrize("case", COSTLY)
def test_what_many_values_and_many_choices_cost_is_no_product(case: str) -> None:
    value, schema = COSTLY[case]
    began = time.process_time()
    arguments.read(json.dumps(value), schema)
    assert time.process_time() - began <= _MOST_S * slowness()


def test_long_choices_are_named_by_their_beginnings() -> None:
    problems = arguments.read('{"rows": [0]}', _of_rows({"enum": ["x" * 9_000] * 20}))
    assert isinstance(problems, tuple)
    assert len(problems[0].message) < 6_000

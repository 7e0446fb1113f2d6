"""A model's arguments: fixed, coerced without loss, and explained if they do not fit."""

import json
from typing import Any

import pytest

from agent_core.registry import arguments
from tests.registry.support import only

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


def parameters(signature: str) -> dict[str, Any]:  # Any: JSON Schema
    return only(f"{PRELUDE}\ndef probe({signature}): ...\n").parameters


def value_of(annotation: str, raw: str) -> Any:  # Any: JSON
    found = arguments.read(f'{{"v": {raw}}}', parameters(f"v: {annotation}"))
    return found["v"] if isinstance(found, dict) else [str(problem.message) for problem in found]


def complaints(signature: str, raw: str) -> list[str]:
    return complaints_of(arguments.read(raw, parameters(signature)))


def complaints_of(found: object) -> list[str]:
    assert isinstance(found, tuple)
    return [problem.message for problem in found]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param('{"a": [1], "b": "x,]"}', id="plain"),
        pytest.param('```json\n{"a": [1], "b": "x,]"}\n```', id="fenced"),
        pytest.param('  ```\n{"a": [1], "b": "x,]"}```  ', id="fenced-without-language"),
        pytest.param('{"a": [1,], "b": "x,]",\n}', id="trailing-commas"),
        pytest.param(json.dumps('{"a": [1], "b": "x,]"}'), id="encoded-twice"),
        pytest.param('{"a": "[1]", "b": "x,]"}', id="inner-encoded-twice"),
        pytest.param('\ufeff{"a": [1], "b": "x,]"}', id="byte-order-mark"),
        pytest.param("{'a': [1], 'b': 'x,]', 'c': None, 'd': False}", id="python"),
        pytest.param("{a: [1], b: 'x,]', c: undefined}", id="javascript"),
        pytest.param('{"a": "[\'1\']", "b": "x,]", /* none */ "d": False} // done', id="comments"),
        pytest.param("{“a”: [1], “b”: “x,]”}", id="curly-quotes"),
        pytest.param('{"a": [1], "b": "x,]"}}]', id="closed-twice"),
        pytest.param('[[1], "x,]"]', id="without-names"),
    ],
)
def test_what_is_unambiguous_is_fixed(raw: str) -> None:
    read = arguments.read(raw, parameters("a: list[int], b: str, c: int = 0, d: bool = True"))
    assert read in ({"a": [1], "b": "x,]"}, {"a": [1], "b": "x,]", "d": False})


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        pytest.param(r"""{'v': 'it\'s "x" \x41\n\d'}""", 'it\'s "x" A\n\\d', id="escapes"),
        pytest.param('{"v": "a\n\tb"}', "a\n\tb", id="line-breaks"),
        pytest.param('"a b"', "a b", id="only-parameter"),
        pytest.param('["a b"]', "a b", id="list-of-it"),
    ],
)
def test_a_text_keeps_each_letter_however_it_is_written(raw: str, value: str) -> None:
    assert arguments.read(raw, parameters("v: str")) == {"v": value}


def test_a_value_without_names_that_two_parameters_could_mean_is_refused() -> None:
    refused = complaints("a: list[str], b: list[str] = []", '["x", "y"]')
    assert refused == ['expected a JSON object, got ["x", "y"] (array)']


@pytest.mark.parametrize("raw", ["", "  ", "null", "{}", '""', "```json\n```", "```\n{}\n```"])
def test_nothing_stands_for_no_arguments(raw: str) -> None:
    assert arguments.read(raw, parameters("a: int = 1")) == {}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        pytest.param("{", "the text ends too early", id="cut-off"),
        pytest.param("[1]", "expected a JSON object, got [1] (array)", id="array"),
        pytest.param("3", "expected a JSON object, got 3 (integer)", id="number"),
        pytest.param("not json", "expected JSON", id="prose"),
        pytest.param('{"a": NaN}', "expected a finite number, got NaN", id="nan"),
        pytest.param('{"a": -Infinity}', "expected a finite number, got -Infinity", id="infinity"),
        pytest.param('{"a": 1e999}', "expected a finite number, got 1e999", id="overflow"),
        pytest.param('{"a": 1, "a": 2}', "expected each key once, got `a` twice", id="twice"),
        pytest.param(f'{{"a": {"[" * 100_000}', "expected at most 64 levels", id="bomb"),
        pytest.param(f'{{"a": {"[" * 70}{"]" * 70}}}', "expected at most 64 levels", id="deep"),
        pytest.param(f'{{"a": {"1" * 5_000}}}', "at most 4300 digits", id="endless-integer"),
        pytest.param('{"a": "' + "x" * 1_000_001 + '"}', "expected at most 1000000 characters", id="long"),
        pytest.param("{'a': 'b' 'c'}", "expected JSON", id="python-joins-texts"),
        pytest.param("{'a': 'b'c'}", "expected JSON", id="quote-within"),
        pytest.param('{"a": 1, "b"', "the text ends too early", id="cut-off-in-a-key"),
    ],
)
def test_what_is_no_object_of_json_is_refused_in_one_line(raw: str, says: str) -> None:
    (complaint,) = complaints("a: Any", raw)
    assert says in complaint


@pytest.mark.parametrize(
    ("annotation", "raw", "value"),
    [
        pytest.param("int", '"3"', 3, id="text-to-integer"),
        pytest.param("int", "3.0", 3, id="whole-number-to-integer"),
        pytest.param("int", '" -3.0 "', -3, id="text-of-whole-number-to-integer"),
        pytest.param("int", "9007199254740993", 2**53 + 1, id="large-integer"),
        pytest.param("int", '"123456789012345678901234567890"', 123456789012345678901234567890, id="large-text"),
        pytest.param("float", '"3.5e1"', 35.0, id="text-to-number"),
        pytest.param("float", "3", 3, id="integer-is-a-number"),
        pytest.param("float", '"+.5"', 0.5, id="text-without-zero"),
        pytest.param("float", '"1,234,567.5"', 1234567.5, id="thousands"),
        pytest.param("list[int]", '"1;2"', [1, 2], id="semicolons"),
        pytest.param("list[int]", '"1 2"', [1, 2], id="spaces"),
        pytest.param("int", "[3]", 3, id="list-of-one"),
        pytest.param("Item", '[{"name": "a"}]', {"name": "a"}, id="list-of-one-object"),
        pytest.param(
            "list[Item]",
            '[["a", 2], ["b", "3"]]',
            [{"name": "a", "count": 2}, {"name": "b", "count": 3}],
            id="fields-by-position",
        ),
        pytest.param("Literal['low', 'high']", "\"'High'\"", "high", id="choice-in-quotes"),
        pytest.param("Literal['low', 'high']", '"Level.HIGH"', "high", id="choice-of-an-enumeration"),
        pytest.param("bool", '"true"', True, id="text-to-boolean"),
        pytest.param("bool", '"False"', False, id="capital-text-to-boolean"),
        pytest.param("str", "3", "3", id="integer-to-text"),
        pytest.param("list[int]", '"3"', [3], id="one-value-to-list"),
        pytest.param("list[list[int]]", "3", [[3]], id="one-value-to-nested-list"),
        pytest.param("list[str]", '["a", 1]', ["a", "1"], id="items"),
        pytest.param("set[int]", '[1, "1", 2]', [1, 2], id="set-without-repetition"),
        pytest.param("tuple[int, str]", '["1", 2]', [1, "2"], id="tuple"),
        pytest.param("dict[str, int]", '{"a": "1"}', {"a": 1}, id="mapping"),
        pytest.param("dict[int, int]", '{"1": "1"}', {"1": 1}, id="integer-keys"),
        pytest.param("int | str", '"3"', "3", id="exact-match-stays"),
        pytest.param("str | int", "3", 3, id="exact-match-stays-in-any-order"),
        pytest.param("int | None", '"3"', 3, id="through-a-union"),
        pytest.param("list[int] | int", '"3"', [3], id="first-branch-of-a-union"),
        pytest.param("Item", '{"name": 1, "count": "2"}', {"name": "1", "count": 2}, id="fields"),
        pytest.param("Item", '"{\\"name\\": \\"a\\"}"', {"name": "a"}, id="encoded-object"),
        pytest.param("Item", '{"name": "a", "count": null}', {"name": "a"}, id="null-for-a-default"),
        pytest.param(
            "Item",
            '{"name": "a", "parts": {"name": "b", "count": "3"}}',
            {"name": "a", "parts": [{"name": "b", "count": 3}]},
            id="recursive",
        ),
        pytest.param("Decimal", "0.1", 0.1, id="decimal-number"),
        pytest.param("Decimal", '"0.10"', "0.10", id="decimal-text"),
        pytest.param("date", '"no date"', "no date", id="format-is-the-worker's"),
        pytest.param("Any", '{"a": [null]}', {"a": [None]}, id="anything"),
        pytest.param('Annotated[str, Field(pattern="(a+)+$")]', f'"{BOMB}"', BOMB, id="pattern-is-the-worker's"),
    ],
)
def test_what_loses_nothing_is_coerced(annotation: str, raw: str, value: Any) -> None:
    found = value_of(annotation, raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "raw", "complaint"),
    [
        pytest.param("int", "1.5", "v: expected integer, got 1.5 (number)", id="fraction"),
        pytest.param("int", '"abc"', 'v: expected integer, got "abc" (string)', id="word"),
        pytest.param("int", '"03"', 'v: expected integer, got "03" (string)', id="leading-zero"),
        pytest.param("int", "true", "v: expected integer, got true (boolean)", id="boolean"),
        pytest.param("int", "null", "v: expected integer, got null", id="null"),
        pytest.param("bool", "1", "v: expected boolean, got 1 (integer)", id="one-is-not-true"),
        pytest.param("str", "1.10", "v: expected string, got 1.1 (number)", id="number-lost-its-text"),
        pytest.param("float", '"NaN"', 'v: expected number, got "NaN" (string)', id="text-nan"),
        pytest.param("float", '"1e999"', 'v: expected number, got "1e999" (string)', id="text-overflow"),
        pytest.param('Literal["a", "b"]', '"c"', 'v: expected one of "a", "b", got "c" (string)', id="enum"),
        pytest.param('Literal["a", "A "]', '"A"', 'v: expected one of "a", "A ", got "A" (string)', id="two-choices"),
        pytest.param("list[str]", '"a, b"', 'v: expected array of string, got "a, b" (string)', id="list-or-text"),
        pytest.param("list[int]", '"1 234"', 'v: expected array of integer, got "1 234" (string)', id="by-spaces"),
        pytest.param("float", '"5 kg"', 'v: expected number, got "5 kg" (string)', id="unit"),
        pytest.param("str", '["a", "b"]', 'v: expected string, got ["a", "b"] (array)', id="two-for-one"),
        pytest.param("list[int]", '"1,234"', 'v: expected array of integer, got "1,234" (string)', id="thousands"),
        pytest.param("list[float]", '"1,5"', 'v: expected array of number, got "1,5" (string)', id="decimal-comma"),
        pytest.param("bool", '"y"', 'v: expected boolean, got "y" (string)', id="letter"),
        pytest.param("int", '"null"', 'v: expected integer, got "null" (string)', id="word-for-nothing-required"),
        pytest.param("int | None", '"x"', 'v: expected integer or null, got "x" (string)', id="union"),
        pytest.param("list[int]", '[1, "x"]', 'v[1]: expected integer, got "x" (string)', id="item"),
        pytest.param("tuple[int, int]", "[1]", "v: expected array with at least 2 items, got [1] (array)", id="short"),
        pytest.param("Annotated[int, Field(ge=1)]", "0", "v: expected integer ≥ 1, got 0 (integer)", id="bound"),
        pytest.param("date", "3.5", "v: expected string (date), got 3.5 (number)", id="format"),
        pytest.param("int", "9007199254740994.0", "v: expected integer, got 9007199254740994.0 (number)", id="vague"),
        pytest.param("date", "2024", "v: expected string (date), got 2024 (integer)", id="a-year-is-no-date"),
        pytest.param("Item", '{"count": 1}', "v.name: expected string, got nothing", id="missing-field"),
        pytest.param("Item", '{"name": "a", "cuont": 1}', "v.cuont: expected no such key, got 1 (integer)", id="extra"),
        pytest.param("Item | None", '{"name": []}', "v.name: expected string, got [] (array)", id="closest-branch"),
        pytest.param(
            "Item",
            '{"name": "a", "parts": [{"name": "b", "count": []}]}',
            "v.parts[0].count: expected integer, got [] (array)",
            id="recursive",
        ),
    ],
)
def test_what_does_not_fit_is_explained_with_its_path(annotation: str, raw: str, complaint: str) -> None:
    assert value_of(annotation, raw) == [complaint]


def test_every_problem_is_told_at_once_and_in_order() -> None:
    found = complaints("a: int, b: list[str], c: bool = True", '{"b": [[], "x", 1.5], "d": 1}')
    assert found == [
        "a: expected integer, got nothing",
        "b[0]: expected string, got [] (array)",
        "b[2]: expected string, got 1.5 (number)",
        "d: expected no such key, got 1 (integer)",
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
    schema = only(f"{PRELUDE}\nTree = list['Tree'] | set['Tree'] | int\ndef probe(v: Tree): ...\n").parameters
    raw = json.dumps({"v": json.loads("[" * 50 + '"x"' + "]" * 50)})
    assert "too nested" in complaints_of(arguments.read(raw, schema))[0]


def test_a_long_list_is_coerced_to_its_end() -> None:
    raw = json.dumps({"v": ["3"] * 60_000})
    assert arguments.read(raw, parameters("v: list[int | None]")) == {"v": [3] * 60_000}


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
    return only(f"{prelude}\ndef probe({SIGNATURE}, tags: list[str] = [], on: bool = False): ...\n").parameters


@pytest.mark.parametrize(
    ("raw", "more", "note"),
    [
        pytest.param('{"fileName": "a"}', {}, "`fileName` was read as `file_name`", id="camel-case"),
        pytest.param('{"FILE-NAME": "a"}', {}, "`FILE-NAME` was read as `file_name`", id="kebab-case"),
        pytest.param('{"file_name": "a", "city": "x"}', {"home": {"city": "x"}}, "read as `home.city`", id="flattened"),
        pytest.param(
            '{"file_name": "a", "city": "x", "home.street.streetName": "y"}',
            {"home": {"city": "x", "street": {"street_name": "y"}}},
            "read as `home.street.street_name`",
            id="dotted",
        ),
        pytest.param('{"file_name": "a", "home_city": "x"}', {"home": {"city": "x"}}, "`home.city`", id="prefixed"),
        pytest.param(
            '{"file_name": "a", "city": "x", "home": {"zip": "1"}}',
            {"home": {"city": "x", "zip": "1"}},
            "`home.city`",
            id="in-part",
        ),
        pytest.param('{"arguments": {"file_name": "a"}}', {}, "taken out of `arguments`", id="wrapped"),
        pytest.param('{"name": "f", "parameters": "{\\"file_name\\": \\"a\\"}"}', {}, "`parameters`", id="call"),
        pytest.param('Sure:\n```json\n{"file_name": "a"}\n```\nDone!', {}, "text around the JSON", id="prose"),
        pytest.param(
            '{"file_name": "a", "size": "Extra_Large"}', {"size": "extra large"}, '"extra large"', id="choice"
        ),
        pytest.param('{"file_name": "a", "n": "None"}', {}, None, id="word-for-nothing"),
        pytest.param('{"file_name": "a", "n": "", "tags": " "}', {}, None, id="blank-for-nothing"),
        pytest.param('{"file_name": "a", "tags": "null"}', {}, None, id="word-for-no-list"),
        pytest.param('{"file_name": "a", "home": "none"}', {"home": None}, None, id="word-for-null"),
        pytest.param('{"file_name": "a", "on": "yes"}', {"on": True}, None, id="word-for-true"),
        pytest.param('{"file_name": "a", "n": "2.0"}', {"n": 2}, None, id="whole-number"),
    ],
)
def test_a_models_mistake_with_one_reading_is_repaired_and_noted(
    raw: str, more: dict[str, Any], note: str | None
) -> None:
    notes: list[str] = []
    assert arguments.read(raw, order(), notes=notes) == {"file_name": "a", **more}
    assert any(note in line for line in notes) if note else notes == []


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param('{"file_name": "a"} {"file_name": "b"}', id="two-objects"),
        pytest.param('"file_name": "a", "home": {"city": "x"}', id="braces-missing"),
        pytest.param('home: {"city": "x"}', id="value-of-a-key"),
        pytest.param('probe("a", {"city": "x"})', id="call-of-python"),
        pytest.param('probe(home={"city": "x"})', id="keyword-of-python"),
        pytest.param('{"file_name": "a", "home": {"city": "x"}', id="cut-off"),
    ],
)
def test_an_object_that_is_part_of_something_is_not_taken_for_the_arguments(raw: str) -> None:
    assert not isinstance(arguments.read(raw, order()), dict)


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param("street: Street, home: Address", id="two-nested"),
        pytest.param("streetname: str, street: Street", id="own-and-nested"),
    ],
)
def test_a_key_that_two_properties_can_mean_is_reported(signature: str) -> None:
    schema = only(f"from typing import *\n{ORDER}\ndef probe({signature}): ...\n").parameters
    problems = arguments.read('{"StreetName": "x"}', schema)
    assert any(message.startswith("StreetName: expected no such key") for message in complaints_of(problems))


def test_two_spellings_of_one_key_are_both_reported() -> None:
    assert complaints("name: str, count: int = 1", '{"name": "a", "Count": 1, "COUNT": 2}') == [
        "COUNT: expected no such key, got 2 (integer)",
        "Count: expected no such key, got 1 (integer)",
    ]


def test_the_word_for_nothing_stays_a_text_where_texts_are_taken() -> None:
    notes: list[str] = []
    schema = parameters("a: str, b: str | None = None")
    assert arguments.read('{"a": "None", "b": "null"}', schema, notes=notes) == {"a": "None", "b": "null"}
    assert notes == ['b: was taken as the text "null"; to leave it out, do not send it']


def test_a_wrapper_that_is_a_parameter_is_none() -> None:
    schema = parameters("input: dict[str, int], x: int = 0")
    assert arguments.read('{"input": {"x": 1}}', schema) == {"input": {"x": 1}}

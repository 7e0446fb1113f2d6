"""The schema of a step: what a small model may write, with keywords that every grammar engine supports."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model import FunctionShown
from agent_core.model.conversation import step_schema
from agent_core.model.request import REPLY
from agent_core.model.schemas import portable

ADD = FunctionShown(
    "add",
    "Add.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)

TREE = {
    "$ref": "#/$defs/Tree",
    "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}, "n": {"type": "integer"}}}},
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("step", "is_taken"),
    [
        pytest.param({"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}, True, id="a-call"),
        pytest.param({"thought": "t", "reply": "r"}, True, id="a-reply"),
        pytest.param({"thought": "t" * 161, "reply": "r"}, False, id="a-long-thought"),
        pytest.param({"reply": "r"}, False, id="no-thought"),
        pytest.param({"thought": "t", "call": {"name": "sub", "arguments": {}}}, False, id="an-unknown-function"),
        pytest.param({"thought": "t", "call": {"name": "add", "arguments": {"a": 1}}}, False, id="a-missing-argument"),
        pytest.param(
            {"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2, "c": 3}}}, False, id="one-too-many"
        ),
    ],
)
def test_a_step_is_one_call_of_a_shown_function_or_a_reply(step: Any, is_taken: bool) -> None:
    assert fits(step, step_schema([ADD])) is is_taken


def test_a_step_that_must_call_something_cannot_be_a_reply() -> None:
    schema = step_schema([ADD], may_reply=False)
    assert not fits({"thought": "t", "reply": "r"}, schema)
    assert fits({"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}, schema)


def test_without_any_function_the_reply_is_left_even_if_excluded() -> None:
    assert fits({"thought": "t", "reply": "r"}, step_schema([], may_reply=False))


def test_the_word_for_the_reply_can_never_be_a_function_name() -> None:
    assert not REPLY.isidentifier()


NUMBER, NULL, STRING = {"type": "number"}, {"type": "null"}, {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({**STRING, "format": "date", "pattern": "^x$"}, STRING, id="format-and-pattern"),
        pytest.param({**NUMBER, "minimum": 1, "maximum": 9}, NUMBER, id="ranges"),
        pytest.param({"oneOf": [NULL, STRING]}, {"anyOf": [NULL, STRING]}, id="one-of"),
        pytest.param({"enum": ["a", "b"], "default": "a"}, {"enum": ["a", "b"]}, id="enum"),
        pytest.param({**STRING, "maxLength": 100_000}, STRING, id="a-bound-too-large-for-a-grammar"),
        pytest.param({**STRING, "maxLength": 9}, {**STRING, "maxLength": 9}, id="a-small-bound"),
        pytest.param(
            {"type": "array", "items": NUMBER, "uniqueItems": True}, {"type": "array", "items": NUMBER}, id="array"
        ),
        pytest.param(
            {"type": "array", "prefixItems": [NUMBER, STRING]},
            {"type": "array", "prefixItems": [NUMBER, STRING], "minItems": 2, "maxItems": 2},
            id="tuple",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {**NUMBER, "minimum": 0}},
            {"type": "object", "additionalProperties": NUMBER},
            id="mapping",
        ),
        pytest.param({"$ref": "#/nowhere"}, {}, id="a-reference-to-nothing"),
        pytest.param({"$ref": "https://example.com/x.json"}, {}, id="a-reference-to-elsewhere"),
        pytest.param({}, {}, id="anything"),
    ],
)
def test_what_a_grammar_cannot_hold_is_left_to_the_check(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert portable(schema) == expected


def test_names_are_bounded_but_code_is_not() -> None:
    names = {"function_name": {"type": "string"}, "code": {"type": "string"}}
    made = portable({"type": "object", "properties": names})["properties"]
    assert made["function_name"]["maxLength"] == 64
    assert made["code"] == {"type": "string"}


def test_a_schema_that_refers_to_itself_ends_somewhere() -> None:
    assert "$ref" not in json.dumps(portable(TREE))


def trees(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={"left": inner, "n": st.integers()})


@given(st.recursive(st.just({}), trees, max_leaves=6))
def test_what_the_whole_schema_takes_the_portable_part_takes_too(tree: Any) -> None:
    assert fits(tree, TREE)
    assert fits(tree, portable(TREE))

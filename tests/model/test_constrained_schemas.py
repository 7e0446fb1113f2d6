"""The schema of a step: what a small model may write, with keywords that every grammar engine supports."""

import json
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model import FunctionShown
from agent_core.model.conversation import step_schema
from agent_core.model.wire import portable

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


def test_a_step_is_one_call_of_a_shown_function_or_a_reply() -> None:
    rows: list[tuple[str, Any, bool]] = [
        ("a-call", {"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}, True),
        ("a-reply", {"thought": "t", "reply": "r"}, True),
        ("a-long-thought", {"thought": "t" * 161, "reply": "r"}, False),
        ("no-thought", {"reply": "r"}, False),
        ("an-unknown-function", {"thought": "t", "call": {"name": "sub", "arguments": {}}}, False),
        ("a-missing-argument", {"thought": "t", "call": {"name": "add", "arguments": {"a": 1}}}, False),
        ("one-too-many", {"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2, "c": 3}}}, False),
    ]
    for case, step, is_taken in rows:
        assert fits(step, step_schema([ADD])) is is_taken, case


def test_a_step_that_must_call_something_cannot_be_a_reply() -> None:
    schema = step_schema([ADD], may_reply=False)
    assert not fits({"thought": "t", "reply": "r"}, schema)
    assert fits({"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}, schema)


def test_without_any_function_the_reply_is_left_even_if_excluded() -> None:
    assert fits({"thought": "t", "reply": "r"}, step_schema([], may_reply=False))


NUMBER, NULL, STRING = {"type": "number"}, {"type": "null"}, {"type": "string"}


def test_what_a_grammar_cannot_hold_is_left_to_the_check() -> None:
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("format-and-pattern", {**STRING, "format": "date", "pattern": "^x$"}, STRING),
        ("ranges", {**NUMBER, "minimum": 1, "maximum": 9}, NUMBER),
        ("one-of", {"oneOf": [NULL, STRING]}, {"anyOf": [NULL, STRING]}),
        ("enum", {"enum": ["a", "b"], "default": "a"}, {"enum": ["a", "b"]}),
        ("a-bound-too-large-for-a-grammar", {**STRING, "maxLength": 100_000}, STRING),
        ("a-small-bound", {**STRING, "maxLength": 9}, {**STRING, "maxLength": 9}),
        ("array", {"type": "array", "items": NUMBER, "uniqueItems": True}, {"type": "array", "items": NUMBER}),
        (
            "tuple",
            {"type": "array", "prefixItems": [NUMBER, STRING]},
            {"type": "array", "prefixItems": [NUMBER, STRING], "minItems": 2, "maxItems": 2},
        ),
        (
            "mapping",
            {"type": "object", "additionalProperties": {**NUMBER, "minimum": 0}},
            {"type": "object", "additionalProperties": NUMBER},
        ),
        ("a-reference-to-nothing", {"$ref": "#/nowhere"}, {}),
        ("a-reference-to-elsewhere", {"$ref": "https://example.com/x.json"}, {}),
        ("anything", {}, {}),
    ]
    for case, schema, expected in rows:
        assert portable(schema) == expected, case


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

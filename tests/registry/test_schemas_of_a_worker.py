"""A schema from a worker is checked before anything in the host uses it."""

import json
from typing import Any

import pydantic

from agent_core.registry import arguments
from agent_core.registry.validation import check_schema

NESTED: dict[str, Any] = {"type": "integer"}
for _ in range(60):
    NESTED = {"type": "array", "items": NESTED}


class Item(pydantic.BaseModel):
    name: str
    parts: "list[Item]" = []


def test_a_sound_schema_passes() -> None:
    for schema in [
        {"type": "integer"},
        {},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"enum": [{"$ref": "http://x"}], "default": {"$id": 1}},
        Item.model_json_schema(),
        {"type": "string", "pattern": "(a+)+("},
    ]:
        assert check_schema(schema) is None, schema


def test_an_unsound_schema_is_refused_and_says_why() -> None:
    rows: list[tuple[str, Any, str]] = [
        ("array", [], "not an object"),
        ("boolean", True, "not an object"),
        ("unknown-type", {"type": "whatever"}, "type"),
        ("bytes", {"enum": [b"x", "y"]}, "JSON has no bytes like b'x'"),
        ("set", {"default": {1, 2}}, "JSON has no set"),
        ("infinite", {"examples": [{"high": float("inf")}]}, "JSON has no float like inf"),
        ("wrong-shape", {"properties": []}, "properties"),
        ("wrong-bound", {"minimum": "1"}, "minimum"),
        ("remote-reference", {"$ref": "http://evil.example/x"}, "local"),
        ("file-reference", {"items": {"$ref": "file:///etc/passwd"}}, "local"),
        ("dangling-reference", {"$ref": "#/$defs/gone"}, "local"),
        ("reference-of-another-type", {"$ref": 3}, "local"),
        ("base", {"$id": "http://evil.example/"}, "$id"),
        ("dialect", {"items": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "$schema"),
        ("dynamic", {"$dynamicRef": "#x"}, "$dynamicRef"),
        ("loop", {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "itself"),
        ("loop-through-union", {"anyOf": [{"$ref": "#"}]}, "itself"),
        ("deep", NESTED, "levels deep"),
        ("large", {"enum": list(range(10_000))}, "parts"),
        ("key-of-another-type", {"properties": {1: {}}}, "not text"),
    ]
    for case, schema, says in rows:
        problem = check_schema(schema)
        assert problem is not None, case
        assert (problem.code, says in problem.message) == ("bad-schema", True), case


def test_no_pattern_runs_in_the_host() -> None:
    for schema in [
        {"type": "string", "pattern": "^(a+)+$"},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"type": "object", "propertyNames": {"pattern": "^(a+)+$"}},
        {"anyOf": [{"type": "string", "pattern": "^(a+)+$"}]},
        {"type": "string", "format": "regex"},
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
    ]:
        bomb = "a" * 64 + "!"
        whole = {"type": "object", "properties": {"v": schema}}
        value = {"v": {bomb: 1} if "string" not in str(schema) else bomb}
        assert arguments.read(json.dumps(value), whole) == value, schema

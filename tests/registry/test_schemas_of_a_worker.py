"""A schema from a worker is checked before anything in the host uses it."""

import json
from typing import Any

import pydantic
import pytest

from agent_core.registry import arguments
from agent_core.registry.validation import check_schema

NESTED: dict[str, Any] = {"type": "integer"}
for _ in range(60):
    NESTED = {"type": "array", "items": NESTED}


class Item(pydantic.BaseModel):
    name: str
    parts: "list[Item]" = []


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "integer"}, id="plain"),
        pytest.param({}, id="anything"),
        pytest.param({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}, id="names-like-keywords"),
        pytest.param({"enum": [{"$ref": "http://x"}], "default": {"$id": 1}}, id="values-like-keywords"),
        pytest.param(Item.model_json_schema(), id="recursive-model"),
        pytest.param({"type": "string", "pattern": "(a+)+("}, id="pattern-is-not-compiled"),
    ],
)
def test_a_sound_schema_passes(schema: dict[str, Any]) -> None:
    assert check_schema(schema) is None


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        pytest.param([], "not an object", id="array"),
        pytest.param(True, "not an object", id="boolean"),
        pytest.param({"type": "whatever"}, "type", id="unknown-type"),
        pytest.param({"properties": []}, "properties", id="wrong-shape"),
        pytest.param({"minimum": "1"}, "minimum", id="wrong-bound"),
        pytest.param({"$ref": "http://evil.example/x"}, "local", id="remote-reference"),
        pytest.param({"items": {"$ref": "file:///etc/passwd"}}, "local", id="file-reference"),
        pytest.param({"$ref": "#/$defs/gone"}, "local", id="dangling-reference"),
        pytest.param({"$ref": 3}, "local", id="reference-of-another-type"),
        pytest.param({"$id": "http://evil.example/"}, "$id", id="base"),
        pytest.param({"items": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "$schema", id="dialect"),
        pytest.param({"$dynamicRef": "#x"}, "$dynamicRef", id="dynamic"),
        pytest.param({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "itself", id="loop"),
        pytest.param({"anyOf": [{"$ref": "#"}]}, "itself", id="loop-through-union"),
        pytest.param(NESTED, "levels deep", id="deep"),
        pytest.param({"enum": list(range(10_000))}, "parts", id="large"),
        pytest.param({"properties": {1: {}}}, "not text", id="key-of-another-type"),
    ],
)
def test_an_unsound_schema_is_refused_and_says_why(schema: Any, says: str) -> None:
    problem = check_schema(schema)
    assert problem is not None
    assert (problem.code, says in problem.message) == ("bad-schema", True)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "string", "pattern": "^(a+)+$"}, id="pattern"),
        pytest.param({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, id="names"),
        pytest.param({"type": "object", "propertyNames": {"pattern": "^(a+)+$"}}, id="property-names"),
        pytest.param({"anyOf": [{"type": "string", "pattern": "^(a+)+$"}]}, id="nested"),
        pytest.param({"type": "string", "format": "regex"}, id="format"),
        pytest.param({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}, id="unevaluated"),
    ],
)
def test_no_pattern_runs_in_the_host(schema: dict[str, Any]) -> None:
    bomb = "a" * 64 + "!"
    whole = {"type": "object", "properties": {"v": schema}}
    value = {"v": {bomb: 1} if "string" not in str(schema) else bomb}
    assert arguments.read(json.dumps(value), whole) == value

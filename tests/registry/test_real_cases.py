"""Other people's functions and calls, where they are at hand: `EVALUATION_DATA` names their folder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent_core.registry import arguments
from agent_core.registry.validation import check_schema
from tests.registry.support import read

DATA = os.environ.get("EVALUATION_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="EVALUATION_DATA does not name a folder with cases")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None, "double": "number", "long": "integer"}


def cases(name: str) -> Iterator[dict[str, Any]]:  # Any: as published
    with Path(DATA or "", name).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def as_json_schema(published: Any, key: str = "") -> Any:
    """The cases' own type words as JSON Schema's; their formats and loose keywords are left out."""
    if isinstance(published, list):
        return [as_json_schema(one) for one in published]
    if not isinstance(published, dict):
        return published
    if key == "properties":
        return {name: as_json_schema(one) for name, one in published.items()}
    kept = {name: one for name, one in published.items() if name not in ("optional", "format", "default", "required")}
    schema = {name: one if name == "enum" else as_json_schema(one, name) for name, one in kept.items()}
    kind = TYPES.get(str(schema.get("type")), schema.get("type"))
    schema = {**schema, "type": kind} if kind else {name: one for name, one in schema.items() if name != "type"}
    return {**schema, "required": published["required"]} if isinstance(published.get("required"), list) else schema


def test_every_published_function_and_mutant_is_read() -> None:
    unread = []
    for case in cases("functions_dev.jsonl"):
        variants = [case["stub"], case["placeholder"], case["hardcoded"], *(one["code"] for one in case["mutants"])]
        for text in filter(None, variants):
            read(text)
        reading = read(case["code"])
        is_private = case["name"].startswith("_")
        if not is_private and case["name"] not in {function.name for function in reading.functions}:
            unread.append((case["id"], reading.problems))
    assert unread == []


def accepted(value: Any) -> Any:
    """The first accepted value of a gold call, all the way down; what may be left out is left out."""
    if isinstance(value, dict):
        found = {
            name: choices[0] if isinstance(choices, list) and choices else choices for name, choices in value.items()
        }
        return {name: accepted(one) for name, one in found.items() if one != ""}
    return [accepted(one) for one in value] if isinstance(value, list) else value


def test_the_gold_calls_of_published_schemas_are_accepted() -> None:
    refused: list[tuple[str, object]] = []
    count = 0
    for case in cases("tool_schemas_dev.jsonl"):
        schema = as_json_schema(case["parameters"])
        assert check_schema(schema) is None
        for call in map(accepted, case["gold_calls"] or ()):
            count += 1
            # Some gold calls contradict their own schema; the standard's own validator is the judge of that.
            contradicts = not jsonschema.Draft202012Validator(schema).is_valid(call)
            found = arguments.read(json.dumps(call), schema)
            if not isinstance(found, dict) and not contradicts:
                refused.append((case["id"], found))
    assert count > 1_000
    assert refused == []

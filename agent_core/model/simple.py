"""Schemas in the few keywords that every endpoint takes, for those that refuse the others. Pure values."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

_AS_THEY_ARE: Final = ("description", "enum")
_MAX_DEPTH: Final = 12


def simple(schema: Mapping[str, Any]) -> Schema:
    """The schema without references and rare keywords; what it leaves out is checked when the call comes."""
    return _simple(schema, schema, 0)


def _simple(schema: Any, root: Mapping[str, Any], depth: int) -> Schema:  # Any: JSON Schema, also `true`
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _simple(_resolve(reference, root), root, depth + 1)
    kept = {key: schema[key] for key in _AS_THEY_ARE if key in schema}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    branches = schema.get("anyOf") or schema.get("oneOf") or _each_type(schema)
    if isinstance(branches, list):
        return {**kept, "anyOf": [_simple(branch, root, depth + 1) for branch in branches]}
    if isinstance(schema.get("type"), str):
        kept["type"] = schema["type"]
    if isinstance(properties := schema.get("properties"), Mapping):
        kept["properties"] = {name: _simple(each, root, depth + 1) for name, each in properties.items()}
        kept["required"] = [name for name in schema.get("required", ()) if name in properties]
    if kept.get("type") == "array":
        kept["items"] = _simple(schema.get("items"), root, depth + 1)
    return kept


def _each_type(schema: Mapping[str, Any]) -> list[Schema] | None:
    """A list of types as one branch each."""
    types = schema.get("type")
    return [{**schema, "type": each} for each in types] if isinstance(types, list) else None


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:  # Any: JSON Schema
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, Mapping) else {}
    return found

"""Schemas with the few keywords that every endpoint accepts, for endpoints that refuse the others. Pure values."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

_AS_THEY_ARE: Final = ("description", "enum")
_MAX_DEPTH: Final = 12


def simple(schema: Mapping[str, Any]) -> Schema:
    """Return the schema without references and rare keywords; what it omits is checked when the call arrives."""
    return _simple(schema, schema, 0)


def _simple(schema: Any, root: Mapping[str, Any], depth: int) -> Schema:  # Any: JSON Schema, also `true`
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _simple(_resolve(reference, root), root, depth + 1)
    result = {key: schema[key] for key in _AS_THEY_ARE if key in schema}
    if "const" in schema:
        result["enum"] = [schema["const"]]
    branches = schema.get("anyOf") or schema.get("oneOf") or _each_type(schema)
    if isinstance(branches, list):
        return {**result, "anyOf": [_simple(branch, root, depth + 1) for branch in branches]}
    if isinstance(schema.get("type"), str):
        result["type"] = schema["type"]
    if isinstance(properties := schema.get("properties"), Mapping):
        result["properties"] = {name: _simple(subschema, root, depth + 1) for name, subschema in properties.items()}
        result["required"] = [name for name in schema.get("required", ()) if name in properties]
    if result.get("type") == "array":
        result["items"] = _simple(schema.get("items"), root, depth + 1)
    return result


def _each_type(schema: Mapping[str, Any]) -> list[Schema] | None:
    """Return a list of types as one branch each."""
    types = schema.get("type")
    return [{**schema, "type": type_name} for type_name in types] if isinstance(types, list) else None


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:  # Any: JSON Schema
    target: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
    return target

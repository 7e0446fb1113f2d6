"""Schemas in the form that strict mode requires, if nothing is lost by it. Pure values."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

_KNOWN: Final = frozenset(
    {
        "type",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "anyOf",
        "title",
        "const",
    }
)
_MOST_LEVELS: Final = 5
_MOST_PROPERTIES: Final = 100


class Inexpressible(ValueError):
    """Error raised when a schema cannot be sent as strict; it holds the reason."""


def strict(schema: Mapping[str, Any]) -> Schema:
    """Return the same schema in the form that strict mode requires: every object closed.

    Raises:
        Inexpressible: strict mode cannot say it; the message names the first reason.
    """
    counted: list[str] = []
    written = _strict(schema or {"type": "object", "properties": {}}, "", 1, counted)
    if len(counted) > _MOST_PROPERTIES:
        raise Inexpressible(f"{len(counted)} properties")
    return written


def loosened(schema: Mapping[str, Any]) -> str | None:
    """Return the reason why a schema cannot be sent as strict; None if it can."""
    try:
        strict(schema)
    except Inexpressible as why:
        return str(why)
    return None


def _strict(schema: Any, path: str, level: int, counted: list[str]) -> Schema:
    if not isinstance(schema, Mapping):
        raise Inexpressible(f"`{path or 'it'}` takes anything")
    unknown = sorted(schema.keys() - _KNOWN)
    if unknown or not schema.keys() & {"type", "enum", "anyOf", "const"}:
        raise Inexpressible(f"`{path or 'it'}` has `{unknown[0]}`" if unknown else f"`{path or 'it'}` takes anything")
    result = dict(schema)
    result.pop("title", None)
    if "anyOf" in schema:
        result["anyOf"] = [_strict(branch, path, level, counted) for branch in schema["anyOf"]]
    if "items" in schema:
        result["items"] = _strict(schema["items"], f"{path}[]", level, counted)
    elif schema.get("type") == "array":
        raise Inexpressible(f"`{path}` is a list of anything")
    return _closed(result, path, level, counted) if schema.get("type") == "object" else result


def _closed(schema: Schema, path: str, level: int, counted: list[str]) -> Schema:
    properties: Mapping[str, Any] = schema.get("properties", {})
    optional = [name for name in properties if name not in schema.get("required", ())]
    if optional:
        raise Inexpressible(f"`{_below(path, optional[0])}` is optional")
    if level > _MOST_LEVELS:
        raise Inexpressible(f"`{path}` is nested too deep")
    if schema.get("additionalProperties", False) is not False or (path and not properties):
        raise Inexpressible(f"`{path or 'it'}` takes any key")
    counted.extend(properties)
    inner = {name: _strict(subschema, _below(path, name), level + 1, counted) for name, subschema in properties.items()}
    return {**schema, "properties": inner, "required": [*properties], "additionalProperties": False}


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

"""JSON Schemas as endpoints and grammars take them: strict, simple or portable. Pure values.

A strict schema says the same, with every object closed, or cannot be made. The other two are reductions: references are
replaced by what they name, and what is left out is checked when the call arrives. A simple schema has the few keywords
that every endpoint accepts, a portable one those that all grammar engines share: no formats, patterns and ranges.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeAlias

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
_DEEPEST: Final = 12  # of a reduced schema, which refers to itself no longer
_NAME_CHARS: Final = 64
_LONGEST_BOUND: Final = 256


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


def simple(schema: Mapping[str, Any]) -> Schema:
    """Return the schema without references and rare keywords."""
    return _Simple(schema).reduced(schema)


def portable(schema: Mapping[str, Any]) -> Schema:
    """Return the part of a JSON Schema that all grammar engines support; it never rejects what the whole would
    accept.
    """
    return _Portable(schema).reduced(schema)


class _Simple:
    """A reduction of one schema, with references looked up in the root."""

    keywords: ClassVar[tuple[str, ...]] = ("description", "enum")

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def reduced(self, schema: Any, depth: int = 0) -> Schema:  # Any: JSON Schema, also `true`
        """Return one schema of the root, reduced."""
        if depth > _DEEPEST or not isinstance(schema, Mapping):
            return {}
        if "$ref" in schema:
            return self.reduced(_named_by(schema["$ref"], self._root), depth + 1)
        result = {key: schema[key] for key in self.keywords if key in schema}
        branches = schema.get("anyOf") or schema.get("oneOf")
        return self._filled(result, schema, branches if isinstance(branches, list) else [], depth + 1)

    def _filled(self, result: Schema, schema: Mapping[str, Any], branches: list[Any], depth: int) -> Schema:
        if "const" in schema:
            result["enum"] = [schema["const"]]
        types = schema.get("type")
        if not branches and isinstance(types, list):
            branches = [{**schema, "type": type_name} for type_name in types]
        if branches:
            return {**result, "anyOf": [self.reduced(branch, depth) for branch in branches]}
        if isinstance(types, str):
            result["type"] = types
        result |= self._properties(schema, depth)
        return result | ({"items": self.reduced(schema.get("items"), depth)} if types == "array" else {})

    def _properties(self, schema: Mapping[str, Any], depth: int) -> Schema:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return {}
        inner = {name: self.reduced(subschema, depth) for name, subschema in properties.items()}
        return {"properties": inner, "required": [name for name in schema.get("required", ()) if name in inner]}


class _Portable(_Simple):
    """A reduction for a grammar, which holds no key but the known ones, and bounds that are small."""

    keywords: ClassVar[tuple[str, ...]] = ("type", "enum", "const")

    def _filled(self, result: Schema, schema: Mapping[str, Any], branches: list[Any], depth: int) -> Schema:
        if branches:
            return {"anyOf": [self.reduced(branch, depth) for branch in branches]}
        result |= self._properties(schema, depth) | self._items(schema, depth)
        bound = schema.get("maxLength")
        return result | ({"maxLength": bound} if isinstance(bound, int) and bound <= _LONGEST_BOUND else {})

    def _properties(self, schema: Mapping[str, Any], depth: int) -> Schema:
        described = super()._properties(schema, depth)
        if described:
            inner = {name: _bounded(name, subschema) for name, subschema in described["properties"].items()}
            return {**described, "properties": inner, "additionalProperties": False}
        extra = schema.get("additionalProperties")
        return {"additionalProperties": self.reduced(extra, depth)} if isinstance(extra, Mapping) else {}

    def _items(self, schema: Mapping[str, Any], depth: int) -> Schema:
        places, items = schema.get("prefixItems"), schema.get("items")
        if isinstance(places, list):
            inner = [self.reduced(item, depth) for item in places]
            # No `items` of `false`: llama.cpp's server refuses it, and the size says the same.
            return {"prefixItems": inner, "minItems": len(places), "maxItems": len(places)}
        return {"items": self.reduced(items, depth)} if isinstance(items, Mapping) else {}


def _bounded(name: str, schema: Schema) -> Schema:
    """Limit the length of a name: in an unbounded one, a small model starts to repeat itself."""
    if name.endswith("_name") and schema.get("type") == "string" and "enum" not in schema:
        return {"maxLength": _NAME_CHARS, **schema}
    return schema


def _named_by(reference: Any, root: Mapping[str, Any]) -> Any:  # Any: JSON Schema
    """Return the target of a local reference; anything is allowed if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    target: Any = root
    for part in filter(None, reference[1:].split("/")):
        target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
    return target

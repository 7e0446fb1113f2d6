"""JSON Schemas in the forms that endpoints and grammars accept: strict, simple or portable. Pure values.

A strict schema is equivalent to the original, with every object closed; not every schema has one. The other two are
reductions: references are replaced by their targets, and omitted constraints are checked when the call arrives. A
simple schema has the few keywords that every endpoint accepts; a portable one those that all grammar engines share: no
formats, patterns and ranges.
"""

from collections.abc import Mapping
from functools import partial
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
_DEEPEST: Final = 12  # levels of a reduced schema, which has no references
_NAME_CHARS: Final = 64
_LONGEST_BOUND: Final = 256


class Inexpressible(ValueError):
    """Error raised when a schema cannot be sent as strict; it contains the reason."""


def strict(schema: Mapping[str, Any]) -> Schema:
    """Return an equivalent schema in the form that strict mode requires: every object closed.

    Raises:
        Inexpressible: strict mode cannot express it; the message has the first reason.
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
        branches = schema["anyOf"] if isinstance(schema["anyOf"], list) else [schema["anyOf"]]
        result["anyOf"] = [_strict(branch, path, level, counted) for branch in branches]
    if "items" in schema:
        result["items"] = _strict(schema["items"], f"{path}[]", level, counted)
    elif schema.get("type") == "array":
        raise Inexpressible(f"`{path}` is a list of anything")
    return _strict_object(result, path, level, counted) if schema.get("type") == "object" else result


def _strict_object(schema: Schema, path: str, level: int, counted: list[str]) -> Schema:
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
    return _reduce(schema, schema, False)


def portable(schema: Mapping[str, Any]) -> Schema:
    """Return the part of a JSON Schema that all grammar engines support; it accepts everything that the original
    accepts.
    """
    return _reduce(schema, schema, True)


def _reduce(schema: Any, root: Mapping[str, Any], is_grammar: bool, depth: int = 0) -> Schema:  # noqa: FBT001 - the same at each level
    """Return a reduced part of the root schema: for a grammar, with known keys only, or for an endpoint."""
    if depth > _DEEPEST or not isinstance(schema, Mapping):
        return {}
    inner = partial(_reduce, root=root, is_grammar=is_grammar, depth=depth + 1)
    if "$ref" in schema:
        return inner(_named_by(schema["$ref"], root))
    kept = ("type", "enum", "const") if is_grammar else ("type", "enum", "description")
    result = {key: schema[key] for key in kept if key in schema}
    branches, types = schema.get("anyOf") or schema.get("oneOf"), schema.get("type")
    if not is_grammar:
        result |= {"enum": [schema["const"]]} if "const" in schema else {}
        branches = branches or ([{**schema, "type": name} for name in types] if isinstance(types, list) else None)
    if branches and isinstance(branches, list):
        result = {} if is_grammar else {key: value for key, value in result.items() if key != "type"}
        return {**result, "anyOf": [inner(branch) for branch in branches]}
    properties, items, places = (schema.get(key) for key in ("properties", "items", "prefixItems"))
    extra, bound = schema.get("additionalProperties"), schema.get("maxLength")
    if isinstance(properties, Mapping):
        made = {name: inner(each) for name, each in properties.items()}
        result |= {"properties": made, "required": [name for name in schema.get("required", ()) if name in made]}
    if not is_grammar:
        return {**result, "items": inner(items)} if types == "array" else result
    if isinstance(properties, Mapping):
        texts = {name: each for name, each in made.items() if each.get("type") == "string" and "enum" not in each}
        # Without a limit, a small model starts to repeat itself in a name.
        limited = {name: {"maxLength": _NAME_CHARS, **texts[name]} for name in texts if name.endswith("_name")}
        result |= {"properties": made | limited, "additionalProperties": False}
    elif isinstance(extra, Mapping):
        result["additionalProperties"] = inner(extra)
    if isinstance(places, list):  # llama.cpp's server rejects `items: false`; the size has the same effect
        result |= {"prefixItems": [*map(inner, places)], "minItems": len(places), "maxItems": len(places)}
    elif isinstance(items, Mapping):
        result["items"] = inner(items)
    return result | ({"maxLength": bound} if isinstance(bound, int) and bound <= _LONGEST_BOUND else {})


def _named_by(reference: Any, root: Mapping[str, Any]) -> Any:  # Any: JSON Schema
    """Return the target of a local reference; anything is allowed if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    target: Any = root
    for part in filter(None, reference[1:].split("/")):
        target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
    return target

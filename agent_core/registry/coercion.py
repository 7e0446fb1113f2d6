"""Lossless coercion of JSON values to a schema: "3" → 3, 3.0 → 3, "true" → true, one value → a list of one.

What already fits stays as it is; what cannot be done without loss stays too, for validation to report.
Coercing twice gives what coercing once gave.
"""

import json
import re
from typing import Any

from jsonschema.protocols import Validator

from .checker import spend, validator_for
from .jsontext import read_nested
from .typenames import Schema

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_EXACT = 2**53
_DIGITS = 4_000


class Coercion:
    """One coercion under one root schema, within `checker.counted`."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.validator = validator_for(root)
        self._parts: dict[int, tuple[Any, Validator]] = {}  # by identity, each with what it must stay identical to
        self._split: dict[int, tuple[Schema, list[Schema]]] = {}

    def coerce(self, value: Any, schema: Any) -> Any:  # Any: JSON in, JSON out; a schema may be a boolean
        """Return the value as the schema requires it, as far as nothing is lost."""
        spend()
        if not isinstance(schema, dict):
            return value
        if "$ref" in schema:
            value = self.coerce(value, self._target(schema["$ref"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                value = self._union(value, schema[keyword])
        for part in schema.get("allOf", ()):
            value = self.coerce(value, part)
        kind = schema.get("type")
        if isinstance(kind, list):
            entry = self._split.setdefault(id(schema), (schema, [{**schema, "type": type_name} for type_name in kind]))
            return self._union(value, entry[1])
        return self._typed(value, schema, kind)

    def _target(self, reference: str) -> Any:
        if reference == "#":
            return self.root
        return self.root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})

    def fits(self, value: Any, schema: Any) -> bool:
        """Check whether a value is valid as it is."""
        spend()
        if isinstance(schema, dict) and schema.keys() == {"type"} and isinstance(schema["type"], str):
            return self.validator.is_type(value, schema["type"])
        entry = self._parts.get(id(schema))
        if entry is None:
            entry = self._parts[id(schema)] = (schema, self.validator.evolve(schema=schema))
        return entry[1].is_valid(value)

    def _union(self, value: Any, branches: list[Any]) -> Any:
        """Return an exact match unchanged, else the result of the first branch that a coercion reaches."""
        for branch in branches:
            if self.fits(value, branch):
                return self.coerce(value, branch)
        for branch in branches:
            coerced = self.coerce(value, branch)
            if self.fits(coerced, branch):
                return coerced
        return value

    def _typed(self, value: Any, schema: Schema, kind: Any) -> Any:
        if kind == "array":
            return self._array(value, schema)
        if kind == "object":
            return self._object(value, schema)
        # A year is no date, and a number of seconds no duration: text with a format is never made of a number.
        if kind not in _SCALARS or (kind == "string" and schema.get("format", "path") != "path"):
            return value
        return _SCALARS[kind](value)

    def _array(self, value: Any, schema: Schema) -> Any:
        if isinstance(value, str):
            value = read_nested(value, list)
        if isinstance(value, list):
            return self._items(value, schema)
        if value is None:
            return value
        wrapped = self._items([value], schema)
        return wrapped if self.fits(wrapped, schema) else value

    def _items(self, value: list[Any], schema: Schema) -> list[Any]:
        first = schema.get("prefixItems", [])
        extra = schema.get("items", {})
        items = [self.coerce(item, first[n] if n < len(first) else extra) for n, item in enumerate(value)]
        return _distinct(items) if schema.get("uniqueItems") is True else items

    def _object(self, value: Any, schema: Schema) -> Any:
        if isinstance(value, str):
            value = read_nested(value, dict)
        if not isinstance(value, dict):
            return value
        properties, required = schema.get("properties", {}), schema.get("required", ())
        extra = schema.get("additionalProperties", {})
        coerced = {}
        for name, item in value.items():
            own = properties.get(name, extra)
            if item is None and name in properties and name not in required and not self.fits(None, own):
                continue  # null for what has a default means the default
            coerced[name] = self.coerce(item, own)
        return coerced


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def _number(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > _DIGITS:
        return value
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else value
    return value


def _boolean(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value


def _string(value: Any) -> Any:
    return str(value) if _is_integer(value) and abs(value) < 10**_DIGITS else value


_SCALARS = {"integer": _integer, "number": _number, "boolean": _boolean, "string": _string}


def _distinct(items: list[Any]) -> list[Any]:
    """Return the items of a set once each: a model's repetition means nothing."""
    return list({json.dumps(item, sort_keys=True): item for item in reversed(items)}.values())[::-1]

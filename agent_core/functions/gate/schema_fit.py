"""Checks whether a value is valid under a JSON Schema, as Python values go to a worker.

A tuple or a set is an array, a date is what its format says. What a schema says in a keyword that is not
known here is never claimed to be fulfilled. Pure, and bounded in depth.
"""

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from agent_core.registry.typenames import Schema

Value: TypeAlias = Any  # what crosses to a worker
NUMBERED = "^-?[0-9]+$"  # the pattern of names that are whole numbers
_DEEPEST = 40


def fits(value: Value, schema: "Schema", root: "Schema", depth: int = 0) -> bool:
    """Check whether the value is valid under the schema; False for a keyword that is not known here."""
    if depth > _DEEPEST:
        return False
    if "$ref" in schema:
        return fits(value, referred(schema, root), root, depth + 1)
    for keyword, rule in schema.items():
        if keyword in _SAID:
            continue
        check = _RULES.get(keyword)
        if check is None or not check(value, rule, schema, root, depth + 1):
            return False
    return True


def referred(schema: "Schema", root: "Schema") -> "Schema":
    """Return the target of a local reference; a schema that nothing fits if it is unknown."""
    definition = root.get("$defs", {}).get(str(schema["$ref"]).removeprefix("#/$defs/"), {"not known": ""})
    return definition if isinstance(definition, dict) else {"not known": ""}


def _is_of(value: Value, kind: Value, schema: "Schema", *_args: object) -> bool:
    if isinstance(kind, list):
        return any(_is_of(value, member, schema) for member in kind)
    if kind == "string" and (types := _MADE.get(str(schema.get("format") or schema.get("contentEncoding")))):
        return type(value) in types
    return type(value) in _KINDS.get(kind, ())


_KINDS: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list, tuple, set, frozenset),
    "object": (dict,),
}
_MADE: dict[str, tuple[type, ...]] = {
    "base64": (bytes,),
    "date": (datetime.date,),
    "date-time": (datetime.datetime,),
    "time": (datetime.time,),
    "duration": (datetime.timedelta,),
    "decimal": (Decimal,),
    "uuid": (uuid.UUID,),
    "path": (PurePosixPath,),
}
_ROWS = (list, tuple, set, frozenset)


def _items(value: Value, rule: "Schema", schema: "Schema", root: "Schema", depth: int) -> bool:
    if not isinstance(value, _ROWS):
        return True
    start = len(schema.get("prefixItems", ()))
    if rule.keys() == {"type"} and rule["type"] in _KINDS:  # most are so plain
        kinds = _KINDS[rule["type"]]
        return all(type(item) in kinds for item in list(value)[start:])
    return all(fits(item, rule, root, depth) for item in list(value)[start:])


def _prefix(value: Value, rule: list["Schema"], _schema: "Schema", root: "Schema", depth: int) -> bool:
    if not isinstance(value, _ROWS):
        return True
    return all(fits(item, part, root, depth) for item, part in zip(value, rule, strict=False))


def _properties(value: Value, rule: dict[str, "Schema"], _schema: "Schema", root: "Schema", depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    return all(fits(value[name], part, root, depth) for name, part in rule.items() if name in value)


def _additional(value: Value, rule: Value, schema: "Schema", root: "Schema", depth: int) -> bool:
    if not isinstance(value, dict) or rule is True:
        return True
    extras = [name for name in value if name not in schema.get("properties", {})]
    return all(rule is not False and fits(value[name], rule, root, depth) for name in extras)


def _names(value: Value, rule: "Schema", _schema: "Schema", root: "Schema", depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    if rule.get("pattern") == NUMBERED:
        return all(type(name) is int for name in value)
    return all(fits(name, {"type": "string"} | rule, root, depth) for name in value)


def _size(kinds: tuple[type, ...], holds: Callable[[int, int], bool]) -> Callable[..., bool]:
    return lambda value, rule, *_args: type(value) not in kinds or holds(len(value), rule)


def _amount(holds: Callable[[float, float], bool]) -> Callable[..., bool]:
    return lambda value, rule, *_args: type(value) not in (int, float) or holds(value, rule)


# What only describes a value.
_SAID = frozenset({"description", "title", "default", "examples", "format", "contentEncoding", "$defs"})
_RULES: dict[str, Callable[..., bool]] = {
    "type": _is_of,
    "enum": lambda value, rule, *_args: any(type(option) is type(value) and option == value for option in rule),
    "const": lambda value, rule, *_args: type(rule) is type(value) and rule == value,
    "anyOf": lambda value, rule, _schema, root, depth: any(fits(value, branch, root, depth) for branch in rule),
    "items": _items,
    "prefixItems": _prefix,
    "uniqueItems": lambda value, rule, *_args: (
        not rule or not isinstance(value, _ROWS) or all(item not in [*value][:at] for at, item in enumerate(value))
    ),
    "properties": _properties,
    "required": lambda value, rule, *_args: not isinstance(value, dict) or value.keys() >= set(rule),
    "additionalProperties": _additional,
    "propertyNames": _names,
    "minItems": _size(_ROWS, int.__ge__),
    "maxItems": _size(_ROWS, int.__le__),
    "minLength": _size((str,), int.__ge__),
    "maxLength": _size((str,), int.__le__),
    "minProperties": _size((dict,), int.__ge__),
    "maxProperties": _size((dict,), int.__le__),
    "minimum": _amount(lambda value, rule: value >= rule),
    "maximum": _amount(lambda value, rule: value <= rule),
    "exclusiveMinimum": _amount(lambda value, rule: value > rule),
    "exclusiveMaximum": _amount(lambda value, rule: value < rule),
    "multipleOf": _amount(lambda value, rule: value % rule == 0),
}

"""Literal values in a syntax tree: what a default, an enum member or a constraint shows."""

import ast
import math
from dataclasses import dataclass
from typing import Any

_LONGEST = 4_000
_MOST_KEYS = 1_000
_JSON_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out; wrapped, since None is one."""

    value: Any  # any value that Python can write as a literal


def literal_value(node: ast.expr) -> Literal | None:
    """The value of a literal expression; None for every other expression."""
    if isinstance(node, ast.Constant):
        return Literal(node.value)
    if has_many_keys(node):
        return None
    try:
        return Literal(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def has_many_keys(node: ast.expr) -> bool:
    """Return whether a literal has sets or mappings of so many values that those may take long which collide.

    The hash of a text cannot be chosen by who writes it, that of a number can.
    """
    count = 0
    for one in ast.walk(node):
        keys = one.elts if isinstance(one, ast.Set) else one.keys if isinstance(one, ast.Dict) else []
        if not all(isinstance(key, ast.Constant) and isinstance(key.value, str | bytes) for key in keys):
            count += sum(1 for key in keys if key is not None for _ in ast.walk(key))
    return count > _MOST_KEYS


def json_literal(node: ast.expr) -> Literal | None:
    """The value of a literal as JSON would carry it (a tuple as a list); None where JSON cannot, or it is long."""
    found = literal_value(node)
    if found is None:
        return None
    try:
        value = _as_json(found.value)
    except (TypeError, RecursionError):
        return None
    return Literal(value) if len(repr(value)) <= _LONGEST else None


def _as_json(value: Any) -> Any:  # Any: a literal in, JSON out
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, set):
        return sorted((_as_json(item) for item in value), key=repr)
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _as_json(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is not JSON")


def enumeration(values: list[Any]) -> dict[str, Any]:  # Any: scalars of JSON in, JSON Schema out
    """`const` or `enum` of scalars, with their type where they share one."""
    kinds = {_JSON_NAMES[type(value)] for value in values}
    kind = {"type": kinds.pop()} if len(kinds) == 1 else {}
    distinct = list({repr(value): value for value in values}.values())  # True is not 1
    return {**kind, "const": distinct[0]} if len(distinct) == 1 else {**kind, "enum": distinct}

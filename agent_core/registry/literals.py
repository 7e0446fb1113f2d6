"""Literal values in a syntax tree: the value of a default, an enum member or a constraint."""

import ast
import math
from dataclasses import dataclass
from typing import Any

_LONGEST = 4_000
_MOST_KEYS = 1_000
_JSON_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value, wrapped because None is one."""

    value: Any  # any value that Python can write as a literal


def literal_value(node: ast.expr) -> Literal | None:
    """Return the value of a literal expression; None for every other expression."""
    if isinstance(node, ast.Constant):
        return Literal(node.value)
    if has_many_keys(node):
        return None
    try:
        return Literal(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def has_many_keys(node: ast.expr) -> bool:
    """Check whether a literal has sets or mappings so large that colliding values could take long.

    The hash of a text cannot be chosen by who writes it, that of a number can.
    """
    count = 0
    for child in ast.walk(node):
        keys = child.elts if isinstance(child, ast.Set) else child.keys if isinstance(child, ast.Dict) else []
        if not all(isinstance(key, ast.Constant) and isinstance(key.value, str | bytes) for key in keys):
            count += sum(1 for key in keys if key is not None for _ in ast.walk(key))
    return count > _MOST_KEYS


def json_literal(node: ast.expr) -> Literal | None:
    """Return a literal's value as JSON would carry it (a tuple as a list); None if JSON cannot, or if it is long."""
    literal = literal_value(node)
    if literal is None:
        return None
    try:
        value = _as_json(literal.value)
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
    """Return `const` or `enum` for scalars, with their type if they share one."""
    kinds = {_JSON_NAMES[type(value)] for value in values}
    kind = {"type": kinds.pop()} if len(kinds) == 1 else {}
    distinct = list({repr(value): value for value in values}.values())  # True is not 1
    return {**kind, "const": distinct[0]} if len(distinct) == 1 else {**kind, "enum": distinct}

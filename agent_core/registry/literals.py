"""Literals in a module's text, as JSON: plain values, and what `Annotated[…]` and `Field(…)` say.

A literal is the value of a default, an enum member or a constraint.
"""

import ast
import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from . import typenames
from .tree import Scope
from .typenames import Schema

_LONGEST = 4_000
_TEXTS = frozenset({"description", "title", "examples", "default"})
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
    count, waiting = 0, [node]
    while waiting and count <= _MOST_KEYS:
        child = waiting.pop()
        match child:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                waiting += items
                continue
            case ast.Set(elts=keys):
                waiting += keys
            case ast.Dict(keys=given, values=values):
                keys = [key for key in given if key is not None]
                waiting += [*keys, *values]
            case _:  # no other expression holds a collection, and is a literal
                continue
        if not all(isinstance(key, ast.Constant) and isinstance(key.value, str | bytes) for key in keys):
            count += sum(1 for key in keys for _ in ast.walk(key))
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


class Types(Protocol):
    """A converter for the annotations of fields."""

    scope: Scope

    def convert(self, node: ast.expr) -> Schema:
        """Return the schema of an annotation."""
        ...

    def within(self, scope: Scope) -> AbstractContextManager[None]:
        """Read what is converted meanwhile as it is meant in the module of a scope."""
        ...


def annotated(arguments: list[ast.expr], types: Types) -> Schema:
    """Return the schema of `Annotated[T, …]`: T with the texts, `Field(…)` and `Doc(…)` that describe and limit it."""
    schema = types.convert(arguments[0])
    for extra in arguments[1:]:
        match extra:
            case ast.Constant(value=str(text)):
                schema = {"description": text.strip(), **schema}
            case ast.Call():
                schema = limited(schema, extra, types.scope)
    return schema


def limited(schema: Schema, call: ast.Call, scope: Scope) -> Schema:
    """Return a schema with what a `Field(…)` says of it; of an optional type, the limits are those of its value."""
    extras = _constraints(call, scope, schema)
    declared = field_default(call, scope)
    if declared is not None:
        extras |= declared.shown
    values = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(values) != 1 or not isinstance(values[0].get("type"), str):
        return {**schema, **extras}
    limits = {name: value for name, value in _constraints(call, scope, values[0]).items() if name not in _TEXTS}
    options = [{**option, **limits} if option is values[0] else option for option in schema["anyOf"]]
    return {**schema, "anyOf": options} | {name: value for name, value in extras.items() if name in _TEXTS}


@dataclass(frozen=True, slots=True)
class Default:
    """The default of a value, if it has one, and the form in which a schema shows it."""

    is_required: bool
    shown: Schema


def default_of(value: ast.expr | None, scope: Scope) -> Default:
    """Return the default that an assignment or a parameter has, also as `Field(…)`."""
    if value is None:
        return Default(is_required=True, shown={})
    declared = field_default(value, scope)
    return declared or Default(is_required=False, shown=_shown(value, scope))


def field_default(node: ast.expr | None, scope: Scope) -> Default | None:
    """Return the default within `Field(…)`; None for any other expression."""
    if not isinstance(node, ast.Call) or scope.origin(node.func) not in typenames.FIELD:
        return None
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    value = node.args[0] if node.args else named.get("default")
    if value is not None and not (isinstance(value, ast.Constant) and value.value is ...):
        return Default(is_required=False, shown=_shown(value, scope))
    return Default(is_required="default_factory" not in named, shown={})


def annotated_default(annotation: ast.expr | None, scope: Scope) -> Default | None:
    """Return the default that `Annotated[…, Field(default=…)]` gives; None if it gives none."""
    if not isinstance(annotation, ast.Subscript) or not scope.origin(annotation.value).endswith(".Annotated"):
        return None
    parts = annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
    defaults = [default for part in parts if (default := field_default(part, scope)) and not default.is_required]
    return defaults[-1] if defaults else None


def _shown(value: ast.expr, scope: Scope) -> Schema:
    """Return a default as a schema shows it, if it is written out: a literal, or a member of an enumeration."""
    if isinstance(value, ast.Attribute):
        home, origin = scope.resolve(value.value)
        owner = home.classes.get(origin.removeprefix("."))
        members = {
            statement.targets[0].id: statement.value
            for statement in (owner.body if owner else ())
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        value = members.get(value.attr, value)
    literal = json_literal(value)
    return {"default": literal.value} if literal else {}


def _constraints(call: ast.Call, scope: Scope, schema: Schema) -> Schema:
    origin = scope.origin(call.func)
    arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if call.args and origin in typenames.CONSTRAINT_CLASSES:
        arguments[typenames.CONSTRAINT_CLASSES[origin]] = call.args[0]
    constraints: Schema = {}
    for name, node in arguments.items():
        keyword, value = typenames.CONSTRAINTS.get(name), json_literal(node)
        if keyword is None or value is None or not _fits(keyword, value.value):
            continue
        if keyword in ("min", "max"):
            keyword += {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")
        constraints[keyword] = value.value
    return constraints


def _fits(keyword: str, value: Any) -> bool:
    """Check whether a constraint's value is valid in JSON Schema: a model is shown only valid schemas."""
    match keyword:
        case "description" | "title" | "pattern":
            return isinstance(value, str)
        case "examples":
            return isinstance(value, list)
        case "min" | "max":
            return type(value) is int and value >= 0
        case "multipleOf":
            return type(value) in (int, float) and value > 0
    return type(value) in (int, float)

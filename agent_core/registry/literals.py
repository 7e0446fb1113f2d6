"""What a module's text writes out, as JSON: literal values, and the JSON Schema of classes and `Annotated[…]`.

A literal is the value of a default, an enum member or a constraint; a class is an Enum, dataclass, TypedDict or
NamedTuple.
"""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from . import docstring, typenames
from .tree import Scope
from .typenames import Schema, Unresolved

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


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a class, required unless it has a default; `default` holds the default if it is a literal."""

    annotation: ast.expr
    is_required: bool
    default: Schema


def schema_of(node: ast.ClassDef, types: Types) -> Schema:
    """Return the schema of a class that this module defines.

    Raises:
        Unresolved: it is no class with fields or members that are written out.
    """
    members = enum_members(node, types.scope)
    if members is not None:
        return enumeration(list(members.values()))
    fields = _fields(node, types.scope, seen=())
    described = docstring.read(ast.get_docstring(node))
    properties = {name: _property(field, described.parameters.get(name, ""), types) for name, field in fields.items()}
    summary = described.text.split("\n\n", 1)[0]
    return {
        "type": "object",
        **({"description": summary} if summary else {}),
        "properties": properties,
        "required": [name for name, field in fields.items() if field.is_required],
        "additionalProperties": False,
    }


def _property(field: Field, description: str, types: Types) -> Schema:
    schema = types.convert(field.annotation)
    if description and "description" not in schema:
        schema = {**schema, "description": description}
    return {**schema, **field.default}


def enum_members(node: ast.ClassDef, scope: Scope) -> dict[str, Any] | None:  # Any: scalars of JSON
    """Return the members of an enumeration with their values; None for a class that is no enumeration.

    Raises:
        Unresolved: a value is computed, so only an import can tell it.
    """
    bases = {scope.origin(base) for base in node.bases}
    if not bases & typenames.ENUMS:
        return None
    members: dict[str, Any] = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not name.startswith("_"):
                members[name] = _member_value(name, value, list(members.values()), scope, bases)
    if not members:
        raise Unresolved(f"`{node.name}` has no members that are written out")
    return members


def _member_value(name: str, value: ast.expr, before: list[Any], scope: Scope, bases: set[str]) -> Any:
    if isinstance(value, ast.Call) and scope.origin(value.func) == "enum.auto":
        if bases & {"enum.StrEnum", "builtins.str"}:
            return name.lower() if "enum.StrEnum" in bases else _computed(name)
        numbers = [number for number in before if isinstance(number, int)]
        return max(numbers) + 1 if numbers else 1
    literal = json_literal(value)
    if literal is None or not isinstance(literal.value, str | int | float | bool | None):
        return _computed(name)
    return literal.value


def _computed(name: str) -> Any:
    raise Unresolved(f"the value of the member `{name}` is computed")


def _fields(node: ast.ClassDef, scope: Scope, seen: tuple[str, ...]) -> dict[str, Field]:
    """Return the fields of a class, those of its bases in this module first."""
    fields: dict[str, Field] = {}
    is_typed_dict = is_known = False
    for base in node.bases:
        origin = scope.origin(base)
        is_typed_dict |= origin in typenames.TYPED_DICT
        is_known |= origin in typenames.TYPED_DICT or origin in typenames.NAMED_TUPLE
        if origin[1:] in scope.classes and origin[1:] not in seen:
            fields |= _fields(scope.classes[origin[1:]], scope, (*seen, node.name))
            is_known = True
        elif origin not in typenames.TYPED_DICT | typenames.NAMED_TUPLE:
            raise Unresolved(f"`{node.name}` inherits from what is known only after an import")
    is_known |= any(_is_dataclass(decorator, scope) for decorator in node.decorator_list)
    if not is_known or any(keyword.arg == "metaclass" for keyword in node.keywords):
        raise Unresolved(f"`{node.name}` is a class of another kind")
    is_total = not (is_typed_dict and any(_is_false(keyword, "total") for keyword in node.keywords))
    return {**fields, **dict(_own_fields(node, scope, is_total))}


def _is_dataclass(decorator: ast.expr, scope: Scope) -> bool:
    return scope.origin(decorator.func if isinstance(decorator, ast.Call) else decorator) in typenames.DATACLASS


def _is_false(keyword: ast.keyword, name: str) -> bool:
    return keyword.arg == name and isinstance(keyword.value, ast.Constant) and keyword.value.value is False


def _own_fields(node: ast.ClassDef, scope: Scope, is_total: bool) -> Iterator[tuple[str, Field]]:  # noqa: FBT001
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                kind = _wrapper(annotation, scope)
                if kind in ("ClassVar", "KW_ONLY"):
                    continue
                if isinstance(value, ast.Call) and any(_is_false(keyword, "init") for keyword in value.keywords):
                    continue
                is_required = kind == "Required" or (is_total and kind != "NotRequired" and not _has_default(value))
                yield name, Field(annotation, is_required, _default(value))


def _wrapper(annotation: ast.expr, scope: Scope) -> str:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return scope.origin(base).rpartition(".")[2]


def _has_default(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return any(keyword.arg in ("default", "default_factory") for keyword in value.keywords) or bool(value.args)
    return value is not None


def _default(value: ast.expr | None) -> Schema:
    if isinstance(value, ast.Call):
        value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    literal = json_literal(value) if value is not None else None
    return {"default": literal.value} if literal else {}


def annotated(arguments: list[ast.expr], types: Types) -> Schema:
    """Return the schema of `Annotated[T, …]`: T with the texts, `Field(…)` and `Doc(…)` that describe and limit it."""
    schema = types.convert(arguments[0])
    extras: Schema = {}
    for extra in arguments[1:]:
        match extra:
            case ast.Constant(value=str(text)):
                extras.setdefault("description", text.strip())
            case ast.Call():
                extras |= _constraints(extra, types.scope, schema)
    return {**schema, **extras}


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

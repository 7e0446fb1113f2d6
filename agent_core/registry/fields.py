"""The effects of `Annotated[…]`, `Field(…)` and defaults on a schema: descriptions, limits, default values."""

import ast
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from . import typenames
from .literals import written_value
from .typenames import Schema, Unresolved

if TYPE_CHECKING:
    from .tree import Scope

_TEXTS = frozenset({"description", "title", "examples", "default", "deprecated"})


class Types(Protocol):
    """A converter for the annotations of fields."""

    scope: "Scope"

    def convert(self, node: ast.expr) -> Schema:
        """Return the schema of an annotation."""
        ...

    def within(self, scope: "Scope") -> AbstractContextManager[None]:
        """Resolve names in the module of this scope while the block runs."""
        ...


def convert_annotated(arguments: list[ast.expr], types: Types) -> Schema:
    """Return the schema of `Annotated[T, …]`: that of T, described and limited by texts, `Field(…)` and `Doc(…)`."""
    schema = types.convert(arguments[0])
    for extra in arguments[1:]:
        match extra:
            case ast.Constant(value=str(text)):
                schema = {"description": text.strip(), **schema}
            case ast.Call():
                if types.scope.origin(extra.func) in typenames.SCHEMA_MAKERS:
                    raise Unresolved("a schema that is written by hand is known only after an import")
                schema = limit(schema, extra, types.scope)
    return schema


def limit(schema: Schema, call: ast.Call, scope: "Scope") -> Schema:
    """Return a schema with the constraints of a `Field(…)`; for an optional type, they apply to its value."""
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
    """The default of a value, if any, and its form in a schema."""

    is_required: bool
    shown: Schema


def default_of(value: ast.expr | None, scope: "Scope") -> Default:
    """Return the default of an assignment or a parameter, including one in `Field(…)`."""
    if value is None:
        return Default(is_required=True, shown={})
    declared = field_default(value, scope)
    return declared or Default(is_required=False, shown=_default_schema(value, scope))


def field_default(node: ast.expr | None, scope: "Scope") -> Default | None:
    """Return the default in a `Field(…)`; None for any other expression."""
    if not isinstance(node, ast.Call) or scope.origin(node.func) not in typenames.FIELD:
        return None
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    value = node.args[0] if node.args else named.get("default")
    if value is not None and not (isinstance(value, ast.Constant) and value.value is ...):
        return Default(is_required=False, shown=_default_schema(value, scope))
    return Default(is_required="default_factory" not in named, shown={})


def annotated_default(annotation: ast.expr | None, scope: "Scope") -> Default | None:
    """Return the default in `Annotated[…, Field(default=…)]`; None if there is none."""
    if not isinstance(annotation, ast.Subscript) or not scope.origin(annotation.value).endswith(".Annotated"):
        return None
    parts = annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
    defaults = [default for part in parts if (default := field_default(part, scope)) and not default.is_required]
    return defaults[-1] if defaults else None


def _default_schema(value: ast.expr, scope: "Scope") -> Schema:
    """Return a default in the form of a schema, if the text determines it."""
    written = written_value(value, scope)
    return {"default": written.value} if written else {}


def _constraints(call: ast.Call, scope: "Scope", schema: Schema) -> Schema:
    origin = scope.origin(call.func)
    arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    arguments |= dict(zip(typenames.CONSTRAINT_CLASSES.get(origin, ()), call.args, strict=False))
    constraints: Schema = {}
    for name, node in arguments.items():
        keyword, value = typenames.CONSTRAINTS.get(name), written_value(node, scope)
        if keyword is None or value is None or not _fits(keyword, value.value):
            continue
        if keyword in ("min", "max"):
            keyword += {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")
        constraints[keyword] = value.value
    return constraints


def _fits(keyword: str, value: Any) -> bool:
    """Check whether a constraint's value is valid in JSON Schema, because a model must only get valid schemas."""
    match keyword:
        case "description" | "title" | "pattern":
            return isinstance(value, str)
        case "examples":
            return isinstance(value, list)
        case "deprecated":
            return isinstance(value, bool)
        case "min" | "max":
            return type(value) is int and value >= 0
        case "multipleOf":
            return type(value) in (int, float) and value > 0
    return type(value) in (int, float)

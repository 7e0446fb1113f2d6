"""Converts annotations to JSON Schema (draft 2020-12), by syntax alone.

The text determines builtins, containers, unions, literals, aliases, enumerations of the module itself, and the
descriptions and limits in `Annotated[…]` and `Field(…)`. Everything else raises `Unresolved`: the worker that imports
the module describes it (dataclasses, TypedDicts, NamedTuples, pydantic models, and all that other modules define).
Dates, paths and similar types are strings with a `format`; Decimal is a string or a number; bytes are base64. A
recursive alias becomes a local `$defs` entry.
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from agent_core.base import syntax
from agent_core.base.records import dataclass

from . import docstring, typenames
from .literals import enum_members, enumeration, literal_value, written_value
from .tree import Scope
from .typenames import Impossible, Schema, Unresolved

_TEXTS = frozenset({"description", "title", "examples", "default", "deprecated"})
_BUDGET = 1_000
_MODULE_BUDGET = 30_000
_DEEPEST = 40


class Converter:
    """A converter for the annotations of one module, which collects the definitions of recursive types.

    The type parts that it reads are limited, for each parameter and for the whole module.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.definitions: dict[str, Schema] = {}
        self._open: list[str] = []
        self._recursive: set[str] = set()
        self._left = _BUDGET
        self._left_of_module = _MODULE_BUDGET
        self._depth = 0

    def convert(self, node: ast.expr) -> Schema:
        """Return the schema of an annotation.

        Raises:
            Unresolved: only an import can determine it.
            Impossible: no JSON value can represent it.
        """
        if not self._depth:
            self._left = (
                _BUDGET  # per parameter, so that one that is too large does not affect the others
            )
        self._left -= 1
        self._left_of_module -= 1
        self._depth += 1
        try:
            if min(self._left, self._left_of_module) < 0 or self._depth > _DEEPEST:
                raise Unresolved("the type is too large to be read by syntax")
            return self._convert(node)
        finally:
            self._depth -= 1

    def _convert(self, node: ast.expr) -> Schema:
        match node:
            case ast.Constant(value=None):
                return {"type": "null"}
            case ast.Constant(value=str(text)):
                try:
                    quoted = syntax.parse(text.strip(), mode="eval").body
                except SyntaxError as error:
                    raise Unresolved(f"the annotation {text!r} is not Python") from error
                return self.convert(quoted)
            case ast.Name() | ast.Attribute():
                return self._convert_name(node)
            case ast.BinOp(op=ast.BitOr()):
                members: list[
                    ast.expr
                ] = []  # without recursion, because a chain may be longer than the stack
                first: ast.expr = node
                while isinstance(first, ast.BinOp) and isinstance(first.op, ast.BitOr):
                    members.append(first.right)
                    first = first.left
                return self.union([first, *reversed(members)])
            case ast.Subscript(value=base, slice=inner):
                kind = typenames.GENERIC.get(self.scope.origin(base), "")
                if kind == "impossible":
                    raise Impossible(f"`{ast.unparse(base)}[…]` cannot be written as JSON")
                if kind not in _SUBSCRIPTED:
                    raise Unresolved(f"`{ast.unparse(base)}[…]` is known only after an import")
                return _SUBSCRIPTED[kind](
                    self, inner.elts if isinstance(inner, ast.Tuple) else [inner]
                )
        raise Unresolved(f"`{ast.unparse(node)}` is not a type that syntax can read")

    def _convert_name(self, node: ast.expr) -> Schema:
        origin = self.scope.origin(node)
        simple = typenames.SIMPLE.get(origin)
        if simple is not None:
            return dict(simple)
        if origin in typenames.IMPOSSIBLE:
            raise Impossible(f"`{ast.unparse(node)}` cannot be written as JSON")
        name = origin[1:] if origin.startswith(".") else ""
        if name in self.scope.values:
            return self._convert_alias(name)
        own = self.scope.classes.get(name)
        members = enum_members(own, self.scope) if own else None
        if members is None:
            raise Unresolved(f"`{ast.unparse(node)}` is known only after an import")
        return enumeration(list(members.values()))

    def _convert_alias(self, name: str) -> Schema:
        """Return the schema of an alias; a recursive one becomes a definition."""
        reference = {"$ref": f"#/$defs/{name}"}
        if name in self.definitions:
            return reference
        if name in self._open:
            self._recursive.add(name)
            return reference
        self._open.append(name)
        try:
            schema = self.convert(self.scope.values[name])
        finally:
            self._open.pop()
        if name not in self._recursive:
            return schema
        self.definitions[name] = schema
        return reference

    def union(self, members: list[ast.expr]) -> Schema:
        """Return `anyOf` of the members, flat and without duplicates; a single member is returned alone.

        A member that no JSON value can represent is left out, unless all are.
        """
        schemas: list[Schema] = []
        reason = None
        for member in members:
            try:
                schema = self.convert(member)
            except Impossible as error:
                reason = error
                continue
            if not schema:
                return {}
            inner = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
            schemas += [option for option in inner if option not in schemas]
        if reason and all(schema == {"type": "null"} for schema in schemas):
            raise reason
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _read_literal(self, arguments: list[ast.expr]) -> Schema:
        return enumeration([value for node in arguments for value in self._literal_values(node)])

    def _literal_values(self, node: ast.expr) -> list[Any]:  # Any: scalars of JSON
        if (
            isinstance(node, ast.Subscript)
            or self.scope.origin(node).removeprefix(".") in self.scope.values
        ):
            nested = self.convert(node)
            return (
                list(nested["enum"])
                if "enum" in nested
                else [nested["const"]]
                if "const" in nested
                else []
            )
        if isinstance(node, ast.Attribute):
            owner = self.scope.classes.get(self.scope.origin(node.value).removeprefix("."))
            members = enum_members(owner, self.scope) if owner else None
            if members and node.attr in members:
                return [members[node.attr]]
        literal = literal_value(node)
        if literal is None or not isinstance(literal.value, str | int | bool | None):
            raise Unresolved(f"`{ast.unparse(node)}` is not a literal of JSON")
        return [literal.value]

    def _read_annotated(self, arguments: list[ast.expr]) -> Schema:
        """Return the schema of T in `Annotated[T, …]`, described and limited by texts, `Field(…)` and `Doc(…)`."""
        schema = self.convert(arguments[0])
        for extra in arguments[1:]:
            match extra:
                case ast.Constant(value=str(text)):
                    schema = {"description": text.strip(), **schema}
                case ast.Call():
                    schema = limit(schema, extra, self.scope)
        return schema

    def _read_array(self, arguments: list[ast.expr]) -> Schema:
        return {"type": "array", "items": self.convert(arguments[0])}

    def _read_tuple(self, arguments: list[ast.expr]) -> Schema:
        if (
            len(arguments) == 2
            and isinstance(arguments[1], ast.Constant)
            and arguments[1].value is ...
        ):
            return self._read_array(arguments)
        items = [self.convert(argument) for argument in arguments]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", **({"prefixItems": items} if items else {}), **size}

    def _read_mapping(self, arguments: list[ast.expr]) -> Schema:
        if len(arguments) != 2:
            raise Unresolved("a mapping has a type for its keys and one for its values")
        names = key_names(self.convert(arguments[0]))
        values = self.convert(arguments[1])
        return {
            "type": "object",
            **({"propertyNames": names} if names else {}),
            "additionalProperties": values,
        }


# The converter for the arguments of each kind of generic type.
_SUBSCRIPTED: dict[str, Callable[[Converter, list[ast.expr]], Schema]] = {
    "union": Converter.union,
    "optional": lambda converter, arguments: converter.union([*arguments, ast.Constant(None)]),
    "literal": Converter._read_literal,
    "annotated": Converter._read_annotated,
    "wrapper": lambda converter, arguments: converter.convert(arguments[0]),
    "array": Converter._read_array,
    "set": lambda converter, arguments: {
        **Converter._read_array(converter, arguments),
        "uniqueItems": True,
    },
    "tuple": Converter._read_tuple,
    "mapping": Converter._read_mapping,
}


def key_names(key: Schema) -> Schema:
    """Return the rule for the keys of a JSON object with this key type; `pattern` is for the model and the worker."""
    if "enum" in key or "const" in key:
        values = key.get("enum", [key.get("const")])
        return {"enum": [str(value) for value in values]}
    match key.get("type"):
        case "string" | ["string", "number"]:
            return {
                name: value
                for name, value in key.items()
                if name in ("minLength", "maxLength", "format")
            }
        case "integer":
            return {"pattern": "^-?[0-9]+$"}
        case "number" | "boolean" | "null":
            return {"description": f"a {key['type']}, as text"}
    if not key:
        return {}
    raise Unresolved("keys of this type cannot be names in a JSON object")


# The effects of `Field(…)` and defaults on a schema: descriptions, limits, default values.


@dataclass(frozen=True, slots=True)
class Default:
    """The default of a value, if any, and its form in a schema."""

    is_required: bool
    shown: Schema


def limit(schema: Schema, call: ast.Call, scope: Scope) -> Schema:
    """Return a schema with the constraints of a `Field(…)`; for an optional type, they apply to its value.

    Raises:
        Unresolved: a limit is computed, or pydantic makes the schema in another way.
    """
    extras = _constraints(call, scope, schema)
    declared = field_default(call, scope)
    if declared is not None:
        extras |= declared.shown
    elif scope.origin(call.func).startswith("pydantic."):
        raise Unresolved(f"`{ast.unparse(call)}` is known only after an import")
    values = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(values) != 1 or not isinstance(values[0].get("type"), str):
        return {**schema, **extras}
    limits = {
        name: value
        for name, value in _constraints(call, scope, values[0]).items()
        if name not in _TEXTS
    }
    options = [
        {**option, **limits} if option is values[0] else option for option in schema["anyOf"]
    ]
    return {**schema, "anyOf": options} | {
        name: value for name, value in extras.items() if name in _TEXTS
    }


def texts(annotation: ast.expr | None, default: ast.expr | None, scope: Scope) -> Schema:
    """Return the texts about a parameter whose type only an import can resolve, in the form of a schema."""
    schema: Schema = {}
    kind, *extras = [annotation, *_annotated_parts(annotation, scope)]
    own = scope.classes.get(kind.id) if isinstance(kind, ast.Name) else None
    summary = docstring.read(ast.get_docstring(own)).text.split("\n\n", 1)[0] if own else ""
    for extra in (*extras, default):
        match extra:
            case ast.Constant(value=str(text)) if extra is not default:
                schema = {"description": text.strip(), **schema}
            case ast.Call() if extra is not default or field_default(extra, scope):
                schema |= _constraints(extra, scope, schema, only=_TEXTS)
    return {"description": summary, **schema} if summary else schema


def default_of(value: ast.expr | None, scope: Scope) -> Default:
    """Return the default of an assignment or a parameter, including one in `Field(…)`."""
    if value is None:
        return Default(is_required=True, shown={})
    declared = field_default(value, scope)
    return declared or Default(is_required=False, shown=_default_schema(value, scope))


def field_default(node: ast.expr | None, scope: Scope) -> Default | None:
    """Return the default in a `Field(…)`; None for any other expression."""
    if not isinstance(node, ast.Call) or scope.origin(node.func) not in typenames.FIELD:
        return None
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    value = node.args[0] if node.args else named.get("default")
    if value is not None and not (isinstance(value, ast.Constant) and value.value is ...):
        return Default(is_required=False, shown=_default_schema(value, scope))
    return Default(is_required="default_factory" not in named, shown={})


def annotated_default(annotation: ast.expr | None, scope: Scope) -> Default | None:
    """Return the default in `Annotated[…, Field(default=…)]`; None if there is none."""
    parts = _annotated_parts(annotation, scope)
    defaults = [
        default
        for part in parts
        if (default := field_default(part, scope)) and not default.is_required
    ]
    return defaults[-1] if defaults else None


def _annotated_parts(annotation: ast.expr | None, scope: Scope) -> Sequence[ast.expr]:
    """Return all but the type in `Annotated[…]`; nothing for any other annotation."""
    if not isinstance(annotation, ast.Subscript) or not scope.origin(annotation.value).endswith(
        ".Annotated"
    ):
        return ()
    return annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else ()


def _default_schema(value: ast.expr, scope: Scope) -> Schema:
    """Return a default in the form of a schema, if the text determines it."""
    written = written_value(value, scope)
    return {"default": written.value} if written else {}


def _constraints(
    call: ast.Call,
    scope: Scope,
    schema: Schema,
    only: frozenset[str] = frozenset(typenames.CONSTRAINTS.values()),
) -> Schema:
    arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    names = typenames.CONSTRAINT_CLASSES.get(scope.origin(call.func), ())
    arguments |= dict(zip(names, call.args, strict=False))
    constraints: Schema = {}
    for name, node in arguments.items():
        keyword = typenames.CONSTRAINTS.get(name)
        if keyword not in only:
            continue
        value = written_value(node, scope)
        if value is None and keyword not in _TEXTS:
            raise Unresolved(f"`{name}={ast.unparse(node)}` is known only after an import")
        if value is None or not _fits(keyword, value.value):
            continue
        if keyword in ("min", "max"):
            keyword += {"array": "Items", "object": "Properties"}.get(
                str(schema.get("type")), "Length"
            )
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

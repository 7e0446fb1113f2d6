"""Converts annotations to JSON Schema (draft 2020-12), by syntax alone.

`Converter.convert` handles what the module's text determines and raises `Unresolved` for the rest, which a worker
resolves by importing. Dates, paths and similar types are strings with a `format`; Decimal is a string or a number;
bytes are base64. A recursive type becomes a local `$defs` entry.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.base import syntax

from . import classes, fields, typenames
from .literals import enum_members, enumeration, literal_value
from .typenames import Impossible, Schema, Unresolved

if TYPE_CHECKING:
    from .tree import Scope

_BUDGET = 1_000
_MODULE_BUDGET = 30_000
_DEEPEST = 40


@dataclass(slots=True)
class TypeBudget:
    """The number of type parts that may still be read; the functions of a module share one."""

    remaining: int = _MODULE_BUDGET


class Converter:
    """A converter for the annotations of one function, which collects the definitions of its recursive types."""

    def __init__(self, scope: "Scope", budget: TypeBudget | None = None) -> None:
        self.scope = scope
        self._budget = budget or TypeBudget()
        self.definitions: dict[str, Schema] = {}
        self._names: dict[tuple[str, str], str] = {}  # names of definitions, by module and name
        self._open: list[str] = []
        self._recursive: set[str] = set()
        self._left = _BUDGET
        self._depth = 0

    def convert(self, node: ast.expr) -> Schema:
        """Return the schema of an annotation.

        Raises:
            Unresolved: only an import can determine it.
            Impossible: no JSON value can represent it.
        """
        if not self._depth:
            self._left = _BUDGET  # per parameter, so that one that is too large does not affect the others
        self._left -= 1
        self._budget.remaining -= 1
        self._depth += 1
        try:
            if min(self._left, self._budget.remaining) < 0 or self._depth > _DEEPEST:
                raise Unresolved("the type is too large to be read by syntax")
            return self._convert(node)
        finally:
            self._depth -= 1

    @contextmanager
    def within(self, scope: "Scope") -> Iterator[None]:
        """Resolve names in the module of this scope while the block runs."""
        outer, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outer

    def _convert(self, node: ast.expr) -> Schema:
        match node:
            case ast.Constant(value=None):
                return {"type": "null"}
            case ast.Constant(value=str(text)):
                return self.convert(_forward(text))
            case ast.Name() | ast.Attribute():
                return self._convert_name(node)
            case ast.BinOp(op=ast.BitOr()):
                return self.union(_union_members(node))
            case ast.Subscript(value=base, slice=inner):
                return self._subscript(base, inner.elts if isinstance(inner, ast.Tuple) else [inner])
            case ast.Call():
                return self._convert_limited(node)
        raise Unresolved(f"`{ast.unparse(node)}` is not a type that syntax can read")

    def _convert_name(self, node: ast.expr) -> Schema:
        scope, origin = self.scope.resolve(node)
        if origin.startswith("."):
            return self._convert_definition(scope, origin[1:])
        simple = typenames.SIMPLE.get(origin)
        if simple is not None:
            return dict(simple)
        if origin in typenames.IMPOSSIBLE:
            raise Impossible(f"`{ast.unparse(node)}` cannot be written as JSON")
        raise Unresolved(f"`{ast.unparse(node)}` is known only after an import")

    def _convert_definition(self, scope: "Scope", name: str) -> Schema:
        """Return the schema of a workspace class or alias; a recursive one becomes a definition."""
        taken = set(self._names.values())
        key = self._names.setdefault((scope.module, name), name if name not in taken else f"{name}_{len(taken)}")
        reference = {"$ref": f"#/$defs/{key}"}
        if key in self.definitions:
            return reference
        if key in self._open:
            self._recursive.add(key)
            return reference
        self._open.append(key)
        try:
            with self.within(scope):
                schema = self._defined_here(name)
        finally:
            self._open.pop()
        if key not in self._recursive:
            return schema
        self.definitions[key] = schema
        return reference

    def _defined_here(self, name: str) -> Schema:
        if name in self.scope.classes:
            return classes.schema_of(self.scope.classes[name], self)
        if name not in self.scope.values:
            raise Unresolved(f"`{name}` is known only after an import")
        value = self.scope.values[name]
        if isinstance(value, ast.Call):
            return self._convert_call(name, value)
        return self.convert(value)

    def _convert_call(self, name: str, call: ast.Call) -> Schema:
        """Return the schema of `NewType("Id", int)` or `TypeVar("T", bound=…)`; the latter is that of its bound."""
        maker = self.scope.origin(call.func).rpartition(".")[2]
        if maker == "NewType" and len(call.args) == 2:
            return self.convert(call.args[1])
        if maker == "TypeVar":
            bound = next((keyword.value for keyword in call.keywords if keyword.arg == "bound"), None)
            constraints = call.args[1:]
            return self.convert(bound) if bound else self.union(constraints) if constraints else {}
        node = classes.of_call(name, call, self.scope)
        if node is not None:
            return classes.schema_of(node, self)
        raise Unresolved(f"`{name}` is made by a call, so it is known only after an import")

    def _convert_limited(self, call: ast.Call) -> Schema:
        """Return the schema of `conint(ge=1)`, `conlist(int, max_length=3)` and similar calls."""
        schema = typenames.LIMITED_TYPES.get(self.scope.origin(call.func))
        named = {keyword.arg or "": keyword.value for keyword in call.keywords}
        items = call.args[0] if call.args else named.pop("item_type", None)
        is_known = all(name in typenames.CONSTRAINTS or name in typenames.FIELD_SETTINGS for name in named)
        if schema is None or not is_known or (schema["type"] == "array") != (items is not None):
            raise Unresolved(f"`{ast.unparse(call)}` is known only after an import")
        inner = {"items": self.convert(items)} if items is not None else {}
        return fields.limit({**schema, **inner}, call, self.scope)

    def _subscript(self, base: ast.expr, arguments: list[ast.expr]) -> Schema:
        kind = typenames.GENERIC.get(self.scope.origin(base), "")
        if kind == "impossible":
            raise Impossible(f"`{ast.unparse(base)}[…]` cannot be written as JSON")
        if kind not in _SUBSCRIPTED:
            raise Unresolved(f"`{ast.unparse(base)}[…]` is known only after an import")
        return _SUBSCRIPTED[kind](self, arguments)

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
        values: list[Any] = []  # Any: scalars of JSON
        for node in arguments:
            values += self._literal_values(node)
        return enumeration(values)

    def _literal_values(self, node: ast.expr) -> list[Any]:
        if isinstance(node, ast.Subscript) or self._is_alias(node):
            nested = self.convert(node)
            return list(nested["enum"]) if "enum" in nested else [nested["const"]] if "const" in nested else []
        if isinstance(node, ast.Attribute):
            scope, origin = self.scope.resolve(node.value)
            owner = scope.classes.get(origin.removeprefix("."))
            members = enum_members(owner, scope) if owner else None
            if members and node.attr in members:
                return [members[node.attr]]
        literal = literal_value(node)
        if literal is None or not isinstance(literal.value, str | int | bool | None):
            raise Unresolved(f"`{ast.unparse(node)}` is not a literal of JSON")
        return [literal.value]

    def _is_alias(self, node: ast.expr) -> bool:
        scope, origin = self.scope.resolve(node)
        return origin.removeprefix(".") in scope.values

    def _read_optional(self, arguments: list[ast.expr]) -> Schema:
        return self.union([*arguments, ast.Constant(None)])

    def _read_array(self, arguments: list[ast.expr]) -> Schema:
        return {"type": "array", "items": self.convert(arguments[0])}

    def _read_set(self, arguments: list[ast.expr]) -> Schema:
        return {**self._read_array(arguments), "uniqueItems": True}

    def _read_wrapped(self, arguments: list[ast.expr]) -> Schema:
        return self.convert(arguments[0])

    def _read_annotated(self, arguments: list[ast.expr]) -> Schema:
        return fields.convert_annotated(arguments, self)

    def _read_tuple(self, arguments: list[ast.expr]) -> Schema:
        if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is ...:
            return {"type": "array", "items": self.convert(arguments[0])}
        items = [self.convert(argument) for argument in arguments]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", **({"prefixItems": items} if items else {}), **size}

    def _read_mapping(self, arguments: list[ast.expr]) -> Schema:
        if len(arguments) != 2:
            raise Unresolved("a mapping has a type for its keys and one for its values")
        names = key_names(self.convert(arguments[0]))
        values = self.convert(arguments[1])
        return {"type": "object", **({"propertyNames": names} if names else {}), "additionalProperties": values}


# The converter for the arguments of each kind of generic type.
_SUBSCRIPTED: dict[str, Callable[[Converter, list[ast.expr]], Schema]] = {
    "union": Converter.union,
    "optional": Converter._read_optional,
    "literal": Converter._read_literal,
    "annotated": Converter._read_annotated,
    "wrapper": Converter._read_wrapped,
    "array": Converter._read_array,
    "set": Converter._read_set,
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
            return {name: value for name, value in key.items() if name in ("minLength", "maxLength", "format")}
        case "integer":
            return {"pattern": "^-?[0-9]+$"}
        case "number" | "boolean" | "null":
            return {"description": f"a {key['type']}, as text"}
    if not key:
        return {}
    raise Unresolved("keys of this type cannot be names in a JSON object")


def _forward(text: str) -> ast.expr:
    try:
        return syntax.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unresolved(f"the annotation {text!r} is not Python") from error


def _union_members(node: ast.expr) -> list[ast.expr]:
    """Return the members of `A | B | C`, without recursion, because a chain may be longer than the stack."""
    members: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members.append(node.right)
        node = node.left
    return [node, *reversed(members)]

"""Converts annotations to JSON Schema (draft 2020-12), by syntax alone.

`Converter.convert` handles what the module's text determines and raises `Unresolved` for the rest, which a worker
resolves by importing. Dates, paths and similar types are strings with a `format`; Decimal is a string or a number;
bytes are base64. A recursive type becomes a local `$defs` entry. Classes of the workspace are enumerations,
dataclasses, TypedDicts, NamedTuples and pydantic models.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent_core.base import syntax

from . import docstring, typenames
from .literals import enum_members, enumeration, json_literal, literal_value, written_value
from .source_lines import callee
from .tree import Scope
from .typenames import Impossible, Schema, Unresolved

_ANY = ast.Name("object")
_TEXTS = frozenset({"description", "title", "examples", "default", "deprecated"})
_BUDGET = 1_000
_MODULE_BUDGET = 30_000
_DEEPEST = 40


@dataclass(slots=True)
class TypeBudget:
    """The number of type parts that may still be read; the functions of a module share one."""

    remaining: int = _MODULE_BUDGET


class Converter:
    """A converter for the annotations of one function, which collects the definitions of its recursive types."""

    def __init__(self, scope: Scope, budget: TypeBudget | None = None) -> None:
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
    def within(self, scope: Scope) -> Iterator[None]:
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
                try:
                    quoted = syntax.parse(text.strip(), mode="eval").body
                except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                    raise Unresolved(f"the annotation {text!r} is not Python") from error
                return self.convert(quoted)
            case ast.Name() | ast.Attribute():
                return self._convert_name(node)
            case ast.BinOp(op=ast.BitOr()):
                members: list[ast.expr] = []  # without recursion, because a chain may be longer than the stack
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
                return _SUBSCRIPTED[kind](self, inner.elts if isinstance(inner, ast.Tuple) else [inner])
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

    def _convert_definition(self, scope: Scope, name: str) -> Schema:
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
                value = self.scope.values.get(name)
                if name in self.scope.classes:
                    schema = schema_of(self.scope.classes[name], self)
                elif value is None:
                    raise Unresolved(f"`{name}` is known only after an import")
                elif isinstance(value, ast.Call):
                    schema = self._convert_call(name, value)
                else:
                    schema = self.convert(value)
        finally:
            self._open.pop()
        if key not in self._recursive:
            return schema
        self.definitions[key] = schema
        return reference

    def _convert_call(self, name: str, call: ast.Call) -> Schema:
        """Return the schema of `NewType("Id", int)` or `TypeVar("T", bound=…)`; the latter is that of its bound."""
        maker = self.scope.origin(call.func).rpartition(".")[2]
        if maker == "NewType" and len(call.args) == 2:
            return self.convert(call.args[1])
        if maker == "TypeVar":
            bound = next((keyword.value for keyword in call.keywords if keyword.arg == "bound"), None)
            constraints = call.args[1:]
            return self.convert(bound) if bound else self.union(constraints) if constraints else {}
        node = of_call(name, call, self.scope)
        if node is not None:
            return schema_of(node, self)
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
        return limit({**schema, **inner}, call, self.scope)

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
        scope, origin = self.scope.resolve(node)
        if isinstance(node, ast.Subscript) or origin.removeprefix(".") in scope.values:
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

    def _read_annotated(self, arguments: list[ast.expr]) -> Schema:
        """Return the schema of T in `Annotated[T, …]`, described and limited by texts, `Field(…)` and `Doc(…)`."""
        schema = self.convert(arguments[0])
        for extra in arguments[1:]:
            match extra:
                case ast.Constant(value=str(text)):
                    schema = {"description": text.strip(), **schema}
                case ast.Call():
                    if self.scope.origin(extra.func) in typenames.SCHEMA_MAKERS:
                        raise Unresolved("a schema that is written by hand is known only after an import")
                    schema = limit(schema, extra, self.scope)
        return schema

    def _read_array(self, arguments: list[ast.expr]) -> Schema:
        return {"type": "array", "items": self.convert(arguments[0])}

    def _read_tuple(self, arguments: list[ast.expr]) -> Schema:
        if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is ...:
            return self._read_array(arguments)
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
    "optional": lambda converter, arguments: converter.union([*arguments, ast.Constant(None)]),
    "literal": Converter._read_literal,
    "annotated": Converter._read_annotated,
    "wrapper": lambda converter, arguments: converter.convert(arguments[0]),
    "array": Converter._read_array,
    "set": lambda converter, arguments: {**Converter._read_array(converter, arguments), "uniqueItems": True},
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


# Classes of the workspace.


@dataclass(frozen=True, slots=True)
class Default:
    """The default of a value, if any, and its form in a schema."""

    is_required: bool
    shown: Schema


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a class, required unless it has a default; `default` holds the default if it is a literal.

    `call` is the `Field(…)` of a model's field, which also limits and describes it.
    """

    annotation: ast.expr
    is_required: bool
    default: Schema
    call: ast.Call | None = None
    scope: Scope = field(default_factory=Scope)


def schema_of(node: ast.ClassDef, converter: Converter) -> Schema:
    """Return the schema of a class that is defined in the module of `converter.scope`.

    Raises:
        Unresolved: its fields or members are not written out.
    """
    members = enum_members(node, converter.scope)
    if members is not None:
        return enumeration(list(members.values()))
    if is_model(node, converter.scope):
        return _schema_of_model(node, converter)
    match node.bases:
        case [ast.Subscript(value=base, slice=root)] if converter.scope.origin(base) in typenames.ROOT_MODEL:
            summary = docstring.read(ast.get_docstring(node)).text.split("\n\n", 1)[0]
            return {**converter.convert(root), **({"description": summary} if summary else {})}
    fields = _fields(node, converter.scope, seen=())
    return _object(node, fields, converter) | {"additionalProperties": False}


def of_call(name: str, call: ast.Call, scope: Scope) -> ast.ClassDef | None:
    """Return `TypedDict("T", {"x": int})`, `NamedTuple("T", [("x", int)])` or `namedtuple("T", "x")` as a class."""
    origin, parts = scope.origin(call.func), call.args[1:]
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    match parts:
        case [ast.Dict(keys=keys, values=values)] if origin in typenames.TYPED_DICT:
            pairs = [*zip(keys, values, strict=True)]
        case [ast.List(elts=items) | ast.Tuple(elts=items)] if origin in typenames.NAMED_TUPLE:
            pairs = [
                (item.elts[0], item.elts[1]) if isinstance(item, ast.Tuple) and len(item.elts) == 2 else (item, _ANY)
                for item in items
            ]
        case [ast.Constant(value=str(names))] if origin in typenames.NAMED_TUPLE:
            pairs = [(ast.Constant(each), _ANY) for each in names.replace(",", " ").split()]
    if not pairs or not all(_text(key) for key, _ in pairs) or any(word.arg != "total" for word in call.keywords):
        return None
    body: list[ast.stmt] = [
        ast.AnnAssign(target=ast.Name(_text(key)), annotation=annotation, value=None, simple=1)
        for key, annotation in pairs
    ]
    return ast.ClassDef(name=name, bases=[call.func], keywords=call.keywords, body=body, decorator_list=[])


def _object(node: ast.ClassDef, fields: dict[str, Field], converter: Converter) -> Schema:
    described = docstring.read(ast.get_docstring(node))
    properties: Schema = {}
    for name, each in fields.items():
        with converter.within(each.scope):
            schema = converter.convert(each.annotation)
        if each.call is not None:
            schema = limit(schema, each.call, each.scope)
        words = described.parameters.get(name, "")
        if words and "description" not in schema:
            schema = {**schema, "description": words}
        properties[name] = {**schema, **each.default}
    summary = described.text.split("\n\n", 1)[0]
    return {
        "type": "object",
        **({"description": summary} if summary else {}),
        "properties": properties,
        "required": [name for name, field in fields.items() if field.is_required],
    }


def is_model(node: ast.ClassDef, scope: Scope, seen: tuple[ast.ClassDef, ...] = ()) -> bool:
    """Check whether a class is a pydantic model, directly or through workspace classes."""
    for base in node.bases:
        home, origin = scope.resolve(base)
        inherited = _class(home, origin)
        if origin in typenames.MODEL:
            return True
        if inherited and inherited not in (*seen, node) and is_model(inherited, home, (*seen, node)):
            return True
    return False


def _class(scope: Scope, origin: str) -> ast.ClassDef | None:
    return scope.classes.get(origin[1:]) if origin.startswith(".") else None


def _schema_of_model(node: ast.ClassDef, converter: Converter) -> Schema:
    fields: dict[str, Field] = {}
    config: dict[str, Any] = {}
    for model, scope in _lineage(node, converter.scope, ()):
        config |= _config(model, scope)
        fields |= dict(_model_fields(model, scope))
    generate: Callable[[str], str] = str
    if config.get("alias_generator") in typenames.ALIAS_GENERATORS:
        from pydantic import alias_generators  # noqa: PLC0415 - importing it takes as long as reading fifty functions

        generate = getattr(alias_generators, str(config["alias_generator"]).rpartition(".")[2])
    by_key: dict[str, Field] = {}  # by the key in JSON
    for name, each in fields.items():
        given = {keyword.arg: keyword.value for keyword in each.call.keywords} if each.call else {}
        written = [given[kind] for kind in ("validation_alias", "alias") if kind in given]
        alias = next((key for value in written if (key := _text(value) or _first_choice(value))), "")
        by_key[alias or generate(name)] = each
    extra = {"forbid": {"additionalProperties": False}, "allow": {"additionalProperties": True}}
    title = {"title": config["title"]} if isinstance(config.get("title"), str) else {}
    return _object(node, by_key, converter) | extra.get(str(config.get("extra")), {}) | title


def _lineage(node: ast.ClassDef, scope: Scope, seen: tuple[ast.ClassDef, ...]) -> Iterator[tuple[ast.ClassDef, Scope]]:
    """Yield a model's workspace base models and the model itself, each with its module's scope."""
    if len(node.bases) != 1 or node.decorator_list or node in seen:
        raise Unresolved(f"`{node.name}` has bases or decorators that only an import can follow")
    if any(isinstance(part, ast.FunctionDef) and part.name.startswith("__get_pydantic") for part in node.body):
        raise Unresolved(f"`{node.name}` makes its schema by code")
    home, base = scope.resolve(node.bases[0])
    if base not in typenames.MODEL:
        inherited = _class(home, base)
        if inherited is None:
            raise Unresolved(f"`{node.name}` inherits from what is known only after an import")
        yield from _lineage(inherited, home, (*seen, node))
    yield node, scope


def _config(node: ast.ClassDef, scope: Scope) -> dict[str, Any]:
    """Return the settings of a model, from `model_config` and its class arguments."""
    named = [*node.keywords]
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="model_config")], value=ast.Call(keywords=given, args=[])):
                named += given
            case ast.Assign(targets=[ast.Name(id="model_config")], value=ast.Dict(keys=keys, values=values)):
                named += [ast.keyword(_text(key), value) for key, value in zip(keys, values, strict=True)]
            case ast.Assign(targets=[ast.Name(id="model_config")]) | ast.ClassDef(name="Config"):
                raise Unresolved(f"the settings of `{node.name}` are not written out")
    config: dict[str, Any] = {}
    for keyword in named:
        origin = scope.origin(keyword.value)
        if keyword.arg == "alias_generator" and origin in typenames.ALIAS_GENERATORS:
            config[keyword.arg] = origin
            continue
        literal = json_literal(keyword.value)
        if keyword.arg not in typenames.MODEL_SETTINGS or literal is None:
            raise Unresolved(f"a setting of `{node.name}` is known only after an import")
        config[keyword.arg] = literal.value
    return config


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _model_fields(node: ast.ClassDef, scope: Scope) -> Iterator[tuple[str, Field]]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                if name.startswith("_") or name == "model_config" or _wrapper(annotation, scope) == "ClassVar":
                    continue
                parts = [value] if value is not None else []
                if _wrapper(annotation, scope) == "Annotated" and isinstance(annotation, ast.Subscript):
                    parts += annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
                calls = [
                    part for part in parts if isinstance(part, ast.Call) and scope.origin(part.func) in typenames.FIELD
                ]
                default = default_of(value, scope)
                if default.is_required:
                    default = annotated_default(annotation, scope) or default
                _check(name, value, calls, default)
                call = value if isinstance(value, ast.Call) and value in calls else None
                yield (
                    name,
                    Field(annotation, default.is_required, default.shown, call or next(iter(calls), None), scope),
                )


def _check(name: str, value: ast.expr | None, calls: list[ast.Call], default: Default) -> None:
    """Raise Unresolved if syntax does not determine the schema of a model's field."""
    for keyword in (keyword for call in calls for keyword in call.keywords):
        if keyword.arg in typenames.CONSTRAINTS or keyword.arg in typenames.ALIASES:
            if json_literal(keyword.value) is None and not _first_choice(keyword.value):
                raise Unresolved(f"what limits the field `{name}` is computed")
        elif keyword.arg not in typenames.FIELD_SETTINGS:
            raise Unresolved(f"the field `{name}` has settings that only an import can tell")
    factory = any(keyword.arg == "default_factory" for call in calls for keyword in call.keywords)
    if not default.is_required and not default.shown and not factory:
        raise Unresolved(f"the default of the field `{name}` is computed")


def _first_choice(node: ast.expr) -> str:
    """Return the first of `AliasChoices("a", "b")`, which pydantic uses in schemas; "" for anything else."""
    match node:
        case ast.Call(func=ast.Name(id="AliasChoices") | ast.Attribute(attr="AliasChoices"), args=[first, *_]):
            return _text(first)
    return ""


def _fields(node: ast.ClassDef, scope: Scope, seen: tuple[ast.ClassDef, ...]) -> dict[str, Field]:
    """Return the fields of a class, starting with those of its workspace base classes."""
    fields: dict[str, Field] = {}
    is_known = False
    for base in node.bases:
        home, origin = scope.resolve(base)
        inherited = _class(home, origin)
        is_known |= origin in typenames.TYPED_DICT or origin in typenames.NAMED_TUPLE
        if inherited and inherited not in (*seen, node):
            fields |= _fields(inherited, home, (*seen, node))
            is_known = True
        elif origin not in typenames.TYPED_DICT | typenames.NAMED_TUPLE:
            raise Unresolved(f"`{node.name}` inherits from what is known only after an import")
    is_known |= any(scope.origin(callee(mark)) in typenames.DATACLASS for mark in node.decorator_list)
    if not is_known or any(keyword.arg == "metaclass" for keyword in node.keywords):
        raise Unresolved(f"`{node.name}` is a class of another kind")
    is_total = not any(_is_false(keyword, "total") for keyword in node.keywords)  # of a TypedDict or its subclass
    return {**fields, **dict(_own_fields(node, scope, is_total))}


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
                declared = field_default(value, scope)
                default = declared or default_of(value, scope)
                if declared is None and isinstance(value, ast.Call):  # `field(default=…)` of a dataclass
                    given = [keyword for keyword in value.keywords if keyword.arg in ("default", "default_factory")]
                    written = next((keyword.value for keyword in given if keyword.arg == "default"), None)
                    default = Default(not (given or value.args), default_of(written, scope).shown)
                is_required = kind == "Required" or (is_total and kind != "NotRequired" and default.is_required)
                call = value if declared and isinstance(value, ast.Call) else None
                yield name, Field(annotation, is_required, default.shown, call, scope)


def _wrapper(annotation: ast.expr, scope: Scope) -> str:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return scope.origin(base).rpartition(".")[2]


# The effects of `Field(…)` and defaults on a schema: descriptions, limits, default values.


def limit(schema: Schema, call: ast.Call, scope: Scope) -> Schema:
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
    if not isinstance(annotation, ast.Subscript) or not scope.origin(annotation.value).endswith(".Annotated"):
        return None
    parts = annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
    defaults = [default for part in parts if (default := field_default(part, scope)) and not default.is_required]
    return defaults[-1] if defaults else None


def _default_schema(value: ast.expr, scope: Scope) -> Schema:
    """Return a default in the form of a schema, if the text determines it."""
    written = written_value(value, scope)
    return {"default": written.value} if written else {}


def _constraints(call: ast.Call, scope: Scope, schema: Schema) -> Schema:
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

"""JSON Schema of classes in the workspace: Enum, dataclass, TypedDict, NamedTuple and pydantic models."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import docstring, typenames
from .fields import Default, Types, annotated_default, default_of, field_default, limit
from .literals import enum_members, enumeration, json_literal
from .tree import Scope
from .typenames import Schema, Unresolved

_ANY = ast.Name("object")


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


def schema_of(node: ast.ClassDef, types: Types) -> Schema:
    """Return the schema of a class that is defined in the module of `types.scope`.

    Raises:
        Unresolved: its fields or members are not written out.
    """
    members = enum_members(node, types.scope)
    if members is not None:
        return enumeration(list(members.values()))
    if is_model(node, types.scope):
        return _schema_of_model(node, types)
    root = _root(node, types.scope)
    if root is not None:
        summary = docstring.read(ast.get_docstring(node)).text.split("\n\n", 1)[0]
        return {**types.convert(root), **({"description": summary} if summary else {})}
    fields = _fields(node, types.scope, seen=())
    return _object(node, fields, types) | {"additionalProperties": False}


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


def _root(node: ast.ClassDef, scope: Scope) -> ast.expr | None:
    """Return the type that a pydantic `RootModel` wraps; None for any other class."""
    match node.bases:
        case [ast.Subscript(value=base, slice=root)] if scope.origin(base) in typenames.ROOT_MODEL:
            return root
    return None


def _object(node: ast.ClassDef, fields: dict[str, Field], types: Types) -> Schema:
    described = docstring.read(ast.get_docstring(node))
    properties = {name: _property(field, described.parameters.get(name, ""), types) for name, field in fields.items()}
    summary = described.text.split("\n\n", 1)[0]
    return {
        "type": "object",
        **({"description": summary} if summary else {}),
        "properties": properties,
        "required": [name for name, field in fields.items() if field.is_required],
    }


def _property(field: Field, description: str, types: Types) -> Schema:
    with types.within(field.scope):
        schema = types.convert(field.annotation)
    if field.call is not None:
        schema = limit(schema, field.call, field.scope)
    if description and "description" not in schema:
        schema = {**schema, "description": description}
    return {**schema, **field.default}


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


def _schema_of_model(node: ast.ClassDef, types: Types) -> Schema:
    fields: dict[str, Field] = {}
    config: dict[str, Any] = {}
    for model, scope in _lineage(node, types.scope, ()):
        config |= _config(model, scope)
        fields |= dict(_model_fields(model, scope))
    generate = _alias_generator(config.get("alias_generator"))
    fields = {_alias(field) or generate(name): field for name, field in fields.items()}
    extra = {"forbid": {"additionalProperties": False}, "allow": {"additionalProperties": True}}
    title = {"title": config["title"]} if isinstance(config.get("title"), str) else {}
    return _object(node, fields, types) | extra.get(str(config.get("extra")), {}) | title


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
                calls = _field_calls(annotation, value, scope)
                default = default_of(value, scope)
                if default.is_required:
                    default = annotated_default(annotation, scope) or default
                _check(name, value, calls, default)
                call = value if isinstance(value, ast.Call) and value in calls else None
                yield (
                    name,
                    Field(annotation, default.is_required, default.shown, call or next(iter(calls), None), scope),
                )


def _field_calls(annotation: ast.expr, value: ast.expr | None, scope: Scope) -> list[ast.Call]:
    parts = [value] if value is not None else []
    if _wrapper(annotation, scope) == "Annotated" and isinstance(annotation, ast.Subscript):
        parts += annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
    return [part for part in parts if isinstance(part, ast.Call) and scope.origin(part.func) in typenames.FIELD]


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


def _alias_generator(origin: object) -> Callable[[str], str]:
    """Return the pydantic alias generator with this name, or `str` if there is none."""
    if origin not in typenames.ALIAS_GENERATORS:
        return str
    from pydantic import alias_generators  # noqa: PLC0415 - importing it takes as long as reading fifty functions

    generator: Callable[[str], str] = getattr(alias_generators, str(origin).rpartition(".")[2])
    return generator


def _alias(field: Field) -> str:
    """Return the key of a field in JSON if it differs from its name, or an empty text."""
    named = {keyword.arg: keyword.value for keyword in field.call.keywords} if field.call else {}
    written = [named[name] for name in ("validation_alias", "alias") if name in named]
    return next((key for value in written if (key := _text(value) or _first_choice(value))), "")


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
    is_known |= any(_is_dataclass(decorator, scope) for decorator in node.decorator_list)
    if not is_known or any(keyword.arg == "metaclass" for keyword in node.keywords):
        raise Unresolved(f"`{node.name}` is a class of another kind")
    is_total = not any(_is_false(keyword, "total") for keyword in node.keywords)  # of a TypedDict or its subclass
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
                declared = field_default(value, scope)
                default = declared or Default(not _has_default(value), _default(value, scope))
                is_required = kind == "Required" or (is_total and kind != "NotRequired" and default.is_required)
                call = value if declared and isinstance(value, ast.Call) else None
                yield name, Field(annotation, is_required, default.shown, call, scope)


def _wrapper(annotation: ast.expr, scope: Scope) -> str:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return scope.origin(base).rpartition(".")[2]


def _has_default(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return any(keyword.arg in ("default", "default_factory") for keyword in value.keywords) or bool(value.args)
    return value is not None


def _default(value: ast.expr | None, scope: Scope) -> Schema:
    if isinstance(value, ast.Call):
        value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    return default_of(value, scope).shown

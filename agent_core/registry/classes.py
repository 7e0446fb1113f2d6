"""JSON Schema of the classes that a workspace defines: Enum, dataclass, TypedDict, NamedTuple and pydantic's models."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import docstring, typenames
from .literals import Default, Types, annotated_default, default_of, enumeration, json_literal, limited
from .tree import Scope
from .typenames import Schema, Unresolved


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a class, required unless it has a default; `default` holds the default if it is a literal.

    `call`: the `Field(…)` of a model, which also limits and describes it.
    """

    annotation: ast.expr
    is_required: bool
    default: Schema
    call: ast.Call | None = None
    scope: Scope = field(default_factory=Scope)


def schema_of(node: ast.ClassDef, types: Types) -> Schema:
    """Return the schema of a class that the module of `types.scope` defines.

    Raises:
        Unresolved: it is no class with fields or members that are written out.
    """
    members = enum_members(node, types.scope)
    if members is not None:
        return enumeration(list(members.values()))
    if is_model(node, types.scope):
        return _schema_of_model(node, types)
    fields = _fields(node, types.scope, seen=())
    return _object(node, fields, types) | {"additionalProperties": False}


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
        schema = limited(schema, field.call, field.scope)
    if description and "description" not in schema:
        schema = {**schema, "description": description}
    return {**schema, **field.default}


def is_model(node: ast.ClassDef, scope: Scope, seen: tuple[ast.ClassDef, ...] = ()) -> bool:
    """Check whether a class is a pydantic model, or inherits from one of the workspace."""
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
    fields = {_alias(name, field): field for name, field in fields.items()}
    extra = {"forbid": {"additionalProperties": False}, "allow": {"additionalProperties": True}}
    title = {"title": config["title"]} if isinstance(config.get("title"), str) else {}
    return _object(node, fields, types) | extra.get(str(config.get("extra")), {}) | title


def _lineage(node: ast.ClassDef, scope: Scope, seen: tuple[ast.ClassDef, ...]) -> Iterator[tuple[ast.ClassDef, Scope]]:
    """Yield the models of the workspace that a model inherits from, and the model, each with its module's scope."""
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
    """Return the settings of a model, from `model_config` and the arguments of its class."""
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
    """Raise Unresolved for a field of a model whose schema syntax does not decide."""
    for keyword in (keyword for call in calls for keyword in call.keywords):
        if keyword.arg in typenames.CONSTRAINTS or keyword.arg in typenames.ALIASES:
            if json_literal(keyword.value) is None:
                raise Unresolved(f"what limits the field `{name}` is computed")
        elif keyword.arg not in typenames.FIELD_SETTINGS:
            raise Unresolved(f"the field `{name}` has settings that only an import can tell")
    factory = any(keyword.arg == "default_factory" for call in calls for keyword in call.keywords)
    if not default.is_required and not default.shown and not factory:
        raise Unresolved(f"the default of the field `{name}` is computed")


def _alias(name: str, field: Field) -> str:
    """Return the key of a field in JSON."""
    named = {keyword.arg: _text(keyword.value) for keyword in field.call.keywords} if field.call else {}
    return named.get("validation_alias") or named.get("alias") or name


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


def _fields(node: ast.ClassDef, scope: Scope, seen: tuple[ast.ClassDef, ...]) -> dict[str, Field]:
    """Return the fields of a class, those of its bases in the workspace first."""
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
    is_total = not any(_is_false(keyword, "total") for keyword in node.keywords)  # of a TypedDict, or a child of one
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
                yield name, Field(annotation, is_required, _default(value, scope), scope=scope)


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

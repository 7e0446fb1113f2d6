"""Values that are written out in a module's text, as JSON: defaults, enum members and constraints.

In addition to literals, these are constants of a module, products such as `60 * 60`, and dates, paths and similar
calls.
"""

import ast
import math
import operator
from collections.abc import Callable
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.records import dataclass

from . import typenames
from .typenames import Unresolved

if TYPE_CHECKING:
    from .tree import Scope

_LONGEST = 4_000
_MOST_KEYS = 1_000
_LARGEST, _LARGEST_POWER = 2**53, 64
_DEEPEST, _HOP = 10, 4  # depth of an expression, and the depth that following a name costs
_OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: lambda base, power: base**power if 0 <= power <= _LARGEST_POWER else math.inf,
}
_TEXTS_MADE = frozenset(
    {"pathlib.Path", "pathlib.PurePath", "decimal.Decimal", "uuid.UUID", "fractions.Fraction"}
)
_MOMENTS: Final[dict[str, Callable[..., Any]]] = {
    "datetime.date": date,
    "datetime.datetime": datetime,
    "datetime.time": time,
}
_COLLECTIONS = frozenset(f"builtins.{kind}" for kind in ("frozenset", "set", "tuple", "list"))
_JSON_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value, wrapped because None is a valid value."""

    value: Any  # any value of a Python literal


def literal_value(node: ast.expr) -> Literal | None:
    """Return the value of a literal expression; None for any other expression."""
    if isinstance(node, ast.Constant):
        return Literal(node.value)
    if has_many_keys(node):
        return None
    try:
        return Literal(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def has_many_keys(node: ast.expr) -> bool:
    """Check whether a literal has sets or mappings so large that hash collisions could take long.

    An author cannot choose the hash of a text, but can choose that of a number.
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
            case _:  # no other literal contains a collection
                continue
        if not all(
            isinstance(key, ast.Constant) and isinstance(key.value, str | bytes) for key in keys
        ):
            count += sum(1 for key in keys for _ in ast.walk(key))
    return count > _MOST_KEYS


def json_literal(node: ast.expr) -> Literal | None:
    """Return a literal's value as JSON (a tuple as a list); None if it is too long or has no JSON form."""
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


def written_value(node: ast.expr, scope: "Scope", depth: int = _DEEPEST) -> Literal | None:
    """Return the JSON value of an expression if the text of its module determines it, otherwise None."""
    literal = json_literal(node)
    if literal is not None or depth <= 0:
        return literal
    match node:
        case ast.Name() | ast.Attribute():
            return _named_value(node, scope, depth)
        case ast.BinOp(op=operation) if type(operation) in _OPERATORS:
            return _result(node, scope, depth)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            values = _values(parts, scope, depth)
            return None if values is None else Literal(values)
        case ast.Call():
            return _constructor_value(node, scope, depth)
    return None


def _named_value(node: ast.Name | ast.Attribute, scope: "Scope", depth: int) -> Literal | None:
    """Return the value of an enumeration member, or of a constant that the module assigns only once."""
    if isinstance(node, ast.Attribute):
        owner = scope.classes.get(scope.origin(node.value).removeprefix("."))
        try:
            members = enum_members(owner, scope) if owner else None
        except Unresolved:
            return None
        if members and node.attr in members:
            return Literal(members[node.attr])
    origin = scope.origin(node)
    name = origin.removeprefix(".")
    value = (
        scope.values.get(name) if origin.startswith(".") and name not in scope.reassigned else None
    )
    if value is None or not (
        depth == _DEEPEST or isinstance(value, ast.Constant | ast.UnaryOp | ast.BinOp)
    ):
        return None  # collections nested through names could grow without bound
    return written_value(value, scope, depth - _HOP)


def _result(node: ast.BinOp, scope: "Scope", depth: int) -> Literal | None:
    sides = [written_value(side, scope, depth - 1) for side in (node.left, node.right)]
    numbers = [
        side.value for side in sides if side is not None and type(side.value) in (int, float)
    ]
    if len(numbers) < len(sides) or any(abs(number) > _LARGEST for number in numbers):
        return None
    try:
        value = _OPERATORS[type(node.op)](*numbers)
    except (ZeroDivisionError, OverflowError):
        return None
    return Literal(value) if type(value) in (int, float) and abs(value) <= _LARGEST else None


def _values(parts: list[ast.expr], scope: "Scope", depth: int) -> list[Any] | None:
    """Return the values of all parts; None if one is unknown, or if there are too many."""
    if len(parts) > _MOST_KEYS:
        return None
    values = [written_value(part, scope, depth - 1) for part in parts]
    known = [value.value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _constructor_value(node: ast.Call, scope: "Scope", depth: int) -> Literal | None:
    """Return the JSON value of `Path("a")`, `date(2026, 1, 2)`, `frozenset({1})` and similar calls."""
    origin = scope.origin(node.func)
    values = None if node.keywords else _values(node.args, scope, depth)
    match values:
        case []:
            return Literal([]) if origin in _COLLECTIONS else None
        case [str() | int() as value] if origin in _TEXTS_MADE and not isinstance(value, bool):
            return Literal(str(value))
        case [list() as items] if origin in _COLLECTIONS:
            return Literal(items)
    if values is None or origin not in _MOMENTS or not all(type(value) is int for value in values):
        return None
    try:
        return Literal(_MOMENTS[origin](*values).isoformat())
    except (TypeError, ValueError, OverflowError):
        return None


def enumeration(values: list[Any]) -> dict[str, Any]:  # Any: scalars of JSON in, JSON Schema out
    """Return `const` or `enum` for scalars, with their common type, if any."""
    kinds = {_JSON_NAMES[type(value)] for value in values}
    kind = {"type": kinds.pop()} if len(kinds) == 1 else {}
    distinct = list({repr(value): value for value in values}.values())  # True is not 1 here
    return {**kind, "const": distinct[0]} if len(distinct) == 1 else {**kind, "enum": distinct}


def enum_members(
    node: ast.ClassDef, scope: "Scope"
) -> dict[str, Any] | None:  # Any: scalars of JSON
    """Return the members of an enumeration with their values; None for any other class.

    Raises:
        Unresolved: a value is computed, so only an import can determine it.
    """
    bases = {scope.origin(base) for base in node.bases}
    if not bases & typenames.ENUMS:
        return None
    members: dict[str, Any] = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if (
                other in members
            ):
                members[name] = members[other]
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not name.startswith("_"):
                members[name] = _member_value(name, value, list(members.values()), scope, bases)
    if not members:
        raise Unresolved(f"`{node.name}` has no members that are written out")
    return members


def _member_value(
    name: str, value: ast.expr, before: list[Any], scope: "Scope", bases: set[str]
) -> Any:
    if isinstance(value, ast.Call) and scope.origin(value.func) == "enum.auto":
        if bases & {"enum.StrEnum", "builtins.str"}:
            return name.lower() if "enum.StrEnum" in bases else _refuse_computed(name)
        numbers = [number for number in before if isinstance(number, int)]
        return max(numbers) + 1 if numbers else 1
    literal = json_literal(value)
    if literal is None or not isinstance(literal.value, str | int | float | bool | None):
        return _refuse_computed(name)
    return literal.value


def _refuse_computed(name: str) -> Any:
    raise Unresolved(f"the value of the member `{name}` is computed")

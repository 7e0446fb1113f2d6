"""Derives a hint from values and uses; None if they prove none."""

import ast
from collections.abc import Iterable

from ..tree import FunctionNode, nodes_of

_SCALARS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes", type(None): "None"}
_MEMBERS = 3  # of a union
_DEEPEST = 4
_LONGEST = 48  # characters; what is longer is no type but a table
_METHODS = {
    "str": frozenset(name for name in dir(str) if name[0] != "_")
    - {name for kind in (list, tuple, dict, set) for name in dir(kind)},
    "list": frozenset(["append", "extend", "insert", "reverse", "sort"]),
    "dict": frozenset(["items", "keys", "values", "setdefault", "popitem"]),
    "set": frozenset(["add", "difference", "intersection", "issubset", "issuperset", "union"]),
}


def hint_of(values: Iterable[object], depth: int = 0) -> str | None:
    """Return the narrowest hint that all of these values fit; sizes and single values do not become types."""
    groups: dict[type, list[object]] = {}
    for value in values:
        groups.setdefault(type(value), []).append(value)
    if not groups or depth > _DEEPEST:
        return None
    hints = [_of_kind(kind, group, depth) for kind, group in groups.items()]
    if None in hints or len(hints) > _MEMBERS:
        return None
    hint = " | ".join(sorted(filter(None, hints), key=lambda hint: hint == "None"))
    return hint if len(hint) <= _LONGEST else None


def _of_kind(kind: type, values: list[object], depth: int) -> str | None:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind is tuple:
        return _of_tuples([value for value in values if isinstance(value, tuple)], depth)
    if kind is dict:
        return _of_dicts([value for value in values if isinstance(value, dict)], depth)
    if kind not in (list, set, frozenset):
        return None
    items = [item for value in values if isinstance(value, list | set | frozenset) for item in value]
    inner = hint_of(items, depth + 1)
    return kind.__name__ if not items else f"{kind.__name__}[{inner}]" if inner else None


def _of_tuples(values: list[tuple[object, ...]], depth: int) -> str | None:
    alike = hint_of([item for value in values for item in value], depth + 1)
    sizes = {len(value) for value in values}
    if alike is None or " | " not in alike or len(sizes) > 1:
        return f"tuple[{alike}, ...]" if alike else "tuple" if sizes == {0} else None
    places = [hint_of(column, depth + 1) for column in zip(*values, strict=True)]
    return None if None in places else f"tuple[{', '.join(filter(None, places))}]"


def _of_dicts(values: list[dict[object, object]], depth: int) -> str | None:
    keys = hint_of([key for value in values for key in value], depth + 1)
    items = hint_of([item for value in values for item in value.values()], depth + 1)
    if not any(values):
        return "dict"
    if any(not isinstance(key, str | int | float | None) for value in values for key in value):
        return None  # no names of a JSON object
    return f"dict[{keys}, {items}]" if keys and items else None


def used_as(node: FunctionNode, name: str) -> str:
    """Return the one builtin type with the methods that a body calls on a parameter it never rebinds; empty if none."""
    kinds = set()
    for child in nodes_of(node):
        match child:
            case ast.Name(id=bound_name, ctx=ast.Store() | ast.Del()) if bound_name == name:
                return ""
            case ast.Attribute(value=ast.Name(id=bound_name), attr=method) if bound_name == name:
                kinds.add(next((kind for kind, methods in _METHODS.items() if method in methods), ""))
    kinds.discard("")
    return kinds.pop() if len(kinds) == 1 else ""

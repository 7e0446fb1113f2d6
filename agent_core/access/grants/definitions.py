"""Statements of a module that only bind names: defining them runs nothing of the workspace.

Whatever is not known here counts as running something.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from agent_core.registry.spans import bound_names, is_literal

_Decorated: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Calls that run nothing of the workspace, if their arguments are values.
_VALUES: Final = frozenset(
    {"re.compile", "frozenset", "set", "dict", "list", "tuple", "decimal.Decimal", "fractions.Fraction"}
    | {"datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "pathlib.Path"}
)
_DECORATORS: Final = frozenset(
    {"functools.cache", "functools.lru_cache", "contextlib.contextmanager", "dataclasses.dataclass"}
    | {"staticmethod", "classmethod", "property"}
)
_BASES: Final = frozenset(
    {"object", "typing.NamedTuple", "typing.TypedDict", "enum.Enum", "enum.IntEnum", "enum.StrEnum"}
    | {"Exception", "ValueError", "RuntimeError", "LookupError", "KeyError", "html.parser.HTMLParser"}
)
# Methods that run when an instance is made or used, and never because its class is defined or named.
_METHODS: Final = frozenset(
    {"__init__", "__post_init__", "__enter__", "__exit__", "__iter__", "__next__", "__len__", "__repr__", "__str__"}
    | {"__eq__", "__hash__", "__call__", "__contains__", "__getitem__"}
)
_HINTS: Final = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.BitOr)


def known_names(body: Iterable[ast.stmt]) -> Mapping[str, str]:
    """Return what the names that a module binds mean: for one that only an import of the standard library binds, what
    it is there; for any other, nothing.
    """
    statements = list(body)
    times = Counter(name for node in statements for name in bound_names(node))
    imported = {name: origin for node in statements for name, origin in _imported(node)}
    return {name: imported.get(name, "") if count == 1 else "" for name, count in times.items()}


def _imported(node: ast.stmt) -> Iterable[tuple[str, str]]:
    match node:
        case ast.Import(names=names) if _is_standard(node):
            return [(each.asname or each.name, each.name) for each in names if each.asname or "." not in each.name]
        case ast.ImportFrom(module=module, names=names) if _is_standard(node):
            return [(each.asname or each.name, f"{module}.{each.name}") for each in names]
        case _:
            return []


def names_bound(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement binds, if it does no more than that."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return frozenset({name})
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return frozenset(target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return frozenset({name})
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return frozenset(alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.Expr(value=ast.Constant()):
            return frozenset({"__doc__"})
        case _:
            return frozenset()


def is_inert(node: ast.stmt, known: Mapping[str, str]) -> bool:
    """Check whether a statement that binds names does no more than that."""
    match node:
        case ast.FunctionDef(args=args, returns=returns) | ast.AsyncFunctionDef(args=args, returns=returns):
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            hints = [*(argument.annotation for argument in every if argument is not None), returns]
            values = [*args.defaults, *args.kw_defaults]
            return _are_plain(hints, values, known) and _is_plainly_decorated(node, known)
        case ast.ClassDef():
            return _is_inert_class(node, known)
        case ast.Assign(value=value):
            return _is_value(value, known)
        case ast.AnnAssign(value=value, annotation=hint):
            return _are_plain([hint], [value], known)
        case ast.Import() | ast.ImportFrom():
            return _is_standard(node) and all(alias.name != "*" for alias in node.names)
        case _:
            return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_standard(node: ast.Import | ast.ImportFrom) -> bool:
    """Check whether an import is from the standard library alone; `__future__` changes what follows it."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    is_listed = all(name.partition(".")[0] in sys.stdlib_module_names for name in names)
    return is_listed and not getattr(node, "level", 0) and names != ["__future__"]


def _is_inert_class(node: ast.ClassDef, known: Mapping[str, str]) -> bool:
    """Check whether defining a class runs nothing of the workspace. An enumeration, say, calls its own methods."""
    bases = [_origin(base, known) for base in node.bases]
    names = {name for inner in node.body for name in bound_names(inner)}
    hooks = {name for name in names - {"__slots__"} if name.startswith("_") and name.endswith("_")}
    within = {**known, **dict.fromkeys(names, "")}
    return (
        not node.keywords
        and _BASES.issuperset(bases)
        and not (hooks if bases else hooks - _METHODS)
        and _is_plainly_decorated(node, known)
        and all(isinstance(inner, ast.Pass) or names_bound(inner) for inner in node.body)
        and all(is_inert(inner, within) for inner in node.body)
    )


def _is_plainly_decorated(node: _Decorated, known: Mapping[str, str]) -> bool:
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    values = [argument for call in calls for argument in (*call.args, *(word.value for word in call.keywords))]
    heads = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return _DECORATORS.issuperset(_origin(head, known) for head in heads) and all(map(is_literal, values))


def _are_plain(hints: Iterable[ast.expr | None], values: Iterable[ast.expr | None], known: Mapping[str, str]) -> bool:
    inner = [child for hint in hints if hint is not None for child in ast.walk(hint)]
    is_plain = all(isinstance(child, (*_HINTS, ast.expr_context)) for child in inner)
    return is_plain and all(value is None or _is_value(value, known) for value in values)


def _origin(node: ast.expr, known: Mapping[str, str]) -> str:
    """Return what a dotted name means: of the standard library, or built in if nothing here binds it; else ""."""
    match node:
        case ast.Name(id=name):
            return known.get(name, "" if "*" in known else name)
        case ast.Attribute(value=value, attr=attribute) if origin := _origin(value, known):
            return f"{origin}.{attribute}"
        case _:
            return ""


def _is_value(node: ast.expr, known: Mapping[str, str]) -> bool:
    """Check whether an expression runs nothing of the workspace: a literal, or calls that make values of literals."""
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            inner = [*arguments, *(word.value for word in keywords)]
            return _origin(function, known) in _VALUES and all(_is_value(each, known) for each in inner)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(_is_value(part, known) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_value(key, known) for key in keys) and _are_plain([], values, known)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_value(left, known) and _is_value(right, known)
        case ast.Attribute(value=ast.Name(id=name)):
            return known.get(name) == "re"
        case _:
            return is_literal(node)

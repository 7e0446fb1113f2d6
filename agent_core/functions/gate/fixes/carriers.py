"""Names that carry the values of a parameter: where an assignment, a loop or a method takes them.

Pure, and careful to one side: an expression carries what its parts carry, unless it certainly returns another value.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..tree import FunctionNode, nodes_of, parameters

Flow = tuple[ast.expr, ast.expr, bool]  # target, value, and whether the target gets a part of the value only
FILLING = frozenset(["append", "extend", "insert", "add", "update", "setdefault", "appendleft"])
_MAKING = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_ANSWERS = frozenset(["len", "bool", "any", "all", "isinstance", "index", "count"])


@dataclass(frozen=True, slots=True)
class Carriers:
    """The names that carry a value, and those of them that stand for a part of it, as in a loop."""

    names: frozenset[str]
    parts: frozenset[str]


def carries(value: ast.AST, names: Iterable[str]) -> bool:
    """Check whether what an expression returns may be, or hold, a value of these names."""
    if isinstance(value, ast.Name):
        return value.id in names
    return any(carries(part, names) for part in _giving(value))


def _giving(value: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of an expression that its value is made of."""
    match value:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return ()
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _ANSWERS:
            return ()
        case (
            ast.Subscript(value=inner) | ast.ListComp(elt=inner) | ast.SetComp(elt=inner) | ast.GeneratorExp(elt=inner)
        ):
            return (inner,)
        case ast.IfExp(body=one, orelse=other) | ast.DictComp(key=one, value=other):
            return (one, other)
        case _:
            return ast.iter_child_nodes(value)


def carriers_of(node: FunctionNode, name: str, *, by_key: bool) -> Carriers:
    """Return the carriers of a parameter; `by_key` says that a loop over it gets the keys, which are left out."""
    names, parts = {name}, set[str]()
    pairs = [pair for child in nodes_of(node) for pair in flows(child)]
    size = 0
    while size < len(names) + len(parts):
        size = len(names) + len(parts)
        for target, value, is_part in pairs:
            if carries(value, names) and not (by_key and is_part and _is_keys(value, name)):
                bound = bound_by(target)
                names |= bound
                parts |= bound if is_part or (carries(value, parts) and not isinstance(value, _MAKING)) else set()
    return Carriers(frozenset(names), frozenset(parts))


def _is_keys(value: ast.expr, name: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="keys")):
            return _is_keys(inner, name)
        case ast.Call(func=ast.Name(id="sorted" | "list" | "set"), args=[inner]):
            return _is_keys(inner, name)
        case _:
            return isinstance(value, ast.Name) and value.id == name


def bound_by(target: ast.expr) -> set[str]:
    """Return the names that a target binds, or whose object it changes."""
    match target:
        case ast.Name(id=name):
            return {name}
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return {name for part in parts for name in bound_by(part)}
        case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Attribute(value=inner):
            return bound_by(inner)
        case ast.Call(func=ast.Attribute(value=inner)):
            return bound_by(inner)
        case _:
            return set()


def flows(node: ast.AST) -> Iterator[Flow]:
    """Yield what one node of a tree hands to which target."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from (flow for target in targets for flow in _assigned(target, value))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _assigned(target, value)
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield target, value, False
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from _looped(target, value)
        case ast.Call():
            yield from _filled(node)
            yield from _ordered(node)


def _filled(call: ast.Call) -> Iterator[Flow]:
    if isinstance(call.func, ast.Attribute) and call.func.attr in FILLING:
        for argument in call.args:
            yield call.func.value, ast.List([argument], ast.Load()), False


def _ordered(call: ast.Call) -> Iterator[Flow]:
    values = [call.func.value] if isinstance(call.func, ast.Attribute) else call.args
    for argument in (argument for key in sort_keys(call) for argument in key.args.args):
        yield from ((ast.Name(argument.arg, ast.Store()), value, True) for value in values)


def sort_keys(call: ast.Call) -> list[ast.Lambda]:
    """Return the lambda that is the `key` of an order."""
    match call.func:
        case ast.Name(id="sorted" | "min" | "max") | ast.Attribute(attr="sort"):
            lambdas = [keyword.value for keyword in call.keywords if keyword.arg == "key"]
            return [lambda_ for lambda_ in lambdas if isinstance(lambda_, ast.Lambda)]
        case _:
            return []


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[Flow]:
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, given in zip(targets, values, strict=True):
                yield from _assigned(one, given)
        case ast.Tuple(), _:
            yield target, value, True
        case ast.Subscript(slice=index), _:
            yield target, ast.List([value, index], ast.Load()), False
        case _:
            yield target, value, False


def _looped(target: ast.expr, value: ast.expr) -> Iterator[Flow]:
    match target, value:
        case ast.Tuple(elts=[_, item]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            yield from _looped(item, inner)
        case ast.Tuple(elts=[key, item]), ast.Call(func=ast.Attribute(value=inner, attr="items")):
            yield item, value, True
            yield key, inner, True
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=values) if len(targets) == len(values):
            for one, given in zip(targets, values, strict=True):
                yield from _looped(one, given)
        case _:
            yield target, value, True


def local_names(node: FunctionNode) -> frozenset[str]:
    """Return the names that a function binds itself."""
    stored = {
        child.id for child in nodes_of(node) if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load)
    }
    return frozenset(stored | {parameter.arg for parameter in parameters(node)})


def is_filled(node: FunctionNode, name: str) -> bool:
    """Check whether a name is always a dictionary that starts out empty."""
    if name in {parameter.arg for parameter in parameters(node)}:
        return False
    stores = [child for child in nodes_of(node) if isinstance(child, ast.Name) and child.id == name]
    bindings = [
        child.value
        for child in nodes_of(node)
        if isinstance(child, ast.Assign | ast.AnnAssign)
        for target in (child.targets if isinstance(child, ast.Assign) else [child.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    stored = sum(not isinstance(child.ctx, ast.Load) for child in stores)
    return bool(bindings) and stored == len(bindings) and all(map(_is_empty, bindings))


def _is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.Call(func=ast.Name(id="dict" | "Counter" | "OrderedDict"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Name(id="defaultdict")):
            return True
        case _:
            return False

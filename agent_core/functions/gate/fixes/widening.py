"""Inferred hints as wide as the body allows: whole numbers in the examples do not mean that it refuses fractions.

`int` becomes `int | float`: under `float` alone, arguments would be made fractions, and give other results than the
examples. Contents that are only moved about lose their type.
"""

import ast
from collections.abc import Mapping

from agent_core.base import syntax

from ..returns import returned
from ..tree import literal, parameters
from .carriers import carries
from .demand import Demand, Demands
from .hints import default_of
from .view import View

_CONTAINERS = frozenset(["list", "dict", "tuple", "set", "frozenset"])
_CONVERTED = frozenset(["tuple", "set", "frozenset"])  # what arguments are made into, where the hint says so
_TEXTS = frozenset(["str", "bytes"])


def widen(view: View, hints: Mapping[str, str], shown: Mapping[str, str]) -> dict[str, str]:
    """Return the hints of parameters that had none, each as wide as the body allows.

    `shown` are the types that the examples of any parameter have, be they enough for a hint or not.
    """
    if not any(_may_widen(hint) for hint in hints.values()):
        return dict(hints)
    demands = Demands(view, {**shown, **_all_hints(view, hints)})
    return {name: _widened(view, demands, name, hint) for name, hint in hints.items()}


def _may_widen(hint: str) -> bool:
    return "int" in hint or "[" in hint


def _all_hints(view: View, hints: Mapping[str, str]) -> dict[str, str]:
    given = {one.arg: ast.unparse(one.annotation) for one in parameters(view.node) if one.annotation is not None}
    return {**given, **hints}


def _widened(view: View, demands: Demands, name: str, hint: str) -> str:
    if not _may_widen(hint) or _is_switch(view, name):
        return hint
    use = demands.of(name)
    tree = syntax.parse(hint, mode="eval").body
    if use.demand is Demand.NUMBER:
        tree = _with_fractions(tree)
    elif use.demand is Demand.MOVED:
        tree = _with_any_contents(tree, is_deep=use.is_deep)
    return ast.unparse(tree)


def _is_switch(view: View, name: str) -> bool:
    """Check whether the default of a parameter is True or False."""
    defaults = (default_of(view.node, one) for one in parameters(view.node) if one.arg == name)
    return any(default is not None and isinstance(literal(default)[1], bool) for default in defaults)


def _with_fractions(hint: ast.expr) -> ast.expr:
    """Return a hint with `int | float` for `int`, except in the keys of a dictionary."""
    match hint:
        case ast.Name(id="int"):
            return _union([hint, ast.Name("float")])
        case ast.BinOp():
            return _union([part for member in _members(hint) for part in _members(_with_fractions(member))])
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, item])):
            return ast.Subscript(hint.value, ast.Tuple([key, _with_fractions(item)]))
        case ast.Subscript(slice=ast.Tuple(elts=places)):
            return ast.Subscript(hint.value, ast.Tuple([_with_fractions(place) for place in places]))
        case ast.Subscript(slice=inner):
            return ast.Subscript(hint.value, _with_fractions(inner))
        case _:
            return hint


def _with_any_contents(hint: ast.expr, *, is_deep: bool) -> ast.expr:
    """Return a hint without the types of its contents, or, if these are taken apart, without those of theirs."""
    match hint:
        case ast.BinOp():
            return _union([_with_any_contents(member, is_deep=is_deep) for member in _members(hint)])
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str") as key, item])):
            inner = _opened(item, is_deep=is_deep)
            return ast.Subscript(hint.value, ast.Tuple([key, inner])) if inner else hint.value
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[item, ast.Constant() as dots])):
            inner = _opened(item, is_deep=is_deep)
            return ast.Subscript(hint.value, ast.Tuple([inner, dots])) if inner else hint.value
        case ast.Subscript(value=ast.Name(id="dict" | "tuple")):
            return _with_fractions(hint)  # its keys are made of texts, or each of its places has a meaning
        case ast.Subscript(slice=item):
            inner = _opened(item, is_deep=is_deep)
            return ast.Subscript(hint.value, inner) if inner else hint.value
        case _:
            return _with_fractions(hint)


def _opened(item: ast.expr, *, is_deep: bool) -> ast.expr | None:
    """Return the hint that the contents of a container keep; None if they may be anything."""
    names = {node.id for node in ast.walk(item) if isinstance(node, ast.Name)}
    if not is_deep and not names & _CONVERTED and "dict[int" not in ast.unparse(item):
        return None
    if names & _CONTAINERS:
        return _with_any_contents(item, is_deep=is_deep)
    return item if names & _TEXTS and is_deep else None


def _members(hint: ast.expr) -> list[ast.expr]:
    match hint:
        case ast.BinOp(left=left, right=right):
            return [*_members(left), *_members(right)]
        case _:
            return [hint]


def _union(members: list[ast.expr]) -> ast.expr:
    whole, *others = {ast.unparse(member): member for member in members}.values()
    for member in others:
        whole = ast.BinOp(whole, ast.BitOr(), member)
    return whole


def widen_result(view: View, hint: str, hints: Mapping[str, str]) -> str | None:
    """Return the hint of a result that stays true for all that the hints of the parameters take; None if none does."""
    known = _all_hints(view, hints)
    if not any("float" in one or _has_bare(one) for one in known.values()):
        return hint
    demands, is_moved, is_reckoned = Demands(view, known), False, False
    values = [one.value for one in returned(view.node.body) if one.value and not _is_text(one.value)]
    for name, one in known.items():
        use = demands.of(name)
        if use.demand is not Demand.OTHER and any(carries(value, use.names) for value in values):
            is_moved |= use.demand is Demand.MOVED and _has_bare(one)
            is_reckoned |= "float" in one or _has_bare(one)
    tree = syntax.parse(hint, mode="eval").body
    if is_moved:
        members = _members(tree)
        is_open = any(isinstance(one, ast.Name) and one.id not in _CONTAINERS for one in members)
        return None if is_open else ast.unparse(_union([_bare(member) for member in members]))
    if is_reckoned and "dict[int" in hint:
        return None
    return ast.unparse(_with_fractions(tree)) if is_reckoned else hint


def _has_bare(hint: str) -> bool:
    """Check whether a hint has a container whose contents may be anything."""
    tree = syntax.parse(hint, mode="eval")
    typed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in typed]
    return any(name.id in _CONTAINERS for name in names)


def _bare(hint: ast.expr) -> ast.expr:
    return hint.value if isinstance(hint, ast.Subscript) else hint


def _is_text(value: ast.expr) -> bool:
    """Check whether an answer is a text, whatever it is made of."""
    match value:
        case ast.JoinedStr() | ast.Call(func=ast.Name(id="str" | "repr") | ast.Attribute(attr="join")):
            return True
        case _:
            return False

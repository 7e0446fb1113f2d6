"""Hints that the examples prove: a parameter that is a `list[int]` in all of them, the type of all results.

A literal default counts as an example. One example alone needs the default or the body to agree.
"""

import ast

from ..returns import always_leaves, returned
from ..tree import body, bound_names, literal, nodes_of, parameters
from .hints import default_of, with_hints
from .kinds import hint_of, used_as
from .samples import Sample, samples
from .view import View

_ENOUGH = 2  # different calls
# Where these are at work, whole numbers in the examples do not mean whole numbers always.
_FRACTIONS = frozenset(
    ["float", "sqrt", "mean", "fmean", "stdev", "log", "exp", "sin", "cos", "Decimal", "Fraction", "pi"]
)
_SURE = frozenset(["int", "len", "bool", "str", "isinstance", "any", "all", "ord", "floor", "ceil", "isqrt"])


def infer_hints(view: View) -> str:
    """Return the text with the hints that its examples and defaults prove, where it has none."""
    node = view.node
    open_ = [parameter for parameter in parameters(node) if parameter.annotation is None]
    if not open_ and node.returns is not None:
        return view.text
    seen = samples(view)
    hints = {parameter.arg: hint for parameter in open_ if (hint := _of_parameter(view, parameter, seen))}
    shown = {sample.call: sample.results[0] for sample in seen if sample.results}
    result = _of_result(view, shown) if node.returns is None else None
    hidden = bound_names(view.tree) | view.known
    hints = {name: hint for name, hint in hints.items() if not _names(hint) & hidden}
    return with_hints(view.text, node, hints, result)


def hint_result(view: View, shown: dict[str, object]) -> str:
    """Return the text with the hint that the results of these calls prove, if it has none."""
    result = _of_result(view, shown) if view.node.returns is None else None
    return with_hints(view.text, view.node, {}, result) if result else view.text


def _names(hint: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(hint, mode="eval")) if isinstance(node, ast.Name)}


def _of_parameter(view: View, parameter: ast.arg, seen: list[Sample]) -> str | None:
    name, default = parameter.arg, default_of(view.node, parameter)
    has_default, value = literal(default) if default is not None else (False, None)
    shown = {sample.call: sample.arguments[name] for sample in seen if name in sample.arguments}
    values = [*shown.values(), *([value] if has_default else [])]
    used = used_as(view.node, name)
    hint = hint_of(values)
    if hint is None or hint == "None" or (used and not _is_of(hint, used)):
        return None
    is_confirmed = bool(used) or (has_default and value is not None)
    is_plain = isinstance(value, bool | int | float | str)
    enough = len(shown) >= _ENOUGH or (is_confirmed and (bool(shown) or is_plain))
    return hint if enough and hint != "None" else None


def _is_of(hint: str, kind: str) -> bool:
    """Check whether every member of a hint except None is of this type."""
    return all(part.partition("[")[0] in (kind, "None") for part in _members(hint))


def _members(hint: str) -> list[str]:
    """Return the members of a union at its top level."""
    members, depth = [""], 0
    for char in hint:
        depth += (char == "[") - (char == "]")
        if char == "|" and not depth:
            members.append("")
        else:
            members[-1] += char
    return [member.strip() for member in members]


def _of_result(view: View, shown: dict[str, object]) -> str | None:
    statements = body(view.node)
    answers = list(returned(statements))
    if (
        len(shown) < _ENOUGH
        or not answers
        or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes_of(view.node))
    ):
        return None
    spoken = [literal(arm) for answer in answers for arm in _arms(answer.value)]
    values = [*shown.values(), *(value for is_literal, value in spoken if is_literal)]
    hint = hint_of(values if always_leaves(statements) else [*values, None])
    if hint is None or hint == "None" or ("int" in _names(hint) and _may_be_fraction(view, answers)):
        return None
    return None if _names(hint) & (bound_names(view.tree) | view.known) else hint


def _arms(value: ast.expr | None) -> list[ast.expr | None]:
    """Return the values a returned expression may give: each arm of a condition, each side of `and` and `or`."""
    match value:
        case ast.IfExp(body=then, orelse=orelse):
            return [*_arms(then), *_arms(orelse)]
        case ast.BoolOp(values=values):
            return [arm for operand in values for arm in _arms(operand)]
        case _:
            return [value]


def _may_be_fraction(view: View, answers: list[ast.Return]) -> bool:
    """Check whether the body can return fractions although all examples have whole numbers."""
    if all(literal(answer.value)[0] or _is_sure(answer.value) for answer in answers):
        return False
    return any(_makes_fraction(node) for node in nodes_of(view.node))


def _makes_fraction(node: ast.AST) -> bool:
    match node:
        case (
            ast.BinOp(op=ast.Div() | ast.Pow()) | ast.AugAssign(op=ast.Div() | ast.Pow()) | ast.Constant(value=float())
        ):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _FRACTIONS
        case _:
            return False


def _is_sure(value: ast.expr | None) -> bool:
    match value:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _SURE
        case _:
            return False


def told(before: View, after: View) -> str:
    """Return the hints that the second text has and the first does not, in words."""
    old = {parameter.arg for parameter in parameters(before.node) if parameter.annotation is not None}
    new = [
        f"`{parameter.arg}: {ast.unparse(parameter.annotation)}`"
        for parameter in parameters(after.node)
        if parameter.annotation is not None and parameter.arg not in old
    ]
    if before.node.returns is None and after.node.returns is not None:
        new.append(f"`-> {ast.unparse(after.node.returns)}`")
    return f"inferred {', '.join(new)} from its examples and defaults"

"""Type hints that the examples prove, read from the literal arguments and results of their calls.

A parameter that is a `list[int]` in every example gets that hint, or a wider one if the body takes more. A literal
default counts as an example; a single example needs the default or the body to agree. None if they prove nothing.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_core.base import syntax
from agent_core.registry.examples import find as find_prompts

from ..returns import always_leaves, returned
from ..tree import FunctionNode, body, bound_names, literal, nodes_of, parameters, parse
from .hints import default_of, with_hints
from .view import View
from .widening import widen, widen_result

_MOST = 50  # examples that are looked at


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of the function; `results` holds its result, if that is a literal of a certain type."""

    call: str
    arguments: dict[str, object]
    results: tuple[object, ...] = ()


def samples(view: View) -> list[Sample]:
    """Return every call of the function in its examples, in the docstring and next to the code."""
    return [*_written(view), *_given_samples(view)][:_MOST]


def _written(view: View) -> Iterator[Sample]:
    try:
        prompts = list(find_prompts(view.words)) if ">>>" in view.words else []
    except ValueError:
        return
    for prompt in prompts:
        for node in _calls(view, prompt.source) if not prompt.raises else ():
            source = ast.unparse(node)
            is_alone = isinstance(_parsed(prompt.source), ast.Expr) and source == ast.unparse(
                syntax.parse(prompt.source)
            )
            yield Sample(source, _arguments(view, node), _results(prompt.want) if is_alone else ())


def _given_samples(view: View) -> Iterator[Sample]:
    # Given results are compared as Python compares, 2 with 2.0, so they tell no types.
    for example in view.examples[:_MOST]:
        for node in _calls(view, example.call):
            yield Sample(ast.unparse(node), _arguments(view, node))


def _results(text: str) -> tuple[object, ...]:
    try:
        is_literal, value = literal(syntax.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return (value,) if is_literal else ()


def _parsed(source: str) -> ast.stmt | None:
    tree = parse(source.strip())
    return tree.body[0] if isinstance(tree, ast.Module) and tree.body else None


def _calls(view: View, source: str) -> Iterator[ast.Call]:
    """Yield the calls of the function in an example, at any position."""
    statement = _parsed(source) if view.name in source else None
    for node in nodes_of(statement) if statement else ():
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name == view.name:
                if not any(isinstance(argument, ast.Starred) for argument in args):
                    yield node


def _arguments(view: View, node: ast.Call) -> dict[str, object]:
    """Return the literal arguments of a call by parameter name."""
    named = {parameter.arg for parameter in view.node.args.kwonlyargs}
    order = [parameter.arg for parameter in parameters(view.node) if parameter.arg not in named]
    pairs = [
        *zip(order, node.args, strict=False),
        *((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg),
    ]
    read = {name: literal(value) for name, value in pairs}
    return {name: value for name, (is_literal, value) in read.items() if is_literal}


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
    names = [parameter.arg for parameter in open_]
    types = {name: hint_of(one.arguments[name] for one in seen if name in one.arguments) for name in names}
    hints = widen(view, hints, {name: hint for name, hint in types.items() if hint})
    result = _of_result(view, shown, hints) if node.returns is None else None
    hidden = bound_names(view.tree) | view.known
    hints = {name: hint for name, hint in hints.items() if not _names(hint) & hidden}
    return with_hints(view.text, node, hints, result)


def hint_result(view: View, shown: dict[str, object]) -> str:
    """Return the text with the hint that the results of these calls prove, if it has none."""
    result = _of_result(view, shown, {}) if view.node.returns is None else None
    return with_hints(view.text, view.node, {}, result) if result else view.text


def _names(hint: str) -> set[str]:
    return {node.id for node in ast.walk(syntax.parse(hint, mode="eval")) if isinstance(node, ast.Name)}


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


def _of_result(view: View, shown: dict[str, object], hints: dict[str, str]) -> str | None:
    statements = body(view.node)
    answers = list(returned(statements))
    shown = {call: value for call, value in shown.items() if _is_call(view, call)}
    if (
        len(shown) < _ENOUGH
        or not answers
        or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes_of(view.node))
    ):
        return None
    spoken = [literal(arm) for answer in answers for arm in _arms(answer.value)]
    values = [*shown.values(), *(value for is_literal, value in spoken if is_literal)]
    hint = hint_of(values if always_leaves(statements) else [*values, None])
    hint = widen_result(view, hint, hints) if hint else None
    if hint is None or hint == "None":
        return None
    if "int" in _names(hint) and "float" not in _names(hint) and _may_be_fraction(view, answers):
        return None
    return None if _names(hint) & (bound_names(view.tree) | view.known) else hint


def _is_call(view: View, source: str) -> bool:
    """Check whether an example is a call of the function and nothing more: only then its result is the function's."""
    match _parsed(source):
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name == view.name
        case _:
            return False


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

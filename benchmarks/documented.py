"""Published functions as a careful author writes them: with hints, a docstring and two examples.

Missing hints are derived from the arguments and results of the examples and from returned constants. Rows are left out
if their examples show no hint or do not have two results.
"""

import ast
import itertools
from collections.abc import Iterable
from typing import Any

from agent_core.functions.gate import Candidate


def documented(row: dict[str, Any]) -> Candidate | None:  # Any: one line of the file
    """Return a row's function with hints, docstring and examples; None if the row shows too little of it."""
    tree, examples = ast.parse(row["code"]), row["examples"]
    node = next(
        one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == row["name"]
    )
    examples = _telling(examples, node)
    if not examples or node.args.vararg or node.args.kwarg:
        return None
    calls, results = _values(row["examples"], node)
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = argument.annotation or _hint(calls.get(argument.arg, ()))
        if argument.annotation is None:
            return None
    is_float = any(map(_makes_floats, ast.walk(node))) and {*map(type, results)} == {int}
    node.returns = node.returns or _hint([*results, *_answers(node), *([0.0] if is_float else [])])
    if node.returns is None:
        return None
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    node.body = [ast.Expr(ast.Constant(_docstring(row, examples, node))), *body]
    return Candidate(row["name"], ast.unparse(ast.fix_missing_locations(tree)) + "\n", "library")


def _answers(node: ast.FunctionDef) -> list[object]:
    """Return the constants that the code returns; its author knows, for example, that some inputs give None."""
    answers = [child.value for child in ast.walk(node) if isinstance(child, ast.Return)]
    return [answer.value for answer in answers if isinstance(answer, ast.Constant)]


def _makes_floats(node: ast.AST) -> bool:
    """Check for a division, a float, or a `math` function that returns one: its author knows that 16 is then 16.0."""
    match node:
        case ast.Div() | ast.Constant(value=float()):
            return True
        case ast.Attribute(
            value=ast.Name(id="math"), attr="pow" | "sqrt" | "log" | "log2" | "log10" | "exp"
        ):
            return True
        case _:
            return False


def _telling(examples: list[dict[str, Any]], node: ast.FunctionDef) -> list[dict[str, Any]]:
    """Return two examples with different results, neither of them None, that do not echo the same argument."""
    shown = [one for one in examples if one["expected"] != "None"]
    for first, second in itertools.combinations(shown, 2):
        is_different = first["call"] != second["call"] and first["expected"] != second["expected"]
        if is_different and not _echoed(first, node) & _echoed(second, node):
            return [first, second]
    return []


def _echoed(example: dict[str, Any], node: ast.FunctionDef) -> set[str]:
    """Return the parameters whose argument equals the result."""
    arguments, (result,) = _values([example], node)
    return {name for name, (value,) in arguments.items() if value == result}


def _values(
    examples: list[dict[str, Any]], node: ast.FunctionDef
) -> tuple[dict[str, list[object]], list[object]]:
    """Return the arguments of all examples by parameter, and the results."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    arguments: dict[str, list[object]] = {}
    for example in examples:
        call = ast.parse(example["call"], mode="eval").body
        assert isinstance(call, ast.Call)
        given = [
            *zip(names, call.args, strict=False),
            *((word.arg or "", word.value) for word in call.keywords),
        ]
        for name, value in given:
            arguments.setdefault(name, []).append(ast.literal_eval(value))
    return arguments, [ast.literal_eval(example["expected"]) for example in examples]


def _hint(values: Iterable[object]) -> ast.expr | None:
    hint = _type_of(list(values))
    return ast.parse(hint, mode="eval").body if hint else None


def _type_of(values: list[object]) -> str:
    """Return the hint that fits all values; empty if they show none."""
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return "float"
    if len(kinds) > 1 and type(None) in kinds:
        inner = _type_of([value for value in values if value is not None])
        return f"{inner} | None" if inner else ""
    if len(kinds) > 1:
        hints = [_type_of([value for value in values if type(value) is kind]) for kind in kinds]
        return " | ".join(sorted(set(hints))) if all(hints) else ""
    (kind,) = kinds or {object}
    if kind in {list, set, tuple, frozenset}:
        return _row_type(values) or _series_type(values, kind)
    if kind is dict:
        keys = _type_of([key for value in values for key in value])  # type: ignore[attr-defined] # of dictionaries
        items = _type_of([item for value in values for item in value.values()])  # type: ignore[attr-defined]
        return f"dict[{keys or 'str'}, {items or 'int'}]"
    return {type(None): "None", object: ""}.get(kind, kind.__name__)


def _row_type(values: list[Any]) -> str:  # Any: collections
    """Return the hint for tuples of one length with a type per place; empty if the values are not such tuples."""
    if (
        not all(isinstance(value, tuple) for value in values)
        or len({len(value) for value in values}) != 1
    ):
        return ""
    hints = [_type_of(list(column)) for column in zip(*values, strict=True)]
    return f"tuple[{', '.join(hints)}]" if all(hints) and len(set(hints)) > 1 else ""


def _series_type(values: list[Any], kind: type) -> str:  # Any: collections
    inner = _type_of([item for value in values for item in value])
    return f"{kind.__name__}[{inner or 'int'}{', ...' if kind is tuple else ''}]"


def _docstring(row: dict[str, Any], examples: list[dict[str, Any]], node: ast.FunctionDef) -> str:
    description = (row.get("description") or row["name"]).partition(">>>")[0].strip()
    names = [
        argument.arg
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    ]
    told = (
        ["Args:", *(f"    {name}: What is given as {name}." for name in names), ""] if names else []
    )
    lines = [*description.splitlines(), "", *told]
    for example in examples:
        expected = (
            [] if example["expected"] == "None" else [repr(ast.literal_eval(example["expected"]))]
        )
        lines += [f">>> {example['call']}", *expected]
    return "\n".join(lines[:1] + [f"    {line}".rstrip() for line in lines[1:]]) + "\n    "

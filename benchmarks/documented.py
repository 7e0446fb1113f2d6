"""Published functions as a careful author writes them: with hints, a docstring and two examples.

Hints that are missing are those of the examples' arguments and results. Rows whose examples show no hint, or that have
no two results, are left out.
"""

import ast
from collections.abc import Iterable
from typing import Any

from agent_core.functions.gate import Candidate

_EXAMPLES = 2


def documented(row: dict[str, Any]) -> Candidate | None:  # Any: one line of the file
    """Return a row's function with hints, docstring and examples; None if the row shows too little of it."""
    tree, examples = ast.parse(row["code"]), _distinct(row["examples"])
    node = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == row["name"])
    if len(examples) < _EXAMPLES or node.args.vararg or node.args.kwarg:
        return None
    calls, results = _values(row["examples"], node)
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = argument.annotation or _hint(calls.get(argument.arg, ()))
        if argument.annotation is None:
            return None
    node.returns = node.returns or _hint(results)
    if node.returns is None:
        return None
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    node.body = [ast.Expr(ast.Constant(_docstring(row, examples, node))), *body]
    return Candidate(row["name"], ast.unparse(ast.fix_missing_locations(tree)) + "\n", "library")


def _distinct(examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first two examples with different results."""
    others = [one for one in examples if one["expected"] != examples[0]["expected"]]
    return [*examples[:1], *others[: _EXAMPLES - 1]]


def _values(examples: list[dict[str, Any]], node: ast.FunctionDef) -> tuple[dict[str, list[object]], list[object]]:
    """Return the arguments of all examples by parameter, and the results."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    arguments: dict[str, list[object]] = {}
    for example in examples:
        call = ast.parse(example["call"], mode="eval").body
        assert isinstance(call, ast.Call)
        given = [*zip(names, call.args, strict=False), *((word.arg or "", word.value) for word in call.keywords)]
        for name, value in given:
            arguments.setdefault(name, []).append(ast.literal_eval(value))
    return arguments, [ast.literal_eval(example["expected"]) for example in examples]


def _hint(values: Iterable[object]) -> ast.expr | None:
    hint = _type_of(list(values))
    return ast.parse(hint, mode="eval").body if hint else None


def _type_of(values: list[object]) -> str:
    """Return the hint that all values have, empty if they show none."""
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
        inner = _type_of([item for value in values for item in value])  # type: ignore[attr-defined] # of these kinds
        ending = ", ..." if kind is tuple else ""
        return f"{kind.__name__}[{inner or 'int'}{ending}]"
    if kind is dict:
        keys = _type_of([key for value in values for key in value])  # type: ignore[attr-defined] # of dictionaries
        items = _type_of([item for value in values for item in value.values()])  # type: ignore[attr-defined]
        return f"dict[{keys or 'str'}, {items or 'int'}]"
    return "None" if kind is type(None) else kind.__name__ if kind is not object else ""


def _docstring(row: dict[str, Any], examples: list[dict[str, Any]], node: ast.FunctionDef) -> str:
    description = (row.get("description") or row["name"]).partition(">>>")[0].strip()
    lines = [*description.splitlines(), ""]
    for example in examples:
        expected = [] if example["expected"] == "None" else [repr(ast.literal_eval(example["expected"]))]
        lines += [f">>> {example['call']}", *expected]
    return "\n".join(lines[:1] + [f"    {line}".rstrip() for line in lines[1:]]) + "\n    "

"""The places of a function where a small change could be made: each node of its body with its context.

Pure. What an example can hardly see is left out: the signature, docstrings, what is raised, asserted
or reported as progress, and f-strings, because Python does not give their inner positions.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ..tree import FunctionNode, body

_MOST_IN_A_TABLE: Final = 4
_UNSEEN = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.expr_context, ast.operator, ast.pattern)
Condition: TypeAlias = tuple[ast.expr, bool]


@dataclass(frozen=True, slots=True)
class Site:
    """A node and its context: its parent and statement, and the condition under which it is reached."""

    node: ast.AST
    parent: ast.AST
    statement: ast.stmt
    condition: Condition | None = None
    is_test: bool = False
    in_while: bool = False
    in_table: bool = False
    returns: int = 0


def sites(function: FunctionNode) -> Iterator[Site]:
    """Yield every place of a function's body, in the order of its text."""
    statements = body(function)
    returns = sum(isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement))
    waiting = [Site(node, function, node, returns=returns) for node in reversed(statements)]
    while waiting:
        site = waiting.pop()
        if isinstance(site.node, _UNSEEN) or _is_docstring(site) or _tells_progress(site.node):
            continue
        yield site
        waiting += reversed([_inside(site, field, child) for field, child in _children(site.node)])


def _is_docstring(site: Site) -> bool:
    return isinstance(site.node, ast.Constant) and isinstance(site.parent, ast.Expr)


def _tells_progress(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="progress"))):
            return True
        case _:
            return False


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _inside(site: Site, field: str, child: ast.AST) -> Site:
    node = site.node
    return replace(
        site,
        node=child,
        parent=node,
        statement=child if isinstance(child, ast.stmt) else site.statement,
        condition=_condition(site, field),
        is_test=field in ("test", "ifs"),
        in_while=site.in_while or isinstance(node, ast.While),
        in_table=site.in_table or _is_table(node),
    )


def _condition(site: Site, field: str) -> Condition | None:
    if isinstance(site.node, ast.If | ast.IfExp) and field != "test":
        return site.node.test, field == "body"
    return site.condition


def _is_table(node: ast.AST) -> bool:
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) | ast.Dict(values=items):
            return len(items) > _MOST_IN_A_TABLE
        case _:
            return False

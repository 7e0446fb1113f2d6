"""A module reduced to some of its statements, so that its code shows nothing else of the text.

Docstrings are dropped, and lines are numbered by statement: code compiled from such a tree is the same whatever
comments, docstrings, blank lines and other statements surround it. A column is the number of a node within its line, by
which the host finds the node's own line in the text.
"""

import ast
from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from typing import Any, Final, TypeAlias

WHOLE: Final = -1
StatementPart: TypeAlias = tuple[int, int]
"""A top-level statement by its position, and a name that it imports by its number; `WHOLE` stands for all of it."""
Importing: TypeAlias = ast.Import | ast.ImportFrom
Places: TypeAlias = list[list[int]]
"""The line in the text of each node, by the line and the column that the node has in the reduced tree."""


def drop_docstrings(tree: ast.AST) -> None:
    """Remove every string that is a statement by itself, at any depth."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, without_docstrings(value))


def without_docstrings(nodes: list[Any]) -> list[Any]:  # Any: what a field of a node holds
    """Return statements without those that are only a string; others, and what is no statement, stay as they are."""
    if not (nodes and isinstance(nodes[0], ast.stmt)):
        return nodes
    return [node for node in nodes if not is_text(node)] or [
        ast.copy_location(ast.Pass(), nodes[0])
    ]


def is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is only a string, such as a docstring."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def with_one_name(statement: Importing, number: int) -> Importing:
    """Return the import of one of the names that a statement imports."""
    one = copy(statement)
    one.names = [statement.names[number]]
    return one


def reduce(tree: ast.Module, statements: Sequence[StatementPart]) -> Places:
    """Reduce a tree to these parts of its statements, in place, and return the places of its nodes."""
    body = list[ast.stmt]()
    for at, number in statements:
        statement = tree.body[at]
        if number != WHOLE and isinstance(statement, Importing):
            statement = with_one_name(statement, number)
        body.append(statement)
    tree.body = body
    drop_docstrings(tree)
    return _renumber(tree)


def _renumber(tree: ast.Module) -> Places:
    places: Places = [[0]]
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, line = waiting.pop()
        decorators = dict[int, int]()  # by identity, the line of each
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            for decorator in getattr(node, "decorator_list", ()):
                decorators[id(decorator)] = len(places)
                places.append([])
            line = len(places)
            places.append([])
        if hasattr(node, "lineno"):
            places[line].append(node.lineno)
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined] # of every node with a place
            node.col_offset = node.end_col_offset = len(places[line]) - 1  # type: ignore[attr-defined]
        children = [
            (child, decorators.get(id(child), line)) for child in ast.iter_child_nodes(node)
        ]
        waiting += reversed(children)
    return places


def line_in_text(places: Places, line: int, column: int = 0) -> int:
    """Return the line in the text of a place in the reduced tree; 0 if there is none."""
    row = places[line] if 0 < line < len(places) else []
    return row[column if 0 < column < len(row) else 0] if row else 0


def line_in_code(places: Places, line: int) -> int:
    """Return the first line of the reduced tree that is at this line of the text, or after it."""
    return bisect_left(places, line, lo=1, key=lambda row: row[0])

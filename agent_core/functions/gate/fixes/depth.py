"""How far a body takes the value of a name apart: not at all, into its parts, or into the parts of these, too.

Pure; a guess to the high side does no harm, since what is taken apart keeps more of its hint.
"""

import ast
from collections.abc import Collection, Mapping

_OPENING = frozenset(
    ["len", "list", "tuple", "set", "frozenset", "sum", "sorted", "reversed", "Counter", "iter", "dict"]
)
_ORDERED = frozenset(["min", "max"])
_GATHERING = frozenset(["zip", "enumerate", "chain"])


def levels(node: ast.Name, parents: Mapping[int, ast.AST], parts: Collection[str]) -> int:
    """Return how many levels of the value behind a name are opened here; a name of parts begins one further down."""
    level, most = int(node.id in parts), 0
    child: ast.AST = node
    while True:
        parent = parents[id(child)]
        opened, is_on, is_part = _opened(parent, child, parents)
        most = max(most, level + opened if opened else 0)
        if not is_on:
            return most
        level += is_part
        child = parent


def _opened(parent: ast.AST, child: ast.AST, parents: Mapping[int, ast.AST]) -> tuple[int, bool, bool]:
    """Return how many levels one node opens, whether its value goes on, and whether that is a part."""
    match parent:
        case ast.Subscript(value=value, slice=index) if value is child:
            return 1, True, not isinstance(index, ast.Slice)
        case ast.Call(func=ast.Name(id="str" | "repr")) | ast.JoinedStr() | ast.FormattedValue():
            return 0, True, False
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _opened_by(name, arguments, parents[id(parent)]), False, False
        case ast.Starred():
            return 1 + isinstance(parents[id(parent)], ast.Call), False, False
        case _:
            return _opened_at_once(parent, child), False, False


def _opened_by(name: str, arguments: list[ast.expr], above: ast.AST) -> int:
    if name in _GATHERING:
        return 1 + _has_inner_tuple(above)
    return int(name in _OPENING or (name in _ORDERED and len(arguments) == 1))


def _opened_at_once(parent: ast.AST, child: ast.AST) -> int:
    match parent:
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value) if value is child:
            return 1 + isinstance(target, ast.Tuple)
        case ast.Assign(targets=[ast.Tuple()], value=value) if value is child:
            return 1
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[other]) if other is child:
            return 1
        case _:
            return int(isinstance(parent, ast.Attribute))


def _has_inner_tuple(loop: ast.AST) -> bool:
    match loop:
        case ast.For(target=ast.Tuple(elts=targets)) | ast.comprehension(target=ast.Tuple(elts=targets)):
            return any(isinstance(target, ast.Tuple) for target in targets)
        case _:
            return False


def writes(node: ast.AST) -> bool:
    """Check whether a node makes a text of a value."""
    match node:
        case ast.JoinedStr() | ast.FormattedValue() | ast.Call(func=ast.Name(id="str" | "repr")):
            return True
        case _:
            return False


def is_written(node: ast.AST, parents: Mapping[int, ast.AST]) -> bool:
    """Check whether a text is made of what a name holds."""
    while not isinstance(node, ast.stmt):
        node = parents[id(node)]
        if writes(node):
            return True
    return False

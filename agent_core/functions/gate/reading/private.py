"""A fix of the read stage: public helpers that the promised function calls become private.

Only the names change, at their exact places, and only where no other use of the name could be meant.
"""

import ast

from sandbox.wire.lines import lines_of

from ..tree import FunctionNode, bound_names, calls_of, functions, parse

_MOST = 50  # helpers; with more, one asks for them rather than rename them


def make_private(text: str, name: str) -> str:
    """Return the text with the promised function's helpers renamed to `_helper`; unchanged if that is not safe."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return text
    helpers = _helpers(tree, name) if 1 < len(functions(tree)) <= _MOST else set()
    if not helpers:
        return text
    used_names = bound_names(tree)
    if any(f"_{helper}" in used_names or _is_ambiguous(tree, helper) for helper in helpers):
        return text
    lines = [line.encode("utf-8") for line in lines_of(text)]
    for line, column, helper in sorted(_places(tree, lines, helpers), reverse=True):
        before = lines[line - 1]
        lines[line - 1] = before[:column] + b"_" + before[column:]
        assert before[column:].startswith(helper.encode("ascii"))
    return b"".join(lines).decode("utf-8")


def _helpers(tree: ast.Module, name: str) -> set[str]:
    """Return the public functions other than the promised one, if it reaches each of them."""
    nodes: dict[str, FunctionNode] = {node.name: node for node in functions(tree)}
    if name not in nodes:
        return set()
    reached, front = {name}, [name]
    while front:
        for callee in calls_of(nodes[front.pop()], set(nodes)) - reached:
            reached.add(callee)
            front.append(callee)
    public = {helper for helper in nodes if not helper.startswith("_")}
    return public - {name} if public <= reached and len(nodes) == len(functions(tree)) else set()


def _is_ambiguous(tree: ast.Module, helper: str) -> bool:
    """Check whether the name is also a parameter, a local or a keyword, appears in a text, or is not plain ASCII."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.keyword(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                if name == helper:
                    return True
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                if helper in names:
                    return True
            case ast.JoinedStr():
                # Before Python 3.12 the places of names inside f-strings are not those of the text.
                if calls_of(node, {helper}):
                    return True
    return not helper.isascii()


def _places(tree: ast.Module, lines: list[bytes], helpers: set[str]) -> list[tuple[int, int, str]]:
    places = [
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in helpers
    ]
    for node in functions(tree):
        if node.name in helpers:
            column = lines[node.lineno - 1].find(node.name.encode("ascii"), node.col_offset + len("def"))
            places.append((node.lineno, column, node.name))
    return places

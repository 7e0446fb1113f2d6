"""Rewrites `List[int]` and `Optional[int]` as `list[int]` and `int | None`, if the file already uses that form."""

import ast
import re

from sandbox.wire.lines import lines_of

from ..tree import bound_names, functions, nodes_of, parse
from .signature import offset
from .view import View

_PLAIN = {"List": "list", "Dict": "dict", "Set": "set", "Tuple": "tuple", "FrozenSet": "frozenset", "Type": "type"}
_OLD = frozenset([*_PLAIN, "Optional", "Union"])
OLD_MARKS = tuple(f"{name}[" for name in sorted(_OLD))


def modernize(view: View) -> str:
    """Return the text with its signatures' hints in the modern form, if other hints of the file have it."""
    if bound_names(view.tree) & {*_PLAIN.values()}:
        return view.text
    trees = [view.tree, parse(view.around) if view.around else None]
    if not any(_is_modern(hint) for tree in trees if isinstance(tree, ast.Module) for hint in _hints(tree)):
        return view.text
    text = view.text
    places = [(offset(text, *_start(hint)), offset(text, *_end(hint)), hint) for hint in _hints(view.tree)]
    for start, end, hint in sorted(places, key=lambda place: place[0], reverse=True):
        if _is_old(hint) and not isinstance(hint, ast.Constant):
            text = (
                text[:start] + ast.unparse(_Modern().visit(ast.parse(text[start:end], mode="eval")).body) + text[end:]
            )
    return _without_unused_imports(text) if text != view.text else text


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _hints(tree: ast.Module) -> list[ast.expr]:
    """Return the hints of the signatures at the top level."""
    hints: list[ast.expr | None] = []
    for node in functions(tree):
        hints += [argument.annotation for argument in nodes_of(node.args) if isinstance(argument, ast.arg)]
        hints.append(node.returns)
    return [hint for hint in hints if hint is not None]


def _is_modern(hint: ast.expr) -> bool:
    """Check whether a hint is a builtin with an item type, or a union written with `|`."""
    for node in ast.walk(hint):
        match node:
            case ast.Subscript(value=ast.Name(id=name)) if name in _PLAIN.values():
                return True
            case ast.BinOp(op=ast.BitOr()):
                return True
    return False


def _is_old(hint: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in _OLD for node in ast.walk(hint))


class _Modern(ast.NodeTransformer):
    """Modernizes the hints of its own copy of a tree."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(_PLAIN.get(node.id, node.id), node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node.value:
            case ast.Name(id="Optional"):
                return _union([node.slice, ast.Constant(None)])
            case ast.Name(id="Union"):
                return _union(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])
        return node


def _union(members: list[ast.expr]) -> ast.expr:
    whole = members[0]
    for member in members[1:]:
        whole = ast.BinOp(whole, ast.BitOr(), member)
    return whole


def _without_unused_imports(text: str) -> str:
    """Return the text without the imports from `typing` that it no longer uses."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return text
    used = {child.id for child in nodes_of(tree) if isinstance(child, ast.Name)}
    lines = lines_of(text)
    for node in reversed(tree.body):
        if not isinstance(node, ast.ImportFrom) or node.module != "typing" or node.lineno != node.end_lineno:
            continue
        aliases = [alias for alias in node.names if alias.asname or alias.name not in _OLD or alias.name in used]
        if len(aliases) < len(node.names) and re.fullmatch(
            r"from typing import [\w, ]+", lines[node.lineno - 1].strip()
        ):
            names = ", ".join(ast.unparse(alias) for alias in aliases)
            lines[node.lineno - 1] = f"from typing import {names}\n" if names else ""
    return "".join(lines).lstrip("\n")

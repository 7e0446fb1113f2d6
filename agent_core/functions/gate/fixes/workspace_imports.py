"""Imports of functions of the workspace: added where one is called by its bare name, corrected where the module is
named without its package.
"""

import ast
import sys

from sandbox.wire.lines import lines_of

from .imports import insert_imports
from .view import View


def uses_workspace(view: View) -> bool:
    """Check whether the text may name a function of the workspace that it does not import rightly."""
    if not view.functions:
        return False
    return any(_corrected(node, view) for node in view.tree.body) or any(map(view.module_with, view.missing))


def import_from_workspace(view: View) -> str:
    """Return the text with imports of the functions of the workspace that it calls."""
    lines = lines_of(view.text)
    for node in view.tree.body:
        if corrected := _corrected(node, view):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [f"{corrected}\n"] + [""] * (end - node.lineno)
    text = "".join(lines)
    if text != view.text:
        return text
    wanted = [(module, name) for name in sorted(view.missing) if (module := view.module_with(name))]
    imports = [f"from functions.{module} import {name}" for module, name in wanted]
    return insert_imports(view.text, view.tree, imports) if imports else view.text


def _corrected(node: ast.stmt, view: View) -> str:
    """Return an import from a module of the workspace as it must be written; nothing if it is right."""
    if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
        return ""
    top = node.module.partition(".")[0]
    if top in sys.stdlib_module_names or (top == "functions" and node.module != "functions"):
        return ""
    modules = {view.module_with(alias.name) for alias in node.names}
    if len(modules) != 1 or "" in modules:
        return ""
    names = ", ".join(ast.unparse(alias) for alias in node.names)
    return f"from functions.{modules.pop()} import {names}"

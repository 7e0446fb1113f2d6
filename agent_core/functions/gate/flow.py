"""Tracks by syntax where values come from: names that hold a path, names below the call's scratch folder."""

import ast

from .tree import own_nodes

MAKERS = frozenset({"Path", "pathlib"})


def local_names(function: ast.AST) -> set[str]:
    """Return every name that a function binds, parameters included."""
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def below_scratch(function: ast.AST) -> set[str]:
    """Return the names with values that come from `self.scratch`, and `self.scratch` itself."""
    return _derived(function, {"self.scratch"})


def paths(function: ast.AST) -> set[str]:
    """Return the names that hold a path: declared as one, or made by `Path`."""
    declared = {
        node.arg
        for node in ast.walk(function)
        if isinstance(node, ast.arg) and node.annotation is not None and mentions(node.annotation, {"Path"})
    }
    return _derived(function, {*MAKERS, *declared}) - MAKERS


def _derived(function: ast.AST, sources: set[str]) -> set[str]:
    """Return the sources, and the names that are assigned from them, in the order of the text."""
    names = set(sources)
    for node in own_nodes(list(ast.iter_child_nodes(function))):  # type: ignore[arg-type] # any child will do
        match node:
            case ast.Assign(targets=targets, value=value) if mentions(value, names):
                names |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            case ast.With(items=items):
                for item in items:
                    if isinstance(item.optional_vars, ast.Name) and mentions(item.context_expr, names):
                        names.add(item.optional_vars.id)
            case ast.For(target=ast.Name(id=name), iter=value) if mentions(value, names):
                names.add(name)
    return names


def mentions(node: ast.AST, names: set[str]) -> bool:
    """Check whether an expression reads one of these names, or `self.scratch` if that is among them."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id in names:
            return True
        if isinstance(child, ast.Attribute) and child.attr == "scratch" and "self.scratch" in names:
            return True
    return False

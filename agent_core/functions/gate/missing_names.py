"""Finds names that a module reads and nothing defines.

Python's own symbol table knows; where scopes are plain (no inner functions) the tree tells as well, and sooner.
"""

import ast
import symtable
import warnings
from functools import lru_cache

from .tree import BUILTINS, FunctionNode, bound_names, nodes_of

IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__package__", "__annotations__"})
_ALWAYS = BUILTINS | IMPLICIT
_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.NamedExpr, ast.Global)
_BINDING = (ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping)


def missing_names(text: str, tree: ast.Module, known_names: frozenset[str] = frozenset()) -> set[str]:
    """Return global names read somewhere and defined nowhere; `known_names` come from the surrounding module."""
    missing = _missing(text, tree)
    return set(missing - known_names) if missing else set()


@lru_cache(maxsize=64)
def _missing(text: str, tree: ast.Module) -> frozenset[str]:
    bound = bound_names(tree)
    if "*" in bound:
        return frozenset()
    defined = bound | _ALWAYS
    if _all_local(tree, defined):
        return frozenset()
    return frozenset(_globals_read(text) - defined)


def _all_local(tree: ast.Module, defined: frozenset[str]) -> bool:
    """Check whether every name the module reads is certainly defined; False if only the symbol table can tell."""
    for statement in tree.body:
        if not isinstance(statement, FunctionNode):
            if not _reads(statement) <= defined:
                return False
            continue
        inner = _resolved(statement)
        if inner is None or not inner <= defined or not _around(statement) <= defined:
            return False
    return True


def _around(function: FunctionNode) -> set[str]:
    """Return the names read where a function is defined: in its decorators, hints and defaults."""
    signature = function.args
    arguments = [
        *signature.posonlyargs,
        *signature.args,
        *signature.kwonlyargs,
        *filter(None, [signature.vararg, signature.kwarg]),
    ]
    parts = [*function.decorator_list, *signature.defaults, *signature.kw_defaults, function.returns]
    read: set[str] = set()
    for part in (*parts, *(argument.annotation for argument in arguments)):
        if isinstance(part, ast.Name):
            read.add(part.id)
        elif part is not None and not isinstance(part, ast.Constant):
            read |= _reads(part)
    return read


def _reads(node: ast.AST) -> set[str]:
    return {child.id for child in nodes_of(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)}


def _resolved(function: FunctionNode) -> set[str] | None:
    """Return the names that a function's body reads and does not bind; None if it has nested scopes."""
    nodes = nodes_of(function)[1:]
    kinds = set(map(type, nodes))
    if not kinds.isdisjoint(_NESTED):
        return None
    if kinds.isdisjoint(_COMPREHENSION + _BINDING):
        names = [node for node in nodes if isinstance(node, ast.Name)]
        stored = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        return (
            {name.id for name in names}
            - stored
            - {parameter.arg for parameter in nodes if isinstance(parameter, ast.arg)}
        )
    within: set[int] = set()
    loads: set[str] = set()
    stores = {parameter.arg for parameter in nodes if isinstance(parameter, ast.arg)}
    for node in nodes:
        if isinstance(node, _COMPREHENSION) and id(node) not in within:
            inner = _of_comprehension(node)
            if inner is None:
                return None
            loads |= inner[0]
            within |= inner[1]
        elif id(node) not in within:
            _note(node, loads, stores)
    return loads - stores


def _of_comprehension(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
) -> tuple[set[str], set[int]] | None:
    """Return what a comprehension reads of its enclosing scope, and its nodes; both without its first iterable."""
    first = set(map(id, nodes_of(node.generators[0].iter)))
    inner = [child for child in nodes_of(node)[1:] if id(child) not in first]
    if any(isinstance(child, _COMPREHENSION) for child in inner):
        return None
    loads: set[str] = set()
    stores: set[str] = set()
    for child in inner:
        _note(child, loads, stores)
    return loads - stores, set(map(id, inner))


def _note(node: ast.AST, loads: set[str], stores: set[str]) -> None:
    if isinstance(node, ast.Name):
        (loads if isinstance(node.ctx, ast.Load) else stores).add(node.id)
    elif isinstance(node, _BINDING):
        name = getattr(node, "asname", None) or getattr(node, "rest", None) or getattr(node, "name", None)
        stores.update([name.partition(".")[0]] if name else ())


@lru_cache(maxsize=64)
def _globals_read(text: str) -> frozenset[str]:
    used: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _collect_globals(symtable.symtable(text, "candidate", "exec"), used)
        except (SyntaxError, RecursionError, ValueError):
            return frozenset()
    return frozenset(used)


def _collect_globals(table: symtable.SymbolTable, used: set[str]) -> None:
    at_top = table.get_type() == "module"
    used.update(
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or at_top) and not symbol.is_parameter()
    )
    for child in table.get_children():
        _collect_globals(child, used)

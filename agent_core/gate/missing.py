"""Which names a module reads that nothing defines.

Python's own symbol table knows; where scopes are plain (no inner functions) the tree tells as well, and sooner.
"""

import ast
import symtable
import warnings
from functools import lru_cache

from .tree import BUILTINS, FunctionNode, bound_names, nodes_of

IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__package__", "__annotations__"})
_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.NamedExpr, ast.Global)


def missing_names(text: str, tree: ast.Module, known: frozenset[str] = frozenset()) -> set[str]:
    """The global names that are read somewhere and defined nowhere; `known` come from the module around."""
    missing = _missing(text, tree)
    return set(missing - known) if missing else set()


@lru_cache(maxsize=64)
def _missing(text: str, tree: ast.Module) -> frozenset[str]:
    bound = bound_names(tree)
    if "*" in bound:
        return frozenset()
    defined = bound | BUILTINS | IMPLICIT
    read = {node.id for node in nodes_of(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    if read <= defined or _all_local(tree, defined):
        return frozenset()
    return frozenset(_globals_read(text) - defined)


def _all_local(tree: ast.Module, defined: frozenset[str]) -> bool:
    """Every name that the module reads is certainly defined; False where only the symbol table can tell."""
    for statement in tree.body:
        if not isinstance(statement, FunctionNode):
            if not _reads(statement) <= defined:
                return False
            continue
        around = [*statement.decorator_list, statement.args]
        outer = {name for one in [*around, *filter(None, [statement.returns])] for name in _reads(one)}
        inner = _resolved(statement)
        if inner is None or not (outer | inner) <= defined:
            return False
    return True


def _reads(node: ast.AST) -> set[str]:
    return {one.id for one in nodes_of(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _resolved(function: FunctionNode) -> set[str] | None:
    """The names that a function's body reads and does not bind; None where it has scopes within scopes."""
    loads: set[str] = set()
    stores = {one.arg for one in nodes_of(function.args) if isinstance(one, ast.arg)}
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, _COMPREHENSION):
            inner = _of_comprehension(node)
            if inner is None:
                return None
            loads |= inner
            pending.append(node.generators[0].iter)
        elif isinstance(node, _NESTED):
            return None
        else:
            _note(node, loads, stores)
            pending.extend(ast.iter_child_nodes(node))
    return loads - stores


def _of_comprehension(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> set[str] | None:
    """What a comprehension reads of the scope around it, its first iterable aside; None where it has scopes within."""
    first = set(map(id, nodes_of(node.generators[0].iter)))
    inner = [one for one in nodes_of(node)[1:] if id(one) not in first]
    if any(isinstance(one, _NESTED + _COMPREHENSION) for one in inner):
        return None
    loads: set[str] = set()
    stores: set[str] = set()
    for one in inner:
        _note(one, loads, stores)
    return loads - stores


def _note(node: ast.AST, loads: set[str], stores: set[str]) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            loads.add(name)
        case ast.Name(id=name):
            stores.add(name)
        case ast.alias(name=name, asname=other):
            stores.add(other or name.partition(".")[0])
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            stores.add(name)
        case ast.MatchMapping(rest=str(name)):
            stores.add(name)


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

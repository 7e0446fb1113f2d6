"""Finds names that a module reads and nothing defines.

Python's own symbol table knows.
"""

import ast
import symtable
import warnings
from functools import lru_cache

from .tree import BUILTINS, bound_names

IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__package__", "__annotations__"})
_ALWAYS = BUILTINS | IMPLICIT


def missing_names(text: str, tree: ast.Module, known_names: frozenset[str] = frozenset()) -> set[str]:
    """Return global names read somewhere and defined nowhere; `known_names` come from the surrounding module."""
    missing = _missing(text, tree)
    return set(missing - known_names) if missing else set()


@lru_cache(maxsize=64)
def _missing(text: str, tree: ast.Module) -> frozenset[str]:
    bound = bound_names(tree)
    return frozenset() if "*" in bound else _globals_read(text) - bound - _ALWAYS


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

"""Which functions use which: read from the syntax trees, so that a deletion can name who would break.

A use is a name, an attribute, or the text in `self.call("name")`. What is computed at run time is not seen.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from .function import Function
from .snapshot import Snapshot
from .tree import survey


def callers(name: str, snapshot: Snapshot) -> list[str]:
    """The functions that mention another function by its name, sorted."""
    return sorted(
        caller for caller, function in snapshot.functions.items() if caller != name and name in uses(function, snapshot)
    )


def callees(name: str, snapshot: Snapshot) -> list[str]:
    """The functions that a function mentions, sorted."""
    return sorted(uses(snapshot.functions[name], snapshot) & snapshot.functions.keys() - {name})


def uses(function: Function, snapshot: Snapshot) -> set[str]:
    """Every name that the source of a function mentions, its module's private helpers included."""
    bodies, imported = _read(snapshot.modules[function.module].text)
    seen: set[str] = set()
    waiting = [function.name]
    while waiting:
        for word in _words(bodies[waiting.pop()]):
            real = imported.get(word, word)
            if real not in seen:
                seen.add(real)
                if real in bodies and real.startswith("_"):
                    waiting.append(real)
    return seen


@lru_cache(maxsize=8)  # the functions of a module follow one another
def _read(text: str) -> tuple[Mapping[str, ast.AST], Mapping[str, str]]:
    tree = ast.parse(text)
    return survey(tree).definitions, dict(_renamed(tree))


def _words(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=word) | ast.Attribute(attr=word):
                yield word
            case ast.Call(func=ast.Attribute(attr="call"), args=[ast.Constant(value=str(word)), *_]):
                yield word


def _renamed(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)

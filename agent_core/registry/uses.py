"""The dependencies between functions, and the code that decides a function's results.

Read from the syntax trees: a use is a name, an attribute, or the text in `self.call("name")`. What is computed at
run time is not seen; what only bears the same name is taken for a use.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from agent_core.base import syntax
from sandbox.wire.lines import lines_of

from .spans import bound_names, last_line
from .tree import survey

if TYPE_CHECKING:
    from .function import Function
    from .snapshot import Snapshot

_GROUND = ""  # the name of what a module does besides binding names


def callers(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the functions that mention another function by name, sorted."""
    modules = {module for module, source in snapshot.modules.items() if name in source.text}
    return sorted(
        caller
        for caller, function in snapshot.functions.items()
        if function.module in modules and caller != name and name in uses(function, snapshot)
    )


def dependents(names: Iterable[str], snapshot: "Snapshot") -> list[str]:
    """Return the functions that use some functions, directly or through others; the nearest first."""
    start = list(names)
    reached = dict.fromkeys(start)
    waiting = list(start)
    while waiting:
        direct_callers = [caller for name in waiting for caller in callers(name, snapshot) if caller not in reached]
        waiting = list(dict.fromkeys(direct_callers))
        reached |= dict.fromkeys(waiting)
    return [name for name in reached if name not in start]


def private_users(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules with code besides their functions that mentions a function by name, sorted."""
    own = snapshot.functions[name].module
    near = [own, *(module for module, reading in snapshot.readings.items() if own in reading.imports)]
    texts = {module: snapshot.modules[module].text for module in near}
    return sorted(
        module
        for module, text in texts.items()
        if name in text
        and any(name in piece.words for key, piece in _pieces(text).items() if (module, key) != (own, name))
    )


def callees(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the functions that a function mentions, sorted."""
    return sorted(uses(snapshot.functions[name], snapshot) & snapshot.functions.keys() - {name})


def uses(function: "Function", snapshot: "Snapshot") -> frozenset[str]:
    """Return every name that the source of a function mentions, including its module's private helpers."""
    return _mentioned(snapshot.modules[function.module].text, function.name)


@lru_cache(maxsize=1024)
def _mentioned(text: str, name: str) -> frozenset[str]:
    bodies, imported = _read(text)
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for word in _words(bodies[waiting.pop()]):
            real = imported.get(word, word)
            if real not in seen:
                seen.add(real)
                if real in bodies and real.startswith("_"):
                    waiting.append(real)
    return frozenset(seen)


def code_hash(function: "Function", snapshot: "Snapshot") -> str:
    """Return the hash of a function's own text and of all the workspace code that it may use.

    Helpers, constants and classes of its module, and functions of other modules, down to the last.
    """
    digests: dict[tuple[str, str], str] = {}
    waiting = [(function.module, function.name), (function.module, _GROUND)]
    while waiting:
        place = waiting.pop()
        piece = _pieces(snapshot.modules[place[0]].text).get(place[1])
        if piece is not None and place not in digests:
            digests[place] = piece.digest
            waiting += _behind(place[0], piece, snapshot)
    digests[function.module, function.name] = function.body_hash
    return hashlib.sha256(repr(sorted(digests.items())).encode("utf-8", "surrogatepass")).hexdigest()


def using_modules(module: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules that import a module or call its functions by name, directly or through others."""
    calling = {
        name: source.text.replace("'", '"') for name, source in snapshot.modules.items() if ".call(" in source.text
    }
    reached = {module: None}
    waiting = [module]
    while waiting:
        used = waiting.pop()
        own = snapshot.readings[used].functions if used in snapshot.readings else ()
        called = [f'"{function.name}"' for function in own]
        near = [name for name, reading in snapshot.readings.items() if used in reading.imports]
        near += [name for name, text in calling.items() if any(word in text for word in called)]
        new = dict.fromkeys(name for name in near if name not in reached)
        reached |= new
        waiting += new
    return [*reached][1:]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A statement that binds a name at the top of a module: its hash without docstring, and the names it mentions."""

    digest: str
    words: frozenset[str]
    called: frozenset[str]  # by `self.call`


def _behind(module: str, piece: _Piece, snapshot: "Snapshot") -> Iterator[tuple[str, str]]:
    """Yield the places that a piece may use."""
    reading = snapshot.readings.get(module)
    for related in (module, *(reading.imports if reading else ())):
        source = snapshot.modules.get(related)
        if source is not None:
            yield from ((related, word) for word in piece.words & _pieces(source.text).keys())
            yield related, _GROUND
    for name in piece.called & snapshot.functions.keys():
        yield snapshot.functions[name].module, name


@lru_cache(maxsize=256)
def _pieces(text: str) -> Mapping[str, _Piece]:
    statements: dict[str, list[ast.stmt]] = {_GROUND: []}
    for node in syntax.parse(text).body:
        for name in _bound(node) or {_GROUND}:
            statements.setdefault(name, []).append(node)
    lines = lines_of(text)
    return {name: _piece(nodes, lines) for name, nodes in statements.items()}


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds; a decorator may have put what it stands on anywhere in the module."""
    names = bound_names(node)
    return names | {_GROUND} if getattr(node, "decorator_list", None) else names


def _piece(nodes: list[ast.stmt], lines: list[str]) -> _Piece:
    words = {word for node in nodes for word in _words(node)}
    words |= {alias.name for node in nodes for alias in ast.walk(node) if isinstance(alias, ast.alias)}
    called = {word for node in nodes for word in _called(node)}
    shown = "\n".join(_shown(node, lines) for node in nodes)
    digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
    return _Piece(digest, frozenset(words), frozenset(called))


def _shown(node: ast.stmt, lines: list[str]) -> str:
    try:
        return ast.dump(_without_docstring(node))
    except RecursionError:
        return "".join(lines[node.lineno - 1 : last_line(node)])


def _without_docstring(node: ast.stmt) -> ast.AST:
    """Return the statement, or a copy of it without a docstring."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() if ast.get_docstring(node, clean=False) is not None:
            return type(node)(**{**dict(ast.iter_fields(node)), "body": node.body[1:]})
        case ast.Expr(value=ast.Constant(value=str())):
            return ast.Pass()
        case _:
            return node


@lru_cache(maxsize=64)  # the functions of a module follow one another
def _read(text: str) -> tuple[Mapping[str, ast.AST], Mapping[str, str]]:
    tree = syntax.parse(text)
    return survey(tree).definitions, dict(_renamed(tree))


def _words(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=word) | ast.Attribute(attr=word):
                yield word
    yield from _called(node)


def _called(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(attr="call"), args=[ast.Constant(value=str(word)), *_]):
                yield word


def _renamed(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)

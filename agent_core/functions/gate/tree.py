"""Syntax trees of a candidate's text: parsing, finding functions, walking nodes.

Pure: text and trees in, values out; nothing runs. A text that cannot be parsed gives a value, not an exception.
"""

import ast
import builtins
import symtable
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, TypeGuard

from agent_core.base import syntax
from agent_core.base.records import dataclass
from agent_core.registry.literals import literal_value
from agent_core.registry.tree import survey
from sandbox.wire.lines import lines_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Unparsable:
    """The reason why a text is not valid Python, and the position of the error."""

    message: str
    line: int = 0
    column: int = 0
    is_cut_off: bool = False
    beyond: str = ""  # the code of the limit that it exceeds
    fix: str = ""


def parse(text: str) -> ast.Module | Unparsable:
    """Return the tree of a text, or why it cannot be parsed. Trees are cached and must not be changed."""
    try:
        return syntax.tree_of(text)
    except syntax.BeyondLimits as error:
        return Unparsable(error.msg, error.lineno or 0, beyond=error.code, fix=error.fix)
    except SyntaxError as error:
        message, line, written = (
            error.msg or "invalid syntax",
            error.lineno or 0,
            lines_of(text.rstrip()),
        )
        last = len(written)
        beyond = line > last or (line == last and (error.offset or 0) > len(written[-1]))
        at_end = beyond or (line >= last and message.startswith("expected an indented block"))
        unended = "unterminated triple-quoted" in message or (
            "unterminated" in message and line >= last
        )
        open_at_end = "was never closed" in message and not text.rstrip().endswith((")", "]", "}"))
        return Unparsable(message, line, error.offset or 0, at_end or unended or open_at_end)


def functions(tree: ast.Module) -> list[FunctionNode]:
    """Return the top-level functions of a module, including private ones."""
    return [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def find(tree: ast.Module, name: str) -> FunctionNode | None:
    """Return the last top-level function with this name, which is the one that Python uses.

    A function below an `if` or a `try` counts as well, because the registry offers it.
    """
    at_top = (
        node for node in reversed(tree.body) if isinstance(node, FunctionNode) and node.name == name
    )
    return next(at_top, None) or _definitions(tree).get(name)


@syntax.tree_room.kept(64)
def _definitions(tree: ast.Module) -> dict[str, FunctionNode]:
    return survey(tree).definitions


def function_in(text: str, name: str) -> FunctionNode | None:
    """Return the function with this name in a text, or None; in a file of many, each is looked up."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return None
    return _at_top(tree).get(name) or find(tree, name)


@syntax.tree_room.kept(64)
def _at_top(tree: ast.Module) -> dict[str, FunctionNode]:
    return {node.name: node for node in functions(tree)}


def parameters(node: FunctionNode) -> list[ast.arg]:
    """Return every named parameter except a leading `self`, in order."""
    named = [*node.args.posonlyargs, *node.args.args]
    if named and named[0].arg == "self":
        named = named[1:]
    return [*named, *node.args.kwonlyargs]


def defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the default of each parameter that has one, by name."""
    placed = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(placed), reversed(arguments.defaults), strict=False)]
    pairs += [
        pair  # type: ignore[misc]
        for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if pair[1]
    ]
    return {parameter.arg: default for parameter, default in pairs}


def takes_self(node: FunctionNode) -> bool:
    """Check whether the first parameter is the call's context."""
    named = [*node.args.posonlyargs, *node.args.args]
    return bool(named) and named[0].arg == "self"


def body(node: FunctionNode) -> list[ast.stmt]:
    """Return the statements of a function without its docstring."""
    has_docstring = ast.get_docstring(node, clean=False) is not None
    return node.body[1:] if has_docstring else node.body


_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@cache
def _parts(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a node type that may hold nodes, last first; None if the type is not a node."""
    if not issubclass(kind, ast.AST):
        return None
    if issubclass(kind, ast.Constant | ast.Global | ast.Nonlocal | ast.alias):
        return ()
    return tuple(name for name in reversed(kind._fields) if name not in syntax.LEAF_FIELDS)


def _walk(stack: list[Any], *, within: bool) -> Iterator[ast.AST]:  # Any: whatever a field holds
    """Yield the nodes on a stack and below them, last first; `within` also enters inner functions and classes."""
    while stack:
        node = stack.pop()
        kind = node.__class__
        parts = _parts(kind)
        if parts is None:
            continue
        yield node
        if within or kind not in _INNER:
            for name in parts:
                value = getattr(node, name, None)  # may be missing in a hand-built tree
                if value.__class__ is list:
                    stack.extend(reversed(value))
                else:
                    stack.append(value)  # non-nodes are skipped when they are popped


@syntax.tree_room.kept(64)
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return every node of a tree from the top down, in text order, without operators and contexts.

    This is three times as fast as `ast.walk`, and cached.
    """
    return tuple(_walk([tree], within=True))


@syntax.tree_room.kept(64)
def context_nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return the nodes of a tree in which `self` is the context of a call rather than an instance of a class."""
    classes = [node for node in nodes_of(tree) if isinstance(node, ast.ClassDef)]
    if not classes:
        return nodes_of(tree)
    functions_of_classes = (
        child for node in classes for child in node.body if isinstance(child, FunctionNode)
    )
    methods = [function for function in functions_of_classes if takes_self(function)]
    own = {id(node) for method in methods for node in nodes_of(method)}
    return tuple(node for node in nodes_of(tree) if id(node) not in own)


def is_self(node: ast.AST) -> bool:
    """Check whether a node is the name of the call's context."""
    return isinstance(node, ast.Name) and node.id == "self"


def is_given_self(node: ast.Call) -> bool:
    """Check whether a call passes the call's context on as its first argument."""
    return bool(node.args) and is_self(node.args[0])


def given_self(tree: ast.AST) -> set[str]:
    """Return the names of the functions that get the call's context from a tree: `fetch_customers(self, month)`."""
    return set[str]().union(
        *map(_given_self, tree.body if isinstance(tree, ast.Module) else [tree])
    )


@syntax.tree_room.kept(4096)  # a statement is read once, however many functions it runs with
def _given_self(tree: ast.AST) -> frozenset[str]:
    calls = [
        node for node in context_nodes(tree) if isinstance(node, ast.Call) and is_given_self(node)
    ]
    return frozenset(node.func.id for node in calls if isinstance(node.func, ast.Name))


def own_nodes(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a body except those of functions and classes defined in it."""
    return _walk(list(reversed(statements)), within=False)


@syntax.tree_room.kept(64)
def bound_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a module defines or imports at the top level."""
    names: set[str] = set()
    for node in own_nodes(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
    return frozenset(names) | {
        name for node in nodes_of(tree) if isinstance(node, ast.Global) for name in node.names
    }


def calls_of(tree: ast.AST, names: set[str]) -> set[str]:
    """Return the given names that a tree reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names}


def constants(tree: ast.AST) -> list[object]:
    """Return the distinct constants of a tree."""
    return [
        *{
            repr(node.value): node.value
            for node in nodes_of(tree)
            if isinstance(node, ast.Constant)
        }.values()
    ]


def literal(node: ast.expr | None) -> tuple[bool, object]:
    """Return whether an expression is a literal, and its value. A missing expression is the literal None."""
    if node is None:
        return True, None
    found = literal_value(node)
    return (True, found.value) if found else (False, None)


def expression(text: str) -> ast.expr | None:
    """Return the tree of an expression, or None if the text is not one."""
    try:
        return syntax.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def is_bare_call(text: str, name: str) -> bool:
    """Check whether a text is a call of a function and nothing else."""
    return is_call_of(expression(text), name)


def is_call_of(node: ast.AST | None, name: str) -> TypeGuard[ast.Call]:
    """Check whether a node is a call of a function by its name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


IMPLICIT = frozenset(
    {
        "__name__",
        "__file__",
        "__doc__",
        "__builtins__",
        "__spec__",
        "__package__",
        "__annotations__",
    }
)
_ALWAYS = BUILTINS | IMPLICIT


def missing_names(
    text: str, tree: ast.Module, known_names: frozenset[str] = frozenset()
) -> set[str]:
    """Return global names that are read but not defined; `known_names` are defined by the surrounding module."""
    bound = bound_names(tree)
    return set() if "*" in bound else {*_globals_read(text)} - bound - _ALWAYS - known_names


@lru_cache(maxsize=64)
def _globals_read(text: str) -> frozenset[str]:
    used: set[str] = set()
    try:
        _collect_globals(syntax.symbols(text), used)
    except SyntaxError:
        return frozenset()
    return frozenset(used)


def _collect_globals(table: symtable.SymbolTable, used: set[str]) -> None:
    at_top = table.get_type() == "module"
    # `get_symbols` would look through all inner scopes for each name.
    flags: dict[str, int] = vars(table)["_table"].symbols
    symbols = [symtable.Symbol(name, bits) for name, bits in flags.items()]
    read = [symbol for symbol in symbols if symbol.is_referenced() and not symbol.is_parameter()]
    used.update(symbol.get_name() for symbol in read if symbol.is_global() or at_top)
    for child in table.get_children():
        _collect_globals(child, used)

"""Detects functions that compute the same: a normal form of the tree, and an index of these forms.

Equal forms compute the same, but functions that compute the same may have different forms. A form ignores the names of
variables, type hints, docstrings and the order of keyword arguments. Private helpers, constants and imports of the
module are replaced by their meanings. The index follows the snapshot and only processes what changed.
"""

import ast
import asyncio
import hashlib
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base.offload import aside
from agent_core.base.records import dataclass, field, replace
from agent_core.base.syntax import tree_room
from agent_core.registry.tree import Scope, survey
from sandbox.wire.lines import lines_of

from .tree import BUILTINS, FunctionNode, body, nodes_of, own_nodes, parse, takes_self

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

_SLICE_S: Final = 0.005  # how long indexing may block the event loop
_SNAPSHOT_LIMIT: Final = 3  # whose forms are kept
_DROPPED: Final = frozenset(
    ["annotation", "returns", "type_comment", "type_params", "ctx", "kind", "simple"]
)
_LOOKS_UP: Final = frozenset(["locals", "vars", "eval", "exec", "globals", "dir"])
_EFFECTS: Final = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


Form: TypeAlias = tuple[str, ...]
"""The words of a normal form."""


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def normal_form(name: str, *texts: str, literals: list[str] | None = None) -> Form | None:
    """Return the normal form of a function, which the first text with its name defines; None if there is none.

    With a list of `literals`, the function's literals are appended to it and replaced by their types in the form.
    """
    scopes = tuple(scope for text in texts if (scope := _scope_of(text)))
    node = next((scope.definitions[name] for scope in scopes if name in scope.definitions), None)
    try:
        return _Names(scopes).form(node, literals) if node else None
    except RecursionError:
        return None


@tree_room.kept(64)
def _scope_of(text: str) -> Scope | None:
    tree = parse(text)
    return survey(tree) if isinstance(tree, ast.Module) else None


def special_ones(snapshot: "Snapshot") -> list[dict[str, tuple[str, ...]]]:
    """Return the groups of functions that differ only in literals: by name, their literals in the order of the form."""
    groups: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, function in sorted(snapshot.functions.items()):
        text, literals = snapshot.modules[function.module].text, list[str]()
        form = normal_form(name, text, literals=literals)
        if form is not None and literals:
            groups.setdefault(_digest(form), {})[name] = tuple(literals)
    return [group for group in groups.values() if len({*group.values()}) > 1]


def differing(rows: Collection[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the columns of literals that differ between the rows, without duplicates."""
    return [*dict.fromkeys(column for column in zip(*rows, strict=True) if len({*column}) > 1)]


@dataclass(slots=True)
class _Names:
    """The mapping of the names in a function to words of its form.

    Names that the function binds are numbered by first use; all others are replaced by their meaning in the module.
    """

    scopes: Sequence[Scope]
    visiting: tuple[str, ...] = ()
    meanings: dict[str, str] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    inner: frozenset[str] = (
        frozenset()
    )  # bound only in an inner scope: elsewhere it has its meaning in the module
    imported: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    literals: list[str] | None = None  # collects literals that are left out of the words

    def form(self, node: FunctionNode, literals: list[str] | None = None) -> Form:
        """Return the form of a function of the module."""
        nodes = nodes_of(node)
        shared = {
            name
            for inner in nodes
            if isinstance(inner, ast.Global | ast.Nonlocal)
            for name in inner.names
        }
        own = {argument.arg for argument in nodes_of(node.args) if isinstance(argument, ast.arg)}
        targets = {
            id(target)
            for inner in nodes
            if isinstance(inner, ast.comprehension)
            for target in nodes_of(inner)
        }
        own |= {
            name
            for inner in own_nodes(node.body)
            if id(inner) not in targets
            for name in _bound_names(inner)
        }
        every = {name for inner in nodes[1:] for name in _bound_names(inner)} | own
        imports = [inner for inner in nodes if isinstance(inner, ast.Import | ast.ImportFrom)]
        is_by_name = any(isinstance(inner, ast.Name) and inner.id in _LOOKS_UP for inner in nodes)
        bound = frozenset() if is_by_name else frozenset(every - shared)
        origins = {
            name: f"@{origin}"
            for name, origin in survey(ast.Module([*imports], [])).imports.items()
        }
        names = replace(
            self._inside(node.name), bound=bound, inner=frozenset(every - own), imported=origins
        )
        names.literals = literals
        return (str(takes_self(node)), *names._parts(node))

    def _inside(self, name: str) -> "_Names":
        """Return a mapping for the definition of a module name, with no names bound yet."""
        return _Names(self.scopes, (*self.visiting, name), self.meanings)

    def _word(self, name: str) -> str:
        if name not in self.bound:
            return self.imported.get(name) or self._meaning(name)
        number = self.numbers.setdefault(name, f"v{len(self.numbers)}")
        outer = self._meaning(name) if name in self.inner else "?"
        return number if outer.startswith("?") else f"{number}{outer}"

    def _meaning(self, name: str) -> str:
        """Return where a name was imported from, or the form of its definition."""
        if name in self.visiting:
            return f"~{len(self.visiting) - self.visiting.index(name)}"
        if name not in self.meanings:
            self.meanings[name] = next(self._meanings_of(name))
        return self.meanings[name]

    def _meanings_of(self, name: str) -> Iterator[str]:
        for scope in self.scopes:
            if name in scope.definitions:
                yield f"#{_digest(self.form(scope.definitions[name]))}"
            if name in scope.imports:
                yield f"@{scope.imports[name]}"
            if name in scope.classes or name in scope.values:
                words = self._inside(name)._words(scope.classes.get(name) or scope.values[name])
                yield f"={_digest(words)}"
        yield f"@{name}" if name in BUILTINS else f"?{name}"

    def _words(self, node: object) -> Iterator[str]:
        """Yield the words of a node, of a list of nodes, or of another field value."""
        match node:
            case ast.Name(id=name):
                yield self._word(name)
            case ast.expr() if self.literals is not None and (kind := literal_kind(node)):
                self.literals.append(ast.unparse(node))
                yield f"a {kind}"
            case ast.Constant(value=value):
                yield f"{type(value).__name__}:{hex(value) if type(value) is int else repr(value)}"
            case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
                pass  # imports count where they are used
            case ast.AnnAssign(target=target, value=value):
                yield from self._words(ast.Assign([target], value)) if value else ()
            case ast.Attribute(value=value, attr=attr):
                inner = [*self._words(value)]
                is_origin = len(inner) == 1 and inner[0].startswith("@")
                yield from [f"{inner[0]}.{attr}"] if is_origin else [".", *inner, f"n:{attr}"]
            case ast.ClassDef():  # literally, with the meanings of its names
                yield _digest([ast.dump(node)])
                yield from (
                    self._word(inner.id) for inner in nodes_of(node) if isinstance(inner, ast.Name)
                )
            case ast.AST():
                yield from self._parts(node)
            case list():
                yield from (word for part in node for word in self._words(part))
                yield ","
            case _:
                yield f"={node}"

    def _parts(self, node: ast.AST) -> Iterator[str]:
        """Yield the words of a node's fields."""
        names = _bound_names(node)
        yield f"{type(node).__name__}("
        for name in node._fields:
            value = getattr(node, name, None)
            if name in _DROPPED or (name in ("arg", "name", "rest") and names):
                continue
            if name == "keywords" and isinstance(value, list):
                is_free = not any(
                    isinstance(inner, _EFFECTS) for part in value for inner in ast.walk(part)
                )
                value = sorted(value, key=lambda keyword: keyword.arg or "~") if is_free else value
            yield from self._words(
                body(node) if name == "body" and isinstance(node, FunctionNode) else value
            )
        # The name of the function itself is not part of its form.
        yield from (
            self._word(name)
            for name in names
            if name not in self.visiting[-1:] or name in self.bound
        )
        yield ")"


def literal_kind(node: ast.expr) -> str:
    """Return the name of the type of a literal, or of a container of literals; otherwise an empty text."""
    if isinstance(node, ast.Constant | ast.UnaryOp | ast.List | ast.Tuple | ast.Set | ast.Dict):
        with suppress(ValueError, TypeError):
            return type(ast.literal_eval(node)).__name__
    return ""


def _bound_names(node: ast.AST) -> list[str]:
    """Return the names that a single node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case (
            ast.FunctionDef()
            | ast.AsyncFunctionDef()
            | ast.ExceptHandler()
            | ast.MatchAs()
            | ast.MatchStar()
        ):
            return [node.name] if node.name else []
        case ast.MatchMapping(rest=str(name)):
            return [name]
        case _:
            return []


def sketch(name: str, *texts: str) -> tuple[str, int]:
    """Return the hash of a function's form, and its size in words; an empty hash if there is no form."""
    form = normal_form(name, *texts)
    return (_digest(form), len(form)) if form else ("", 0)


_Place: TypeAlias = tuple[str, str, int]


def _place(function: "Function") -> _Place:
    return function.name, function.version, function.line


class Alike:
    """The functions of the last indexed snapshot, by form."""

    def __init__(self) -> None:
        self._digests: dict[_Place, str] = {}
        self._seen: list[tuple[str, str]] = []  # names and digests of the last snapshot
        self._indexed: Mapping[str, Function] | None = None  # its functions, once all are there
        self._turn = asyncio.Lock()

    async def see(self, snapshot: "Snapshot", most_s: float = math.inf) -> int:
        """Index a snapshot within the time limit, and return the number of functions that are left for the next time.

        Do not await anything between this call and the queries. Forms are kept by where they are in which text, for two
        snapshots at least: files that are judged side by side have a snapshot each.
        """
        async with self._turn:
            if snapshot.functions is self._indexed:  # of a file, each function is compared
                return 0
            since, until = time.monotonic(), time.monotonic() + most_s
            places = {_place(function): function for function in snapshot.functions.values()}
            if len(self._digests) > _SNAPSHOT_LIMIT * len(places):
                self._digests = {
                    place: digest for place, digest in self._digests.items() if place in places
                }
            fresh = [place for place in places if place not in self._digests]
            left = 0
            for at, place in enumerate(fresh):
                if at and time.monotonic() >= until:
                    left = len(fresh) - at
                    break
                function = places[place]
                text = snapshot.modules[function.module].text
                own = "".join(lines_of(text)[function.line - 1 : function.end_line])
                self._digests[place], _size = await aside(
                    len(text), sketch, function.name, own, text
                )
                if time.monotonic() - since > _SLICE_S:
                    await asyncio.sleep(0)
                    since = time.monotonic()
            self._seen = [(place[0], self._digests.get(place, "")) for place in places]
            self._indexed = None if left else snapshot.functions
            return left

    def copies(self, digest: str) -> list[str]:
        """Return the functions that compute the same."""
        return sorted(name for name, other in self._seen if digest and other == digest)

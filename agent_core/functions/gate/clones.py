"""Functions that compute the same as a given one: a normal form of the tree, and an index of forms.

Equal forms compute the same; the other way round nothing is promised. A form leaves out what a name is called, hints,
docstrings and the order of keyword arguments. Private helpers, constants and imports of the module count by what they
are. The index follows the snapshot: what did not change is not looked at again, nor what another process has stored.
"""

import ast
import asyncio
import hashlib
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from agent_core.base.offload import aside
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.tree import Scope, survey
from agent_core.storage import SaveSketches, Write
from sandbox.wire.foreign import DEEPEST_ROW, LOOSE, read_json
from sandbox.wire.lines import lines_of

from .tree import BUILTINS, FunctionNode, body, own_nodes, parse, takes_self

Word: TypeAlias = str | int  # a number stands for a name of the function's own
Key: TypeAlias = tuple[str, str, str]  # hashes: a function's own text, what stands around it, its whole module
T = TypeVar("T")

PROGRAM: Final = Path(__file__).parents[2]
MAKERS: Final = ("functions/gate/clones.py", "functions/gate/tree.py", "registry/tree.py")
"""The code that makes forms, below `PROGRAM`: what is stored is of another name once any of it changes."""

_SLICE_S = 0.005  # so long an index may be built without letting others act
_DROPPED = frozenset(["annotation", "returns", "type_comment", "type_params", "ctx", "kind", "simple"])
_LOOKS_UP = frozenset(["locals", "vars", "eval", "exec", "globals", "dir"])
_EFFECTS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True, slots=True)
class Form:
    """The words that describe what a function computes, and their hash."""

    digest: str
    words: tuple[str, ...]


def normal_form(name: str, *texts: str) -> Form | None:
    """Return the form of a function; the first text that knows a name defines it. None if there is no form."""
    trees = [parse(text) for text in texts]
    outer = _Outer([survey(tree) for tree in trees if isinstance(tree, ast.Module)])
    node = next((scope.definitions[name] for scope in outer.scopes if name in scope.definitions), None)
    try:
        return outer.form(node) if node else None
    except RecursionError:
        return None


@dataclass(slots=True)
class _Outer:
    """The meanings of the names that a function does not bind itself."""

    scopes: Sequence[Scope]
    visiting: list[str] = field(default_factory=list)
    meanings: dict[str, str] = field(default_factory=dict)

    def form(self, node: FunctionNode) -> Form:
        """Return the form of a function of the module."""
        is_by_name = any(isinstance(inner, ast.Name) and inner.id in _LOOKS_UP for inner in ast.walk(node))
        words = self._visited(node.name, lambda: _Writer(self.meaning, is_by_name=is_by_name).whole(node))
        return Form(_digest("\n".join(words)), tuple(words))

    def meaning(self, name: str) -> str:
        """Return where a name was imported from, or the form of what it stands for."""
        if name in self.visiting:
            return f"~{len(self.visiting) - self.visiting.index(name)}"
        if name not in self.meanings:
            self.meanings[name] = self._meaning(name)
        return self.meanings[name]

    def _meaning(self, name: str) -> str:
        for scope in self.scopes:
            if name in scope.definitions:
                return f"#{self.form(scope.definitions[name]).digest}"
            if name in scope.imports:
                return f"@{scope.imports[name]}"
            if name in scope.classes or name in scope.values:
                return self._value(name, scope.classes.get(name) or scope.values[name])
        return f"@{name}" if name in BUILTINS else f"?{name}"

    def _value(self, name: str, node: ast.AST) -> str:
        return "=" + _digest("\n".join(self._visited(name, lambda: _Writer(self.meaning).of(node))))

    def _visited(self, name: str, write: Callable[[], list[str]]) -> list[str]:
        self.visiting.append(name)
        try:
            return write()
        finally:
            self.visiting.pop()


class _Writer:
    """Writes a tree as words. Names stay as they are if something looks them up by text."""

    def __init__(self, meaning: Callable[[str], str], *, is_by_name: bool = False) -> None:
        self._meaning, self._is_by_name = meaning, is_by_name
        self._scopes: list[dict[str, Word]] = []  # around the place that is written, innermost last
        self._count = 0

    def whole(self, node: FunctionNode) -> list[str]:
        """Return the words of a function that a module defines: its own name does not count, nor that of `self`."""
        return self._numbered([str(takes_self(node)), *self._function(node)])

    def of(self, node: ast.AST) -> list[str]:
        """Return the words of a statement or an expression of a module."""
        return self._numbered(self._write(node))

    @staticmethod
    def _numbered(words: Iterable[Word]) -> list[str]:
        """Number the names that the function binds in the order of their first use."""
        numbers: dict[int, str] = {}
        return [word if isinstance(word, str) else numbers.setdefault(word, f"v{len(numbers)}") for word in words]

    def _write(self, node: object) -> Iterator[Word]:
        match node:
            case ast.Name(id=name):
                yield self._word(name)
            case ast.Constant(value=value):
                yield f"{type(value).__name__}:{hex(value) if type(value) is int else repr(value)}"
            case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
                pass  # what is imported counts where it is used
            case ast.AnnAssign(target=target, value=value):
                yield from self._write(ast.Assign([target], value)) if value else ()
            case ast.Attribute(value=value, attr=attr):
                inner = [*self._write(value)]
                is_origin = len(inner) == 1 and str(inner[0]).startswith("@")
                yield from [f"{inner[0]}.{attr}"] if is_origin else [".", *inner, f"n:{attr}"]
            case ast.Call():
                yield from self._call(node)
            case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from () if isinstance(node, ast.Lambda) else [self._word(node.name)]
                yield from self._function(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                yield from self._comprehension(node)
            case ast.ClassDef():  # as it stands, with what its names mean
                yield _digest(ast.dump(node))
                yield from (self._word(inner.id) for inner in ast.walk(node) if isinstance(inner, ast.Name))
            case ast.AST():
                yield from self._plainly(node)
            case _:
                yield from self._field(node)

    def _field(self, value: object) -> Iterator[Word]:
        match value:
            case [*parts]:
                yield from (word for part in parts for word in self._write(part))
                yield ","
            case str():  # the name of a handler, a pattern, a keyword
                yield self._word(value) if any(value in scope for scope in self._scopes) else f"n:{value}"
            case _:
                yield f"={value}"

    def _plainly(self, node: ast.AST) -> Iterator[Word]:
        yield from (type(node).__name__, "(")
        for name in node._fields:
            if name not in _DROPPED:
                value = getattr(node, name, None)
                yield from (self._write(value) if name != "kwd_attrs" else (f"n:{word}" for word in value or ()))
        yield ")"

    def _call(self, node: ast.Call) -> Iterator[Word]:
        keywords = node.keywords
        if not any(isinstance(inner, _EFFECTS) for keyword in keywords for inner in ast.walk(keyword.value)):
            keywords = sorted(keywords, key=lambda keyword: keyword.arg or "~")
        yield from ("Call", *self._write(node.func), *self._write(node.args))
        yield from (word for keyword in keywords for word in (f"k:{keyword.arg}", *self._write(keyword.value)))
        yield ")"

    def _function(self, node: FunctionNode | ast.Lambda) -> Iterator[Word]:
        """Yield the words of a function: kind and number of its parameters, their defaults, and the body."""
        given = node.args
        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        yield f"{type(node).__name__} {len(named)}{'*' * bool(given.vararg)}{'**' * bool(given.kwarg)}"
        yield from self._write([[] if isinstance(node, ast.Lambda) else node.decorator_list, given.defaults])
        yield from self._write(given.kw_defaults)
        scope: dict[str, Word] = {}
        for parameter in named:
            self._bind(parameter.arg, scope)
        statements: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*body(node)]
        yield from self._inside({**self._bound(statements), **scope}, [*scope.values()], statements)

    def _comprehension(self, node: _Comprehension) -> Iterator[Word]:
        scope: dict[str, Word] = {}
        for inner in ast.walk(ast.Tuple([generator.target for generator in node.generators])):
            self._bind(getattr(inner, "id", None), scope)
        first, *others = node.generators
        yield from (type(node).__name__, *self._write(first.iter))  # outside of its own names
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        yield from self._inside(scope, [f"for{first.is_async}"], [first.target, first.ifs, others, values])

    def _inside(self, scope: dict[str, Word], head: Sequence[Word], parts: Sequence[object]) -> Iterator[Word]:
        self._scopes.append(scope)
        yield from (*head, *self._write(parts))
        self._scopes.pop()

    def _word(self, name: str) -> Word:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None) or self._meaning(name)

    def _bind(self, name: object, scope: dict[str, Word]) -> None:
        if isinstance(name, str) and name not in scope:
            self._count += 1
            scope[name] = name if self._is_by_name else self._count

    def _bound(self, statements: list[ast.AST]) -> dict[str, Word]:
        """Return the names that a block binds, each with its number, or with what it was imported from."""
        scope: dict[str, Word] = {}
        declared: set[str] = set()
        nodes = [*own_nodes(statements)]
        targets = [node.target for node in nodes if isinstance(node, ast.comprehension)]
        others = {id(inner) for target in targets for inner in ast.walk(target)}
        for node in nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if id(node) not in others:
                    self._bind(name, scope)
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    declared.update(names)
                case ast.Import() | ast.ImportFrom():
                    scope |= {name: f"@{origin}" for name, origin in survey(ast.Module([node], [])).imports.items()}
                case ast.alias() | ast.arg() | ast.keyword():
                    pass
                case _:  # a definition, a handler, a pattern
                    self._bind(getattr(node, "name", None) or getattr(node, "rest", None), scope)
        return {name: word for name, word in scope.items() if name not in declared}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class IndexStore(Protocol):
    """The part of the store in which forms are kept."""

    async def sketches(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored sketches for these keys."""

    async def apply(self, writes: Sequence[Write]) -> None:
        """Store some sketches."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """The hash of a form and its size in words; one that `leans` needs a function that its module offers."""

    digest: str = ""
    size: int = 0
    leans: bool = False


def sketch(name: str, *texts: str, module: str = "") -> Sketch:
    """Return the sketch of the function that the texts define; `module` is read for names they leave open."""
    form = normal_form(name, *texts)
    leans = form is not None and any(word.startswith("?") for word in form.words)
    if leans and module:
        form = normal_form(name, *texts, module) or form
    return Sketch(form.digest, len(form.words), leans) if form else Sketch(leans=leans)


async def _find(store: IndexStore | None, keys: Mapping[str, Key]) -> dict[str, Sketch]:
    """Return the stored sketches of these functions."""
    if store is None or not keys:
        return {}
    row_keys = {name: _row_key(key) for name, key in keys.items()}
    rows = await store.sketches([*row_keys.values()])
    stored = {name: _read(rows[row_key], keys[name]) for name, row_key in row_keys.items() if row_key in rows}
    return {name: sketch for name, sketch in stored.items() if sketch is not None}


async def _keep(store: IndexStore | None, sketches: Mapping[Key, Sketch]) -> None:
    if store is not None and sketches:
        rows = {}
        for key, sketch in sketches.items():
            rows[_row_key(key)] = json.dumps([asdict(sketch), key[2]])
        await store.apply([SaveSketches(rows)])


def _read(text: str, key: Key) -> Sketch | None:
    """Return a stored sketch; None if it cannot be read, or depends on another text of its module."""
    try:
        fields, module = read_json(text, LOOSE, deepest=DEEPEST_ROW)
        sketch = Sketch(str(fields["digest"]), int(fields["size"]), bool(fields["leans"]))
    except (ValueError, TypeError, KeyError):
        return None
    return sketch if module == key[2] or not sketch.leans else None


def _row_key(key: Key) -> str:
    return hashlib.sha256("\n".join((_maker(), *key[:2])).encode()).hexdigest()


@cache
def _maker() -> str:
    """Return a hash of the code that makes forms, and of the Python that parses them."""
    return hashlib.sha256(repr(sys.version_info[:2]).encode() + code_hash(PROGRAM)).hexdigest()


def code_hash(root: Path) -> bytes:
    """Return a hash of the code that makes forms, in the program below a folder."""
    return hashlib.sha256(b"\0".join((root / maker).read_bytes() for maker in MAKERS)).digest()


class Alike:
    """The functions of the last snapshot that was indexed, ready to be compared."""

    def __init__(self, store: IndexStore | None = None) -> None:
        self._store = store
        self._seen: Mapping[str, Function] = {}
        self._left: frozenset[str] = frozenset()
        self._keys: dict[str, Key] = {}
        self._sketches: dict[str, Sketch] = {}
        self._by_digest: defaultdict[str, set[str]] = defaultdict(set)

    async def see(self, snapshot: Snapshot, most_s: float = math.inf) -> int:
        """Index a snapshot within the time limit, and return how many functions are left for the next time.

        Nothing may be awaited between this and what is asked of it.
        """
        until = time.monotonic() + most_s
        while self._left or snapshot.functions is not self._seen:
            seen = self._seen
            fresh, pending = await self._fresh(snapshot, until)
            if self._seen is seen:  # nobody else took another one meanwhile
                self._take(snapshot, fresh, pending)
            if snapshot.functions is self._seen and time.monotonic() >= until:
                break
        return len(self._left)

    def _take(self, snapshot: Snapshot, fresh: Mapping[str, tuple[Key, Sketch]], pending: frozenset[str]) -> None:
        for name in [*self._sketches]:
            if name not in snapshot.functions or name in fresh or name in pending:
                old = self._sketches.pop(name)
                del self._keys[name]
                self._by_digest[old.digest].discard(name)
        for name, (key, sketch) in fresh.items():
            self._keys[name], self._sketches[name] = key, sketch
            self._by_digest[sketch.digest].add(name)
        self._seen, self._left = snapshot.functions, pending

    async def _fresh(self, snapshot: Snapshot, until: float) -> tuple[dict[str, tuple[Key, Sketch]], frozenset[str]]:
        """Return the sketches of changed functions, and the names of those for which there was no time."""
        jobs = {job.function.name: job async for job in _with_pauses(self._wanted(snapshot))}
        sketches = await _find(self._store, {name: job.key for name, job in jobs.items()})
        made: dict[Key, Sketch] = {}
        async for name, job in _with_pauses((name, job) for name, job in jobs.items() if name not in sketches):
            if time.monotonic() >= until and made:
                break
            made[job.key] = sketches[name] = await aside(len(job.module), job.sketch)
        await _keep(self._store, made)
        fresh = {name: (jobs[name].key, sketch) for name, sketch in sketches.items()}
        return fresh, frozenset(jobs.keys() - sketches.keys())

    def _wanted(self, snapshot: Snapshot) -> Iterator["_Wanted"]:
        """Yield the functions that have no current sketch."""
        seen, pending = self._seen, self._left
        functions = snapshot.functions.items()
        changed = [one for name, one in functions if seen.get(name) is not one or name in pending]
        for module in dict.fromkeys(function.module for function in changed):
            around, source = surroundings(module, snapshot), snapshot.modules[module]
            mark = hashlib.sha256(around.encode("utf-8", "surrogatepass")).hexdigest()
            for function in snapshot.readings[module].functions:
                name, key = function.name, (function.body_hash, mark, source.version)
                if snapshot.functions.get(name) is function and not self._holds(name, key):
                    yield _Wanted(function, key, around, source.text)

    def _holds(self, name: str, key: Key) -> bool:
        """Check whether a function's sketch is stored and would be the same again."""
        parts = 3 if name in self._keys and self._sketches[name].leans else 2
        return name in self._keys and self._keys[name][:parts] == key[:parts]

    def copies(self, sketch: Sketch) -> list[str]:
        """Return the functions that compute the same."""
        return sorted(self._by_digest.get(sketch.digest, ())) if sketch.digest else []


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A function that needs a sketch, with its module's text and the part of it that stands around functions."""

    function: Function
    key: Key
    around: str
    module: str

    def sketch(self) -> Sketch:
        own = "".join(lines_of(self.module)[self.function.line - 1 : self.function.end_line])
        return sketch(self.function.name, own, self.around, module=self.module)


async def _with_pauses(things: Iterable[T]) -> AsyncIterator[T]:
    """Yield each item, and let other tasks run now and then."""
    since = time.perf_counter()
    for item in things:
        yield item
        if time.perf_counter() - since > _SLICE_S:
            await asyncio.sleep(0)
            since = time.perf_counter()


def surroundings(module: str, snapshot: Snapshot) -> str:
    """Return a module's text without the functions it exports: imports, constants, helpers."""
    source = snapshot.modules.get(module)
    if source is None:
        return ""
    lines = lines_of(source.text)
    for function in snapshot.readings[module].functions:
        lines[function.line - 1 : function.end_line] = [""] * (function.end_line - function.line + 1)
    return "".join(lines)

"""The dependencies of a workspace's code: one graph for hashes, users, approvals, imports and rollbacks.

It is built from syntax trees; nothing runs. A module is a list of top-level statements. Each is analyzed once and
reused in every version of its module. Names that are computed at run time are not seen, and any equal name counts as a
use.
"""

import ast
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass
from agent_core.base.syntax import tree_of
from sandbox.wire.lines import bare_lines, lines_of

from . import examples
from .module_edits import remove_from_all
from .source import (
    FOLDER,
    ModuleSource,
    ParsedText,
    blocks,
    bound_names,
    callee,
    first_line,
    is_bare_value,
    is_blank,
    is_helper,
    is_literal,
    last_line,
    parse,
    parse_accepted,
    written,
)
from .tree import Definition, imported_module, survey

if TYPE_CHECKING:
    from .function import Function
    from .registry import Snapshot

Names: TypeAlias = frozenset[str]
Part: TypeAlias = tuple[str, str]
"""A module and a name in it; an empty name stands for what runs at the module's import."""
_GROUND: Final = ""  # the name of statements that do not bind names
_ITS_IMPORT: Final = "."  # a name that nothing binds: selects only what runs at the import of an enclosing package
_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Statement:
    """The names that a top-level statement of a module binds and mentions.

    `names` are all names in it. `words` also include attributes and the functions in `called`, which it calls by
    `self.call`. `reads` excludes a function's local names and includes those in quoted annotations. `shows` are the
    names in its examples. `imports` are tuples of level, module and name.
    """

    binds: Names
    names: Names
    words: Names
    called: Names
    reads: Names
    shows: Names
    modifies: Names  # values of the module, judged by the text alone
    runs: Names  # functions called for their effects
    shared: Names  # names declared `global`
    imports: tuple[tuple[int, str, str], ...]

    @classmethod
    def of(cls, node: ast.stmt) -> "Statement":
        """Return the facts about a statement."""
        inner = [*ast.walk(node)]
        names, shared = _names(inner), _shared(inner)
        calls = [part for part in inner if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "call"]
        first = [argument.value for call in calls for argument in call.args[:1] if isinstance(argument, ast.Constant)]
        called = frozenset(word for word in first if isinstance(word, str))
        reads, own = _names_read(node), set[str]()
        roots, runs = _modifications(node)
        if isinstance(node, Definition):
            head = _in_text(node.returns).union(*map(_names_read, [*node.decorator_list, node.args]))
            head |= _names_read(node.returns) if node.returns else set()
            # A function's local names hide names of the module.
            body = [part for statement in node.body for part in ast.walk(statement)]
            loops = [part.target for part in body if isinstance(part, ast.comprehension)]
            targets = {name.id for target in loops for name in ast.walk(target) if isinstance(name, ast.Name)}
            arguments = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
            own = arguments.union(*map(bound_names, node.body)) - targets - shared
            reads = head.union(*map(_names_read, node.body)) - (own - head)
            roots = (roots - own) | shared
        elif isinstance(node, ast.AnnAssign) or isinstance(getattr(node, "value", None), ast.Subscript):
            reads |= _in_text(getattr(node, "value", None))  # an alias may have the name of a class in quotes
        return cls(
            binds=frozenset(bound_names(node)),
            names=names,
            words=called.union(names, (part.attr for part in inner if isinstance(part, ast.Attribute))),
            called=called,
            reads=frozenset(reads),
            shows=frozenset(_names_in_examples(node)),
            modifies=frozenset(roots),
            runs=frozenset(runs),
            shared=shared,
            imports=tuple(
                (part.level, part.module or "", alias.name)
                if isinstance(part, ast.ImportFrom)
                else (-1, alias.name, "")
                for part in inner
                if isinstance(part, ast.Import | ast.ImportFrom)
                for alias in part.names
            ),
        )


def _names(nodes: Iterable[ast.AST]) -> Names:
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def _shared(nodes: Iterable[ast.AST]) -> Names:
    return frozenset(name for node in nodes if isinstance(node, ast.Global) for name in node.names)


@lru_cache(maxsize=4096)
def _statement(text: str) -> Statement | None:
    """Return the facts about a statement by its text, cached across versions of its module."""
    try:
        body = syntax.parse(text).body
    except _NOT_PYTHON:
        return None
    return Statement.of(body[0]) if len(body) == 1 else None


@lru_cache(maxsize=64)
def _statements(text: str) -> tuple[tuple[ast.stmt, Statement, str], ...]:
    """Return the top-level statements of a text with their facts, and their text if they share no line.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the text is not valid Python, or too deep.
    """
    body, lines, above = tree_of(text).body, lines_of(text), 0
    statements = []
    for node, following in zip(body, [*body[1:], None], strict=False):
        first, last = first_line(node), last_line(node)
        is_alone = above < first and (following is None or last < following.lineno)
        own = "".join(lines[first - 1 : last]) if is_alone else ""
        facts = _statement(own)
        statements.append((node, facts or Statement.of(node), own if facts else ""))
        above = last
    return tuple(statements)


def _names_read(node: ast.AST) -> set[str]:
    """Return every name in a node, including names in quoted annotations."""
    names = set[str]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.add(inner.id)
        elif isinstance(inner, ast.arg | ast.AnnAssign | Definition):
            names |= _in_text(inner.returns if isinstance(inner, Definition) else inner.annotation)
    return names


def _in_text(hint: ast.expr | None) -> set[str]:
    texts = (part.value for part in ast.walk(hint or ast.Pass()) if isinstance(part, ast.Constant))
    return set().union(*(_names_in(text, "eval") for text in texts if isinstance(text, str)))


def _names_in(text: str, mode: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(syntax.parse(text, "", mode)) if isinstance(node, ast.Name)}
    except _NOT_PYTHON:
        return set()


def _names_in_examples(node: ast.stmt) -> set[str]:
    """Return the names that the examples in a function's docstring read."""
    words = ast.get_docstring(node) if isinstance(node, Definition) else None
    try:
        entries = list(examples.find(words)) if words and ">>>" in words else []
    except ValueError:
        return set()
    return set().union(*(_names_in(entry.source, "exec") for entry in entries))


def _modifications(node: ast.stmt) -> tuple[set[str], set[str]]:
    """Return the names of the values that a statement modifies, and the functions that it calls for their effects.

    Examples are `TABLE["a"] = 1`, `TABLE.update(…)` and `fill(TABLE)`, also in nested blocks. For a function, these are
    the names that its calls modify.
    """
    roots, runs = set[str](), set[str]()
    waiting = [node]
    while waiting:
        match waiting.pop():
            case ast.For() | ast.While() | ast.If() | ast.With() | ast.Try() as block:
                waiting += blocks(block)
            case ast.FunctionDef() | ast.AsyncFunctionDef() as function if function is node:
                waiting += (part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                runs.add(name)
            case ast.Assign(targets=targets):
                roots |= {*filter(None, (_root(each) for each in targets if not isinstance(each, ast.Name)))}
            case ast.AugAssign(target=target) | ast.Expr(value=ast.Call(func=ast.Attribute(value=target))):
                roots |= {*filter(None, [_root(target)])}
    return roots, runs


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# A module by its statements, and what its functions need of it.


@dataclass(frozen=True)
class ModuleParts:
    """A module as statements, with the names that each binds and changes, and the public functions.

    `binds` contains "*" for statements that are always needed; `changes` are the module's values that a statement
    changes.
    """

    text: ParsedText
    statements: tuple[Statement, ...]
    binds: tuple[Names, ...]
    changes: tuple[Names, ...]
    public: tuple[str, ...]

    @classmethod
    def of(cls, text: str, path: str = "module", module: str = "") -> "ModuleParts | Problem":
        """Return the parts of a text, or why it cannot be parsed; a helper module has no public functions."""
        return _parts(text, path, is_helper(module))

    def definition(self, name: str) -> Definition:
        """Return the last definition of a public function."""
        return [node for node in self.text.body if isinstance(node, Definition) and node.name == name][-1]

    def exported(self) -> frozenset[str]:
        """Return the strings in the module's `__all__`."""
        listed = [node for node, bound in zip(self.text.body, self.binds, strict=True) if "__all__" in bound]
        constants = (part.value for node in listed for part in ast.walk(node) if isinstance(part, ast.Constant))
        return frozenset(value for value in constants if isinstance(value, str))

    def needed(self, names: Iterable[str], stop: Set[str] = frozenset()) -> set[int]:
        """Return the statements that these functions and their examples need, including their own.

        Functions in `stop`, and what only they need, are left out.
        """
        wanted, known = {*names}, {name for bound in self.binds for name in bound}
        pairs = zip(self.binds, self.statements, strict=True)
        shown = {name for bound, facts in pairs if bound & wanted for name in facts.shows & known}
        always = {at for at, bound in enumerate(self.binds) if "*" in bound}
        return always | _reach(wanted | shown, *self._needs, stop, always)

    @cached_property
    def _needs(self) -> tuple[Mapping[str, Sequence[int]], Sequence[Names]]:
        changing = [bound | changed for bound, changed in zip(self.binds, self.changes, strict=True)]
        reading = [facts.reads | changed for facts, changed in zip(self.statements, self.changes, strict=True)]
        return _places(changing), reading

    def referred(self, at: int) -> set[int]:
        """Return the imports and private statements that a statement refers to, without public functions."""
        functions = {other for other, node in enumerate(self.text.body) if isinstance(node, Definition)}
        public = {other for other in functions if not any(name.startswith("_") for name in self.binds[other])}
        words = [facts.names | facts.reads for facts in self.statements]
        return _reach({*words[at], "*"}, _places(self.binds), words, passed={at, *public})

    def lines(self, statements: Set[int]) -> set[int]:
        """Return the lines of these statements, including their comments, and of all that share a line with them."""
        rows = {self._rows[at] for at in statements}
        spans = [self.text.span(node) for node, row in zip(self.text.body, self._rows, strict=True) if row in rows]
        return {line for first, last in spans for line in range(first, last + 1)}

    @cached_property
    def _rows(self) -> list[int]:
        """The number of each statement's lines, which it has in common with the statements that share one of them."""
        ends = [0, *map(last_line, self.text.body)]
        return [*accumulate(int(first_line(node) > end) for node, end in zip(self.text.body, ends, strict=False))]

    def part(self, statements: Set[int]) -> str:
        """Return the text of these statements only, each on its original lines."""
        shown = self.lines(statements)
        kept = (line if at in shown else "\n" for at, line in enumerate(self.text.lines, 1))
        return "".join(kept).rstrip() + "\n"


def _places(binds: Iterable[Names]) -> Mapping[str, Sequence[int]]:
    """Return the statements that bind each name."""
    places: dict[str, list[int]] = {}
    for at, bound in enumerate(binds):
        for name in bound:
            places.setdefault(name, []).append(at)
    return places


def _reach(
    names: Set[str],
    places: Mapping[str, Sequence[int]],
    words: Sequence[Names],
    stop: Set[str] = frozenset(),
    passed: Set[int] = frozenset(),
) -> set[int]:
    """Return the statements that can be reached from names through the words of each statement.

    The search stops at names in `stop` and skips statements in `passed`.
    """
    found, seen = set[int](), names | stop
    waiting = [*(names - stop)]
    while waiting:
        new = {at for at in places.get(waiting.pop(), ()) if at not in found and at not in passed}
        found |= new
        more = set().union(*(words[at] for at in new)) - seen
        seen |= more
        waiting += more
    return found


@lru_cache(maxsize=64)
def _parts(text: str, path: str, is_private: bool) -> ModuleParts | Problem:  # noqa: FBT001 - a fact about the module
    tree = parse(ModuleSource(path, path, text, ""))
    if isinstance(tree, Problem):
        return tree
    public = () if is_private else tuple(node.name for node in survey(tree).public() if node in tree.body)
    pairs = [(node, facts) for node, facts, _ in _statements(text)]
    body = tuple(node for node, *_ in pairs)
    values = {
        name
        for node, facts in pairs
        if not isinstance(node, ast.Import | ast.ImportFrom)
        for name in _names_needed(node, facts)
    }
    # The values that a call of each function modifies, directly or through other functions.
    functions = {node.name: facts for node, facts in pairs if isinstance(node, Definition)}
    setters = dict[str, Names]()
    wider: dict[str, Names] = {name: facts.modifies & values for name, facts in functions.items()}
    while wider != setters:
        setters = wider
        wider = {
            name: own.union(*(setters[other] for other in functions[name].names & setters.keys()))
            for name, own in setters.items()
        }

    def changed(node: ast.stmt, statement: Statement) -> Names:
        if not isinstance(node, Definition | ast.ClassDef):
            return statement.modifies.union(*(setters.get(name, ()) for name in statement.runs))
        if node.name in public:
            return frozenset()
        # A private function or a class may be registered: `@register("a")`, `@shown.register`.
        marks = [callee(mark) for mark in node.decorator_list]
        called = set().union(*(setters.get(mark.id, ()) for mark in marks if isinstance(mark, ast.Name)))
        return frozenset(called | {_root(mark) for mark in marks if isinstance(mark, ast.Attribute)} & values)

    return ModuleParts(
        ParsedText(tuple(lines_of(text)), body),
        tuple(facts for _, facts in pairs),
        tuple(_names_needed(*pair) for pair in pairs),
        tuple(changed(*pair) for pair in pairs),
        public,
    )


def _names_needed(node: ast.stmt, statement: Statement) -> Names:
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return frozenset({"*"}) if is_future else statement.binds


def only(text: str, names: Set[str]) -> str | Problem:
    """Return a module's text reduced to some of its public functions and what they need."""
    parts = ModuleParts.of(text)
    if isinstance(parts, Problem):
        return parts
    stays = parts.needed(names)
    for at, (node, bound) in enumerate(zip(parts.text.body, parts.binds, strict=True)):
        stays |= {at} if (at == 0 and is_bare_value(node)) or "__all__" in bound else set()
    shown = parts.lines(stays)
    gone = parts.lines(set(range(len(parts.binds))) - stays) - shown
    lines: list[str] = []
    for at, line in enumerate(parts.text.lines, 1):
        is_spare = is_blank(line) and at not in shown and all(map(is_blank, lines[-2:]))
        lines += [] if at in gone or is_spare else [line]
    dropped = {name for at, bound in enumerate(parts.binds) if at not in stays for name in bound}
    dropped -= {name for at in stays for name in parts.binds[at]}
    return remove_from_all("".join(lines).rstrip("\r\n") + parts.text.newline, dropped & parts.exported())


def running_with(text: str, name: str) -> list[ast.stmt]:
    """Return the statements of a module that run with one of its functions, in text order.

    These are the statements that it depends on and those that bind nothing, without `if __name__ == "__main__"` blocks.
    """
    nodes, places, names = _running(text)
    return [nodes[at] for at in sorted(_reach({name, _GROUND}, places, names))]


@lru_cache(maxsize=64)
def _running(text: str) -> tuple[Sequence[ast.stmt], Mapping[str, Sequence[int]], Sequence[Names]]:
    nodes = [node for node in tree_of(text).body if not (is_bare_value(node) or is_program(node))]
    binds, names = list[Names](), list[Names]()
    for node in nodes:  # only these facts of a `Statement`: all of them would take most of a listing's time
        inner = [*ast.walk(node)]
        own = {node.name} if isinstance(node, Definition | ast.ClassDef) else bound_names(node)
        binds.append(_shared(inner).union(own) or frozenset({_GROUND}))
        names.append(_names(inner))
    return nodes, _places(binds), names


def is_program(node: ast.stmt) -> bool:
    """Check whether a statement only runs when its module is the program: `if __name__ == "__main__": …`."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "__name__ == '__main__'"


# Functions by name, and their callers.


def callers(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the functions that mention another function by name, sorted."""
    modules = {module for module, source in snapshot.modules.items() if name in source.text}
    return sorted(
        caller
        for caller, function in snapshot.functions.items()
        if function.module in modules and caller != name and name in uses(function, snapshot)
    )


def dependents(names: Iterable[str], snapshot: "Snapshot") -> list[str]:
    """Return the functions that use any of these functions, directly or indirectly; the nearest first."""
    start = list(names)
    reached = dict.fromkeys(start)
    waiting = list(start)
    while waiting:
        direct_callers = [caller for name in waiting for caller in callers(name, snapshot) if caller not in reached]
        waiting = list(dict.fromkeys(direct_callers))
        reached |= dict.fromkeys(waiting)
    return [name for name in reached if name not in start]


def private_users(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules, its own included, in which code other than the function mentions it by name, sorted."""
    own = snapshot.functions[name].module
    near = [own, *(module for module, reading in snapshot.readings.items() if own in reading.imports)]
    texts = {module: snapshot.modules[module].text for module in near}
    return sorted(
        module
        for module, text in texts.items()
        if name in text
        and any(name in piece.words for key, piece in _pieces(text).items() if (module, key) != (own, name))
    )


def importers(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules that import a function by name."""
    return [
        module
        for module, source in snapshot.modules.items()
        if name in source.text
        and any(
            level >= 0 and imported == name
            for _, facts, _ in _statements(source.text)
            for level, _, imported in facts.imports
        )
    ]


def callees(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the functions that a function mentions, sorted."""
    return sorted(uses(snapshot.functions[name], snapshot) & snapshot.functions.keys() - {name})


def uses(function: "Function", snapshot: "Snapshot") -> frozenset[str]:
    """Return every name that the source of a function mentions, including its module's private helpers."""
    return _mentions(snapshot.modules[function.module].text, function.name)


@lru_cache(maxsize=1024)
def _mentions(text: str, name: str) -> frozenset[str]:
    words, imported = _defined_words(text)
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for word in words[waiting.pop()]:
            real = imported.get(word, word)
            if real not in seen:
                seen.add(real)
                if real in words and real.startswith("_"):
                    waiting.append(real)
    return frozenset(seen)


@lru_cache(maxsize=64)  # functions of one module are processed together
def _defined_words(text: str) -> tuple[Mapping[str, Names], Mapping[str, str]]:
    """Return the words of each definition in a module, and the original names of renamed imports."""
    tree = tree_of(text)
    known = {id(node): facts for node, facts, _ in _statements(text)}
    found = survey(tree).definitions
    words = {name: (known.get(id(node)) or Statement.of(node)).words for name, node in found.items()}
    renamed = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname]
    return words, {alias.asname: alias.name for alias in renamed if alias.asname}


@lru_cache(maxsize=256)  # all versions of a module are read for each of its functions
def offered_sources(text: str) -> Mapping[str, str]:
    """Return the source of each function that a module offers, from its first decorator on."""
    tree, lines = parse_accepted(ModuleSource("", "", text, "")), lines_of(text)
    nodes = survey(tree).public() if isinstance(tree, ast.Module) else []
    return {node.name: "".join(lines[first_line(node) - 1 : node.end_lineno]) for node in nodes}


def using_modules(module: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules that import a module or call its functions by name, directly or indirectly."""
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


def modules_of(module: str, snapshot: "Snapshot") -> Mapping[str, ModuleSource]:
    """Return a module with its enclosing packages and all their imports, recursively."""
    modules: dict[str, ModuleSource] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        for around in (*_packages(name), name):
            source = snapshot.modules.get(around)
            if source is not None and around not in modules:
                modules[around] = source
                waiting += snapshot.readings[around].imports
    return modules


def _packages(module: str) -> Iterator[str]:
    pieces = module.split(".")
    yield from (".".join(pieces[:size]) for size in range(1, len(pieces)))


# The code that determines a function's results: its hash is stored with the findings about them.


@dataclass(frozen=True, slots=True)
class _Piece:
    """The statements that bind a name at the top of a module: their hash without docstrings, and what they mention."""

    digest: str
    words: Names
    called: Names


def code_hash(function: "Function", snapshot: "Snapshot") -> str:
    """Return the hash of a function's own text and of all workspace code that it may use.

    This includes helpers, constants and classes of its module, and functions of other modules, recursively.
    """
    digests: dict[Part, str] = {}
    waiting = [(function.module, function.name), (function.module, _GROUND)]
    while waiting:
        module, name = waiting.pop()
        piece = _pieces(snapshot.modules[module].text).get(name)
        if piece is None or (module, name) in digests:
            continue
        digests[module, name] = piece.digest
        reading = snapshot.readings.get(module)
        for related in (module, *(reading.imports if reading else ())):
            if (source := snapshot.modules.get(related)) is not None:
                waiting += ((related, word) for word in piece.words & _pieces(source.text).keys() | {_GROUND})
        waiting += ((snapshot.functions[name].module, name) for name in piece.called & snapshot.functions.keys())
    digests[function.module, function.name] = function.body_hash
    return hashlib.sha256(repr(sorted(digests.items())).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=256)
def _pieces(text: str) -> Mapping[str, _Piece]:
    pieces: dict[str, list[tuple[ast.stmt, Statement]]] = {_GROUND: []}
    for node, facts, _ in _statements(text):
        # A decorator may store its function or class anywhere in the module.
        is_ground = not facts.binds or getattr(node, "decorator_list", None)
        for name in facts.binds | ({_GROUND} if is_ground else set()):
            pieces.setdefault(name, []).append((node, facts))
    lines = lines_of(text)
    found = dict[str, _Piece]()
    for name, pairs in pieces.items():
        words = {name or module for _, facts in pairs for _, module, name in facts.imports}
        words |= {word for _, facts in pairs for word in facts.words | facts.reads}
        called = {word for _, facts in pairs for word in facts.called}
        shown = "\n".join(_tree_text(node, lines) for node, _ in pairs)
        digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
        found[name] = _Piece(digest, frozenset(words), frozenset(called))
    return found


def _tree_text(node: ast.stmt, lines: list[str]) -> str:
    """Return the dump of a statement's tree without its docstring."""
    bare: ast.AST = node
    if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
        bare = type(node)(**{**dict(ast.iter_fields(node)), "body": node.body[1:]})
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        bare = ast.Pass()
    try:
        return ast.dump(bare)
    except RecursionError:
        return "".join(lines[node.lineno - 1 : last_line(node)])


# The text that an approval covers: a part of a module counts if it is named, or if defining it runs something.

# Words by which a text may reach code that it does not name.
_PLAIN_DUNDERS: Final = (
    "init|post_init|name|main|future|all|doc|enter|exit|iter|next|len|repr|str|eq|hash|call|slots|contains|getitem"
)
_REACHING: Final = re.compile(
    rf"\b(globals|vars|eval|exec|(?<!\bre\.)compile|getattr|setattr|attrgetter|methodcaller|sys|inspect|importlib|gc|types|pickle"
    rf"|marshal|builtins|runpy|pkgutil|pydoc|unittest|mock|doctest|traceback|tb_frame|\w+_frame|_getframe|f_globals|f_back"
    rf"|Formatter|timeit|pdb|bdb|codeop|cProfile|__(?!(?:{_PLAIN_DUNDERS})__)\w+__"
    rf"|(?:import|from)\s+(?:[\w.]+\s*,\s*)*(?:code|profile|trace))\b"
)
# Words by which a text may see its line numbers or its own source.
_SEEING: Final = re.compile(
    rf"{_REACHING.pattern}|\b(warnings|logging|linecache|tokenize|lineno|f?trace|profile|cProfile|tracemalloc|\w*format_map"
    r"|Formatter|help|locals|dir|ast|dis|code|symtable|faulthandler)\b"
)


@dataclass(frozen=True, slots=True)
class ApprovedStatement:
    """A top-level statement of a module with the names it binds; an inert one only matters if these are used."""

    text: str
    code: str  # its text without layout; empty if something in it may see the layout
    binds: Names
    names: Names
    imports: tuple[Part, ...]  # from the workspace: module, and name in it or "" for the whole module
    is_inert: bool


def parts_of(part: Part, texts: Mapping[str, str]) -> Mapping[Part, str]:
    """Return the text of every part, in these modules, that a function's behavior depends on."""
    parts: dict[Part, str] = {}
    for key, statements in approved_parts(part, texts).items():
        for statement in statements:
            if statement.text not in parts.get(key, ""):
                parts[key] = f"{parts[key]}\n{statement.text}" if key in parts else statement.text
    return parts


def approved_parts(part: Part, texts: Mapping[str, str]) -> Mapping[Part, Sequence[ApprovedStatement]]:
    """Return the statements of every part, in these modules, that a function's behavior depends on, in text order."""
    parts: dict[Part, set[ApprovedStatement]] = {}
    waiting: list[Part] = [part, *((package, _ITS_IMPORT) for package in _packages(part[0]))]
    seen: set[Part] = set()
    while waiting:
        module, name = waiting.pop()
        if (module, name) in seen or (text := texts.get(module)) is None:
            continue
        seen.add((module, name))
        for statement in approved_statements(text, module):
            if name and statement.is_inert and name not in statement.binds:
                continue
            parts.setdefault((module, min(statement.binds) if statement.is_inert else ""), set()).add(statement)
            waiting += [(module, used) for used in statement.names]
            for base, imported in statement.imports:
                inner = f"{base}.{imported}".strip(".")
                target = (inner, "") if inner in texts else (base, imported)
                waiting += [*((package, _ITS_IMPORT) for package in _packages(target[0])), target]
    # The search visits statements in an order that differs between processes, so sort them.
    return {key: [one for one in approved_statements(texts[key[0]], key[0]) if one in parts[key]] for key in parts}


@lru_cache(maxsize=512)
def approved_statements(text: str, module: str) -> tuple[ApprovedStatement, ...]:
    """Return the statements of a module; if it is not valid Python, its whole text as one statement."""
    lines = bare_lines(text)
    try:
        found = _statements(text)
        known = _known_names([(node, facts) for node, facts, _ in found])
        return tuple(_approved_statement(*each, lines, module, known) for each in found)
    except _NOT_PYTHON:
        return (ApprovedStatement(text, "", frozenset(), frozenset(), (), is_inert=False),)


def _approved_statement(
    node: ast.stmt, statement: Statement, own: str, lines: list[str], module: str, known: Mapping[str, str]
) -> ApprovedStatement:
    text = "\n".join(lines[first_line(node) - 1 : node.end_lineno]) if own else written(node, lines)
    binds = frozenset({"__doc__"}) if is_bare_value(node) else statement.binds
    imports: list[Part] = []
    for level, base, name in statement.imports:
        home = base if level <= 0 else imported_module(base, level, f"{FOLDER}.{module}")
        if home == FOLDER or home.startswith(f"{FOLDER}."):
            imports.append((home.removeprefix(FOLDER).lstrip("."), "" if name == "*" else name))
    if _REACHING.search(text):  # it may reach every name of its module
        imports.append((module, ""))
    code = _code_of(own) if own else _code(node, text)
    is_inert = bool(binds) and _is_inert(node, known)
    return ApprovedStatement(text, code, binds, statement.names | statement.reads, tuple(imports), is_inert=is_inert)


@lru_cache(maxsize=1024)
def _code_of(own: str) -> str:
    return _code(syntax.parse(own).body[0], own)


def _code(node: ast.stmt, text: str) -> str:
    """Return a statement without its layout; an empty text if something in it may see the layout."""
    return "" if _SEEING.search(f"{text}\n{ast.unparse(node)}") else ast.dump(node)


# Statements that only bind names: they run no code of the workspace. Anything unknown counts as running code.

_Decorated: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Calls that run no code of the workspace if their arguments are values.
_VALUES: Final = frozenset(
    {"re.compile", "frozenset", "set", "dict", "list", "tuple", "decimal.Decimal", "fractions.Fraction"}
    | {"datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "pathlib.Path"}
)
_DECORATORS: Final = frozenset(
    {"functools.cache", "functools.lru_cache", "contextlib.contextmanager", "dataclasses.dataclass"}
    | {"staticmethod", "classmethod", "property"}
)
_BASES: Final = frozenset(
    {"object", "typing.NamedTuple", "typing.TypedDict", "enum.Enum", "enum.IntEnum", "enum.StrEnum"}
    | {"Exception", "ValueError", "RuntimeError", "LookupError", "KeyError", "html.parser.HTMLParser"}
)
# Methods that run when an instance is created or used, but not when its class is defined or named.
_METHODS: Final = frozenset(
    {"__init__", "__post_init__", "__enter__", "__exit__", "__iter__", "__next__", "__len__", "__repr__", "__str__"}
    | {"__eq__", "__hash__", "__call__", "__contains__", "__getitem__"}
)
_HINTS: Final = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.BitOr)


def _known_names(pairs: Sequence[tuple[ast.stmt, Statement]]) -> Mapping[str, str]:
    """Return the meanings of the names that a module binds.

    A name that is only bound by one standard library import has its origin; any other has an empty text.
    """
    times = Counter(name for _, facts in pairs for name in facts.binds)
    imported = dict[str, str]()
    for node, _ in pairs:
        match node:
            case ast.Import(names=names) if _is_standard(node):
                imported |= {one.asname or one.name: one.name for one in names if one.asname or "." not in one.name}
            case ast.ImportFrom(module=module, names=names) if _is_standard(node):
                imported |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
    return {name: imported.get(name, "") if count == 1 else "" for name, count in times.items()}


def _is_inert(node: ast.stmt, known: Mapping[str, str]) -> bool:
    """Check whether a statement only binds names."""
    match node:
        case ast.FunctionDef(args=args, returns=returns) | ast.AsyncFunctionDef(args=args, returns=returns):
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            hints = [*(argument.annotation for argument in every if argument is not None), returns]
            values = [*args.defaults, *args.kw_defaults]
            return _are_plain(hints, values, known) and _is_plainly_decorated(node, known)
        case ast.ClassDef(bases=bases, body=body, keywords=[]):
            origins = {_origin(base, known) for base in bases}
            names = {name for inner in body for name in bound_names(inner)}
            # Defining an enumeration runs its methods.
            hooks = {name for name in names - {"__slots__"} if name.startswith("_") and name.endswith("_")}
            within = {**known, **dict.fromkeys(names, "")}
            return (
                _BASES.issuperset(origins)
                and not (hooks if bases else hooks - _METHODS)
                and _is_plainly_decorated(node, known)
                and all(_is_inert(inner, within) for inner in body)
            )
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name) for target in targets) and _is_value(value, known)
        case ast.AnnAssign(target=ast.Name(), value=value, annotation=hint):
            return _are_plain([hint], [value], known)
        case ast.Import() | ast.ImportFrom():
            return _is_standard(node) and all(alias.name != "*" for alias in node.names)
        case _:
            return isinstance(node, ast.Pass) or is_bare_value(node)


def _is_standard(node: ast.Import | ast.ImportFrom) -> bool:
    """Check whether an import is from the standard library; `__future__` does not count: it affects later code."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    is_listed = all(name.partition(".")[0] in sys.stdlib_module_names for name in names)
    return is_listed and not getattr(node, "level", 0) and names != ["__future__"]


def _is_plainly_decorated(node: _Decorated, known: Mapping[str, str]) -> bool:
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    values = [argument for call in calls for argument in (*call.args, *(word.value for word in call.keywords))]
    heads = (_origin(callee(each), known) for each in node.decorator_list)
    return _DECORATORS.issuperset(heads) and all(map(is_literal, values))


def _are_plain(hints: Iterable[ast.expr | None], values: Iterable[ast.expr | None], known: Mapping[str, str]) -> bool:
    inner = [child for hint in hints if hint is not None for child in ast.walk(hint)]
    is_plain = all(isinstance(child, (*_HINTS, ast.expr_context)) for child in inner)
    return is_plain and all(value is None or _is_value(value, known) for value in values)


def _origin(node: ast.expr, known: Mapping[str, str]) -> str:
    """Return the origin of a dotted name: the standard library, or a builtin that is not rebound; otherwise ""."""
    match node:
        case ast.Name(id=name):
            return known.get(name, "" if "*" in known else name)
        case ast.Attribute(value=value, attr=attribute) if origin := _origin(value, known):
            return f"{origin}.{attribute}"
        case _:
            return ""


def _is_value(node: ast.expr, known: Mapping[str, str]) -> bool:
    """Check whether an expression runs no code of the workspace: a literal, or calls that make values of literals."""
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            inner = [*arguments, *(word.value for word in keywords)]
            return _origin(function, known) in _VALUES and all(_is_value(each, known) for each in inner)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(_is_value(part, known) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_value(key, known) for key in keys) and _are_plain([], values, known)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_value(left, known) and _is_value(right, known)
        case ast.Attribute(value=ast.Name(id=name)):
            return known.get(name) == "re"
        case _:
            return is_literal(node)

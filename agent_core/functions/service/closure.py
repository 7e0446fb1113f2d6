"""Dependencies of a function within its module, and a module's text with only some of its functions.

Text → text: imports, helpers, constants and classes are found by the names that are read; what is kept is kept
word for word.
"""

import ast
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.registry import examples
from agent_core.registry.module_edits import unlisted
from agent_core.registry.source import ModuleSource, is_helper, parse
from agent_core.registry.spans import ParsedText, blocks, bound_names, is_blank
from agent_core.registry.tree import Definition, survey

_ALWAYS = frozenset({"*"})


@dataclass(frozen=True, slots=True)
class ModuleParts:
    """A module as statements: the names that each binds, changes and reads, and the public functions.

    `shows` are the names of the module that the examples of a function read.
    """

    text: ParsedText
    binds: tuple[frozenset[str], ...]
    changes: tuple[frozenset[str], ...]
    reads: tuple[frozenset[str], ...]
    shows: tuple[frozenset[str], ...]
    public: tuple[str, ...]

    @classmethod
    def of(cls, text: str, path: str = "module", module: str = "") -> "ModuleParts | Problem":
        """Return the parts of a text, or the problem that it cannot be read; a helper module offers no function."""
        tree = parse(ModuleSource(path, path, text, ""))
        if isinstance(tree, Problem):
            return tree
        public = () if is_helper(module) else tuple(node.name for node in survey(tree).public() if node in tree.body)
        own = (node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))
        values = {name for node in own for name in _bound(node)}
        setters = _setters(tree, values)
        return cls(
            ParsedText.of(text, tree),
            tuple(frozenset(_bound(node)) for node in tree.body),
            tuple(frozenset(_changed(node, setters) | _registers(node, setters, values, public)) for node in tree.body),
            tuple(frozenset(_read(node)) for node in tree.body),
            tuple(frozenset(_shown(node)) for node in tree.body),
            public,
        )

    def definition(self, name: str) -> Definition:
        """Return the last definition of a public function."""
        return [node for node in self.text.body if isinstance(node, Definition) and node.name == name][-1]

    def exported(self) -> frozenset[str]:
        """Return the texts in the module's `__all__`."""
        listed = [node for node, bound in zip(self.text.body, self.binds, strict=True) if "__all__" in bound]
        constants = (part.value for node in listed for part in ast.walk(node) if isinstance(part, ast.Constant))
        return frozenset(value for value in constants if isinstance(value, str))

    def needed(self, names: Iterable[str], stop: Set[str] = frozenset()) -> set[int]:
        """Return the statements that these functions and their examples need, with their own, but not those of
        functions in `stop`.
        """
        names = list(names)
        indexes = {at for at, bound in enumerate(self.binds) if bound & _ALWAYS}
        seen = {*names, *(self._shown_by(names) - stop)}
        waiting = list(seen)
        while waiting:
            name = waiting.pop()
            for at, (bound, changed) in enumerate(zip(self.binds, self.changes, strict=True)):
                if name not in stop and at not in indexes and name in bound | changed:
                    indexes.add(at)
                    new = (self.reads[at] | changed) - seen
                    seen |= new
                    waiting += new
        return indexes

    def _shown_by(self, names: Iterable[str]) -> set[str]:
        wanted, known = set(names), {name for bound in self.binds for name in bound}
        return {
            name
            for bound, shown in zip(self.binds, self.shows, strict=True)
            if bound & wanted
            for name in shown & known
        }

    def lines(self, statements: Set[int]) -> set[int]:
        """Return the lines of these statements, with their comments."""
        spans = [self.text.span(self.text.body[at]) for at in statements]
        return {line for first, last in spans for line in range(first, last + 1)}

    def part(self, statements: Set[int]) -> str:
        """Return the text of these statements alone, each on the lines that it has in the module."""
        shown = self.lines(statements)
        kept = (line if at in shown else "\n" for at, line in enumerate(self.text.lines, 1))
        return "".join(kept).rstrip() + "\n"


def only(text: str, names: Set[str]) -> str | Problem:
    """Return a module's text with some of its public functions and only what they need."""
    parts = ModuleParts.of(text)
    if isinstance(parts, Problem):
        return parts
    stays = parts.needed(names)
    for at, (node, bound) in enumerate(zip(parts.text.body, parts.binds, strict=True)):
        is_docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        stays |= {at} if is_docstring or "__all__" in bound else set()
    shown = parts.lines(stays)
    gone = parts.lines(set(range(len(parts.binds))) - stays) - shown
    lines: list[str] = []
    for at, line in enumerate(parts.text.lines, 1):
        is_spare = is_blank(line) and at not in shown and all(map(is_blank, lines[-2:]))
        lines += [] if at in gone or is_spare else [line]
    dropped = {name for at, bound in enumerate(parts.binds) if at not in stays for name in bound}
    dropped -= {name for at in stays for name in parts.binds[at]}
    return unlisted("".join(lines).rstrip("\r\n") + parts.text.newline, dropped & parts.exported())


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return {"*"}
    return bound_names(node)


def _setters(tree: ast.Module, values: Set[str]) -> dict[str, set[str]]:
    """Return for each function the values of its module that a call of it modifies, itself or through another."""
    setters: dict[str, set[str]] = {}
    reads: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, Definition):
            inner = [part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node]
            shared = {name for part in inner if isinstance(part, ast.Global) for name in part.names}
            setters[node.name] = (
                set().union(*(_changed(part, {}) for part in inner)) - _own_names(node) | shared
            ) & values
            reads[node.name] = _named(node)
    while True:
        wider = {
            name: own.union(*(setters[other] for other in reads[name] & setters.keys()))
            for name, own in setters.items()
        }
        if wider == setters:
            return setters
        setters = wider


def _registers(node: ast.stmt, setters: Mapping[str, set[str]], values: Set[str], public: Iterable[str]) -> set[str]:
    """Return the values that the decorators of a private function or of a class modify, such as `@register("a")`, and
    what has a case or a command added to it: `@shown.register`.
    """
    if not isinstance(node, Definition | ast.ClassDef) or node.name in public:
        return set()
    marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
    called = set().union(*(setters.get(mark.id, set()) for mark in marks if isinstance(mark, ast.Name)))
    return called | set().union(*(_root(mark) & values for mark in marks if isinstance(mark, ast.Attribute)))


def _changed(node: ast.stmt, setters: Mapping[str, set[str]]) -> set[str]:
    """Return the names of the values that a top-level statement modifies, also in a loop or another block:
    `TABLE["a"] = 1`, `TABLE.update(…)`, or by a call of a function of its module.
    """
    match node:
        case ast.For() | ast.While() | ast.If() | ast.With() | ast.Try():
            return set().union(*(_changed(inner, setters) for inner in blocks(node)))
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return setters.get(name, set())
        case ast.Assign(targets=targets):
            expressions = targets
        case ast.AugAssign(target=target):
            expressions = [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target))):
            expressions = [target]
        case _:
            return set()
    return {
        root
        for expression in expressions
        if not isinstance(expression, ast.Name) or not isinstance(node, ast.Assign)
        for root in _root(expression)
    }


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _read(node: ast.stmt) -> set[str]:
    """Return every name of the module that a statement reads, including names in string annotations."""
    if not isinstance(node, Definition):
        return _named(node)
    around = (*node.decorator_list, node.args, *([node.returns] if node.returns else []))
    head = _in_text(node.returns).union(*map(_named, around))
    return head.union(*map(_named, node.body)) - (_own_names(node) - head)


def _own_names(node: Definition) -> set[str]:
    """Return the names that a function binds for itself, with which it does not mean the module's."""
    inner = [part for statement in node.body for part in ast.walk(statement)]
    targets = {
        name.id
        for part in inner
        if isinstance(part, ast.comprehension)
        for name in ast.walk(part.target)
        if isinstance(name, ast.Name)
    }
    shared = {name for part in inner if isinstance(part, ast.Global) for name in part.names}
    arguments = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    return arguments.union(*map(bound_names, node.body)) - targets - shared


def _named(node: ast.AST) -> set[str]:
    """Return every name in a part of a text."""
    names = set[str]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.add(inner.id)
        elif isinstance(inner, ast.arg | ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef):
            hint = inner.returns if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) else inner.annotation
            names |= _in_text(hint)
    return names


def _shown(node: ast.stmt) -> set[str]:
    """Return the names that the examples of a function read."""
    words = ast.get_docstring(node) if isinstance(node, Definition) else None
    names = set[str]()
    try:
        entries = list(examples.find(words)) if words and ">>>" in words else []
    except ValueError:
        return names
    for entry in entries:
        try:
            names |= {inner.id for inner in ast.walk(syntax.parse(entry.source)) if isinstance(inner, ast.Name)}
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return names


def _in_text(hint: ast.expr | None) -> set[str]:
    names = set[str]()
    for inner in ast.walk(hint) if hint is not None else ():
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            try:
                names |= {
                    node.id for node in ast.walk(syntax.parse(inner.value, mode="eval")) if isinstance(node, ast.Name)
                }
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return names

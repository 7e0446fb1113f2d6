"""Where the text of a module refers to a function of the workspace, and the edits that follow its new name or module.

Names are resolved by Python's scopes, in code and in the examples of docstrings, so that a local name or a string that
only looks alike stays. Texts are edited at the places of their tree; nothing is printed anew, and nothing runs.
"""

import ast
import re
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass, field
from sandbox.wire.lines import lines_of

from .depends import NOT_PYTHON
from .source import FOLDER, ModuleSource, bound_names, is_bare_value
from .tree import imported_module

ReferenceKind: TypeAlias = Literal["definition", "name", "import", "attribute", "call", "listed"]
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER: Final = (*_COMPREHENSIONS, *_DEFINITIONS, ast.ClassDef, ast.Lambda)
_ELSEWHERE: Final = ""  # the origin of a name that means something else
_PROMPT: Final = re.compile(r"""([ \t]*+(?:[rRuU]?(?:\"""|'''))?[ \t]*+)(>>>|\.\.\.)(?: |$)""")
_IMPORT: Final = re.compile(rb"\bimport\b")


@dataclass(frozen=True, slots=True)
class Edit:
    """New bytes for `content[start:end]` of a text."""

    start: int
    end: int
    new: bytes


@dataclass(slots=True)
class _Names:
    """The names that a scope binds, each with the dotted origins that it may have."""

    above: "_Names | None" = None
    is_class: bool = False
    origins: dict[str, set[str]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)  # declared `global`

    def find(self, name: str) -> "_Names | None":
        """Return the scope in which a name that is read here is bound, or None."""
        scope: _Names | None = self
        while scope is not None:
            is_seen = scope is self or not scope.is_class
            if name in scope.shared:
                return scope.top()
            if is_seen and name in scope.origins:
                return scope
            scope = scope.above
        return None

    def top(self) -> "_Names":
        """Return the scope of the module."""
        scope = self
        while scope.above is not None:
            scope = scope.above
        return scope

    def bind(self, name: str, origin: str = _ELSEWHERE) -> None:
        """Add a name that the scope binds."""
        self.origins.setdefault(name, set()).add(origin)


@dataclass(frozen=True, slots=True)
class Reference:
    """One place that refers to a function: the bytes of its name, the node and the scope.

    `begins` is where the statement of an import begins, or the whole of an attribute, and `closing` where the arguments
    of a call end. `is_shown` is true in an example, `by_star` for a name that only `from … import *` can have brought.
    """

    kind: ReferenceKind
    line: int
    start: int
    end: int
    node: ast.AST
    scope: _Names
    statement: ast.ImportFrom | None = None
    begins: int = 0
    closing: int = 0
    is_shown: bool = False
    by_star: bool = False

    @property
    def binds_name(self) -> bool:
        """True if the place depends on the function's own name, not on an alias or a module."""
        is_alias = isinstance(self.node, ast.alias) and self.node.asname is not None
        return self.kind == "name" or (self.kind == "import" and not is_alias)

    def has_local(self, name: str) -> bool:
        """Return whether a name means something in a function around the place."""
        place = self.scope.find(name)
        return place is not None and place.above is not None


@dataclass(slots=True)
class References:
    """All that a module's text has to do with one function.

    `targets` are the dotted names of the function: where it is defined, and where it is imported under its own name.
    `unread` are lines that have its name as a string or call by a computed name, which nobody can follow.
    """

    source: ModuleSource
    name: str
    targets: Set[str]
    found: list[Reference] = field(default_factory=list)
    unread: dict[int, str] = field(default_factory=dict)
    names_read: dict[str, int] = field(
        default_factory=dict
    )  # of the module or built in, with a line
    module_names: frozenset[str] = frozenset()
    is_bound: bool = False  # the module has the function under its own name
    has_star: bool = False  # it has all that a module with the function offers

    @classmethod
    def of(cls, source: ModuleSource, name: str, targets: Set[str]) -> "References":
        """Return the references of a module to a function.

        Raises:
            UsageError: the name means the function and something else.
        """
        references = cls(source, name, targets)
        _Walk(references).run()
        return references

    @property
    def content(self) -> bytes:
        """The text, as the places count it."""
        return self.source.text.encode("utf-8", "surrogatepass")

    def not_rewritten(self, line: int) -> UsageError:
        """Return the error that a place uses the function in another way than by a plain name or call."""
        what = f"uses `{self.name}` in a way that is not rewritten"
        return self.error(line, what, "Write that place in a plain way first.")

    def error(self, line: int, what: str, fix: str) -> UsageError:
        """Return the error that a place cannot be rewritten."""
        return UsageError(f"{self.source.path}:{line} {what}, so nothing was changed.", fix=fix)


def references_in(
    sources: Sequence[ModuleSource], module: str, name: str, *, follows: bool
) -> list[References]:
    """Return the references of these modules to a function of one of them, without those that have none.

    With `follows`, modules that import it under its own name have it, too.

    Raises:
        UsageError: a name means the function and something else.
    """
    targets = {f"{FOLDER}.{module}.{name}"}
    near = [source for source in sources if name in source.text or ".call" in source.text]
    while True:
        read = [References.of(source, name, targets) for source in near]
        passing = {
            f"{FOLDER}.{each.source.module}.{name}"
            for each in read
            if each.is_bound or each.has_star
        }
        if not follows or passing <= targets:
            return [each for each in read if each.found or each.unread]
        targets = targets | passing


def applied_to(content: bytes, edits: Sequence[Edit]) -> str:
    """Return the text with edits made, which do not overlap."""
    pieces = list[bytes]()
    at = 0
    for edit in sorted(edits, key=attrgetter("start", "end")):
        pieces += [content[at : edit.start], edit.new]
        at = edit.end
    return b"".join([*pieces, content[at:]]).decode("utf-8", "surrogatepass")


def renamed(references: References, new: str) -> str:
    """Return the module's text in which the function has another name.

    Raises:
        UsageError: the new name means something else there.
    """
    bound = references.is_bound or any(each.by_star for each in references.found)
    has_own = any(each.binds_name and not each.is_shown for each in references.found)
    is_taken = bound and new in references.module_names
    if is_taken or ((bound or has_own) and new in references.names_read):
        line = references.names_read.get(new, references.found[0].line)
        fix = "Choose another name, or rename that first."
        raise references.error(line, f"uses the name `{new}` for something else", fix)
    return redirected(references, references.found, new)


def redirected(references: References, found: Sequence[Reference], new: str, more: str = "") -> str:
    """Return the module's text with another name in places that refer to the function, and `more` arguments in each.

    Raises:
        UsageError: the name means something else there, or there is no call for the arguments.
    """
    content = references.content
    edits = list[Edit]()
    for each in found:
        if each.binds_name and each.has_local(new):
            fix = "Choose another name, or rename that first."
            raise references.error(each.line, f"has a local name `{new}`", fix)
        edits.append(Edit(each.start, each.end, new.encode()))
        if not more or each.kind == "import":
            continue
        if not each.closing:
            raise references.not_rewritten(each.line)
        has_comma = content[each.end : each.closing].rstrip().endswith((b"(", b","))
        added = more if has_comma else f", {more}"
        edits.append(Edit(each.closing, each.closing, added.encode()))
    return applied_to(content, edits)


def redirected_call(call: str, module: str, name: str, new: str, more: str = "") -> str | None:
    """Return a call of a function as one of another, with `more` arguments; None if it cannot be rewritten."""
    head = f"from {FOLDER}.{module} import {name}\n"
    try:
        source = ModuleSource.of("call", f"{head}{call}\n")
        references = References.of(source, name, {f"{FOLDER}.{module}.{name}"})
        text = redirected(references, references.found, new, more)
        syntax.parse(text)
    except (*NOT_PYTHON, UsageError):
        return None
    return text.partition("\n")[2].rstrip("\n")


def retargeted(references: References, module: str, *, is_home: bool = False) -> tuple[str, bool]:
    """Return the module's text in which the function is imported from another module, and whether an import is missing.

    It is missing where the function was named by its module, or came with `*`: there, its name stands alone. A module
    that `is_home` is the new one, which has the function itself.

    Raises:
        UsageError: an import is written in a way that is not rewritten, or the name means something else there.
    """
    edits = list[Edit]()
    name = references.name
    lacks = False
    for each in references.found:
        if each.kind == "import":
            edits += _retargeted_import(references, each, module, is_home=is_home)
        elif each.kind == "attribute":
            place = each.scope.find(name)
            is_named = place is not None and place.origins[name] <= references.targets
            if each.has_local(name) and not is_named:
                what = f"has a local name `{name}`"
                raise references.error(each.line, what, "Rename the local one first.")
            edits.append(Edit(each.begins, each.end, name.encode()))
            lacks |= not is_named
        lacks |= each.by_star
    if lacks and name in references.module_names and not references.is_bound:
        what = f"uses the name `{name}` for something else"
        raise references.error(1, what, "Rename that first.")
    return applied_to(references.content, edits), lacks and not (references.is_bound or is_home)


def _retargeted_import(
    references: References, reference: Reference, module: str, *, is_home: bool
) -> Iterator[Edit]:
    statement = reference.statement
    alias = reference.node
    assert statement is not None
    assert isinstance(alias, ast.alias)
    is_alone = len(statement.names) == 1
    if (reference.is_shown and not is_alone) or (is_home and alias.asname):
        fix = f"Write `from {FOLDER}.… import {references.name}` in a line of its own first."
        raise references.error(reference.line, "imports it in a way that is not rewritten", fix)
    content = references.content
    if is_alone and (reference.is_shown or not is_home):
        head = _IMPORT.search(content, reference.begins)
        assert head is not None
        source = f" {FOLDER}.{module} ".encode()
        yield Edit(reference.begins + len("from"), head.start(), source)
        return
    rows = _offsets(references)

    def end_of(node: ast.alias | ast.ImportFrom) -> int:
        return rows[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    line_start = rows[statement.lineno - 1]
    line_end = rows[statement.end_lineno or 0]
    before = content[line_start : reference.begins]
    after = content[end_of(statement) : line_end].strip()
    if before.strip() or (after and not after.startswith(b"#")):
        fix = "Write the import in a line of its own first."
        raise references.error(reference.line, "has another statement beside the import", fix)
    if is_alone:
        yield Edit(line_start, line_end, b"")
        return
    at = statement.names.index(alias)
    if alias is statement.names[-1]:
        yield Edit(end_of(statement.names[at - 1]), end_of(alias), b"")
    else:
        following = statement.names[at + 1]
        yield Edit(reference.start, rows[following.lineno - 1] + following.col_offset, b"")
    if not is_home:
        line = content[line_start:line_end]
        newline = b"\r\n" if line.endswith(b"\r\n") else b"\n"
        ended = b"" if line.endswith((b"\n", b"\r")) else newline
        new = f"from {FOLDER}.{module} import {ast.unparse(alias)}".encode()
        yield Edit(line_end, line_end, ended + before + new + newline)


def _offsets(references: References) -> list[int]:
    """Return where each line of the text begins, in bytes, and where the last one ends."""
    sizes = (
        len(line.encode("utf-8", "surrogatepass")) for line in lines_of(references.source.text)
    )
    return [0, *accumulate(sizes)]


class _Walk:
    """One pass over a module, in which each scope is known before its names are read."""

    def __init__(self, references: References) -> None:
        self._result = references
        self._own = f"{FOLDER}.{references.source.module}"
        self._is_package = references.source.path.endswith("/__init__.py")
        self._rows = _offsets(references)
        self._content = references.content
        self._shift: list[int] = []  # of an example: where each of its lines begins, in bytes
        self._numbers: list[int] = []  # of an example: the lines in the file
        self._stars = False
        self._known: set[int] = set()  # nodes that are read with the call around them
        self._closings: dict[int, int] = {}  # where a call ends, by what is called
        self._listed: set[int] = set()

    def run(self) -> None:
        """Find all references of the module."""
        result = self._result
        tree = syntax.tree_of(result.source.text)
        top = self._scope(tree.body, None)
        result.module_names = frozenset(top.origins)
        result.is_bound = not top.origins.get(result.name, set()).isdisjoint(result.targets)
        result.has_star = self._stars
        if f"{self._own}.{result.name}" in result.targets:
            self._listed = {
                id(part)
                for node in tree.body
                if "__all__" in bound_names(node)
                for part in ast.walk(node)
            }
        self._visit(tree.body, top)
        self._read_docstrings(tree, top)
        result.found.sort(key=attrgetter("start"))
        result.unread = dict(sorted(result.unread.items()))

    def _must_be_clear(self, scope: _Names, line: int) -> bool:
        """Return whether the name means the function in this scope.

        Raises:
            UsageError: it may also mean something else.
        """
        origins = scope.origins.get(self._result.name, set())
        if origins.isdisjoint(self._result.targets):
            return False
        if not origins <= self._result.targets:
            what = f"is where `{self._result.name}` means the function and something else"
            raise self._result.error(line, what, "Give one of the two another name first.")
        return True

    def _scope(
        self, body: Sequence[ast.AST], above: _Names | None, *, is_class: bool = False
    ) -> _Names:
        """Return the names that code binds, without those of the functions and classes in it."""
        scope = _Names(above, is_class)
        waiting: list[ast.AST] = [*body]
        while waiting:
            node = waiting.pop()
            self._bind(node, scope)
            if isinstance(node, _INNER):
                waiting += _around(node)
                waiting += _assigned_inside(node)
            else:
                waiting += ast.iter_child_nodes(node)
        return scope

    def _bind(self, node: ast.AST, scope: _Names) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                scope.bind(name, _ELSEWHERE if scope.above else f"{self._own}.{name}")
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                scope.bind(name)
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    scope.bind(alias.asname or top, alias.name if alias.asname else top)
            case ast.ImportFrom(names=names):
                base = self._base(node)
                for alias in names:
                    scope.bind(alias.asname or alias.name, f"{base}.{alias.name}")
                is_star = any(alias.name == "*" for alias in names)
                self._stars |= is_star and f"{base}.{self._result.name}" in self._result.targets
            case ast.Global(names=names):
                scope.shared.update(names)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                scope.bind(name)

    def _base(self, node: ast.ImportFrom) -> str:
        return imported_module(
            node.module or "", node.level, self._own, is_package=self._is_package
        )

    def _visit(self, body: Sequence[ast.AST], top: _Names) -> None:
        """Find the references in code; the tree may be deeper than calls may be."""
        self._known = set()
        self._closings = {}
        waiting = [(node, top) for node in body]
        while waiting:
            node, scope = waiting.pop()
            self._look(node, scope)
            if not isinstance(node, _INNER):
                waiting += ((part, scope) for part in ast.iter_child_nodes(node))
                continue
            waiting += ((part, scope) for part in _around(node))
            inside = _inside(node)
            inner = self._scope(inside, scope, is_class=isinstance(node, ast.ClassDef))
            for parameter in _parameters(node):
                inner.bind(parameter.arg)
            waiting += ((part, inner) for part in inside)

    def _look(self, node: ast.AST, scope: _Names) -> None:
        name = self._result.name
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if (
                node.name == name
                and scope.above is None
                and self._must_be_clear(scope, node.lineno)
            ):
                head = self._content.index(b"def", self._start(node)) + len("def")
                self._add("definition", node, self._content.index(name.encode(), head), scope)
            case ast.Name():
                self._read_name(node, scope)
            case ast.Attribute():
                self._read_attribute(node, scope)
            case ast.ImportFrom(names=names):
                for alias in names:
                    if f"{self._base(node)}.{alias.name}" in self._result.targets:
                        self._add("import", alias, self._start(alias), scope, node)
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                if name in scope.top().origins and self._must_be_clear(scope.top(), node.lineno):
                    what = f"declares `{name}` as global or nonlocal"
                    raise self._result.error(self._line(node.lineno), what, "Change that first.")
            case ast.Call():
                self._read_call(node, scope)
            case ast.Constant() if node.value == name:
                self._read_text(node, scope)

    def _read_attribute(self, node: ast.Attribute, scope: _Names) -> None:
        name = self._result.name
        if node.attr == name and self._origin(node, scope) in self._result.targets:
            self._add("attribute", node, self._end(node) - len(name), scope)
        elif node.attr == "call" and id(node) not in self._known:
            line = self._line(node.lineno)
            self._result.unread.setdefault(line, "calls a function by a computed name")

    def _read_text(self, node: ast.Constant, scope: _Names) -> None:
        if id(node) in self._listed:
            self._add("listed", node, self._start(node) + 1, scope)
        elif id(node) not in self._known:
            what = f'has the text "{self._result.name}"'
            self._result.unread.setdefault(self._line(node.lineno), what)

    def _read_name(self, node: ast.Name, scope: _Names) -> None:
        place = scope.find(node.id)
        line = self._line(node.lineno)
        if place is None or place.above is None:
            self._result.names_read.setdefault(node.id, line)
        if node.id != self._result.name:
            return
        by_star = place is None and self._stars
        if by_star or (place is not None and self._must_be_clear(place, line)):
            self._add("name", node, self._start(node), scope, by_star=by_star)

    def _read_call(self, call: ast.Call, scope: _Names) -> None:
        """Read what a call calls, and the name in `self.call("name", …)`."""
        self._closings[id(call.func)] = self._end(call) - 1
        match call:
            case ast.Call(func=ast.Attribute(attr="call") as function, args=[ast.Constant(), *_]):
                self._known.add(id(function))
                first = call.args[0]
                by_self = isinstance(function.value, ast.Name) and function.value.id == "self"
                if by_self and getattr(first, "value", "") == self._result.name:
                    self._known.add(id(first))
                    self._closings[id(first)] = self._end(call) - 1
                    self._add("call", first, self._start(first) + 1, scope)

    def _origin(self, node: ast.expr, scope: _Names) -> str:
        """Return the dotted name that an expression means, as far as imports show it."""
        path = list[str]()
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        place = scope.find(node.id) if isinstance(node, ast.Name) else None
        if place is None or not isinstance(node, ast.Name):
            return _ELSEWHERE
        origins = place.origins[node.id]
        return ".".join([*origins, *path]) if len(origins) == 1 else _ELSEWHERE

    def _add(
        self,
        kind: ReferenceKind,
        node: ast.AST,
        start: int,
        scope: _Names,
        statement: ast.ImportFrom | None = None,
        *,
        by_star: bool = False,
    ) -> None:
        name = self._result.name
        line = self._line(getattr(node, "lineno", 1))
        end = start + len(name)
        if self._content[start:end] != name.encode():
            raise self._result.not_rewritten(line)
        closing = self._closings.get(id(node), 0)
        begins = self._start(statement or node)
        is_shown = bool(self._numbers)
        places = (kind, line, start, end, node, scope, statement, begins, closing)
        self._result.found.append(Reference(*places, is_shown, by_star))

    def _start(self, node: Any) -> int:  # Any: a node with a place
        return self._at(node.lineno, node.col_offset)

    def _end(self, node: Any) -> int:  # Any: a node with a place
        return self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        return (self._shift or self._rows)[line - 1] + column

    def _line(self, line: int) -> int:
        return self._numbers[line - 1] if self._numbers else line

    def _read_docstrings(self, tree: ast.Module, top: _Names) -> None:
        lines = lines_of(self._result.source.text)
        for node in ast.walk(tree):
            body = getattr(node, "body", ())
            if not isinstance(node, (ast.Module, ast.ClassDef, *_DEFINITIONS)) or not body:
                continue
            if is_bare_value(body[0]):
                last = body[0].end_lineno or body[0].lineno
                self._read_examples(lines, range(body[0].lineno, last + 1), top)

    def _read_examples(self, lines: Sequence[str], numbers: range, top: _Names) -> None:
        """Find the references in the examples of a docstring, which share their names."""
        rows = list[tuple[int, int, str]]()  # line, where its code begins, its code
        block = list[tuple[int, int, str]]()
        for number in [*numbers, 0]:
            line = lines[number - 1].rstrip("\r\n") if number else ""
            prompt = _PROMPT.match(line)
            if block and (prompt is None or prompt[2] == ">>>"):
                rows += self._readable(block)
                block = []
            if prompt is not None and (block or prompt[2] == ">>>"):
                shift = self._rows[number - 1] + len(line[: prompt.end()].encode())
                block.append((number, shift, line[prompt.end() :]))
        if not rows:
            return
        lines, shifts, codes = zip(*rows, strict=True)
        self._numbers = [*lines]
        self._shift = [*shifts]
        tree = syntax.parse("\n".join(codes))
        self._visit(tree.body, self._scope(tree.body, top))
        self._numbers = []
        self._shift = []

    def _readable(self, block: Sequence[tuple[int, int, str]]) -> Sequence[tuple[int, int, str]]:
        """Return the lines of an example, or none if it is not Python."""
        code = "\n".join(text for _, _, text in block)
        try:
            syntax.parse(code)
        except NOT_PYTHON:
            if self._result.name in code:
                self._result.unread.setdefault(block[0][0], "has an example that is not Python")
            return ()
        return block


def _around(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a function, class or comprehension that are evaluated outside of it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            returned = [node.returns] if node.returns else []
            return [*node.decorator_list, node.args, *returned]
        case ast.Lambda():
            return [node.args]
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node.generators[0].iter]
    return []


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a function, class or comprehension that are evaluated in a scope of its own."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [*node.body]
        case ast.Lambda():
            return [node.body]
    outside = _around(node)
    parts = list[ast.AST]()
    for part in ast.iter_child_nodes(node):
        parts += ast.iter_child_nodes(part) if isinstance(part, ast.comprehension) else [part]
    return [part for part in parts if part not in outside]


def _parameters(node: ast.AST) -> list[ast.arg]:
    arguments = getattr(node, "args", None)
    parts = ast.iter_child_nodes(arguments) if isinstance(arguments, ast.arguments) else ()
    return [part for part in parts if isinstance(part, ast.arg)]


def _assigned_inside(node: ast.AST) -> list[ast.AST]:
    """Return the targets of `:=` in a comprehension, which belong to the scope around it."""
    if not isinstance(node, _COMPREHENSIONS):
        return []
    return [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]

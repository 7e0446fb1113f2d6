"""Where the text of a module refers to a function of the workspace, and the edits that follow its new name or module.

Names are resolved by Python's scopes, in code and in the examples of docstrings, so that a local name or a string that
only looks alike stays. Texts are edited at the places of their tree; nothing is printed anew, and nothing runs.
"""

import ast
import re
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass, field
from sandbox.wire.lines import lines_of

from .source import FOLDER, ModuleSource, is_bare_value
from .tree import imported_module

ReferenceKind: TypeAlias = Literal["definition", "name", "import", "attribute", "call", "listed"]
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER: Final = (*_COMPREHENSIONS, *_DEFINITIONS, ast.ClassDef, ast.Lambda)
_ELSEWHERE: Final = ""  # the origin of a name that means something else
_PROMPT: Final = re.compile(r"""([ \t]*+(?:[rRuU]?(?:\"""|'''))?[ \t]*+)(>>>|\.\.\.)(?: |$)""")
_HEAD: Final = re.compile(rb"(?:async[ \t]+)?def[ \t]+")
_SOURCE: Final = re.compile(rb"from[ \t]+([.\w]+(?:[ \t]*\.[ \t]*\w+)*)[ \t]+import\b")


@dataclass(frozen=True, slots=True)
class Edit:
    """New bytes for `content[start:end]` of a text."""

    start: int
    end: int
    new: bytes


@dataclass(frozen=True, slots=True)
class Reference:
    """One place that refers to a function: the bytes of its name, and the node, which for an import has a statement.

    `is_shown` is true in an example. `by_star` is true for a name that only `from … import *` can have brought. It
    `is_named` where the function's own name means the function.
    """

    kind: ReferenceKind
    line: int
    start: int
    end: int
    node: ast.AST
    statement: ast.ImportFrom | None = None
    is_shown: bool = False
    by_star: bool = False
    is_named: bool = False

    @property
    def binds_name(self) -> bool:
        """True if the place depends on the function's own name, not on an alias or a module."""
        is_alias = isinstance(self.node, ast.alias) and self.node.asname is not None
        return self.kind == "name" or (self.kind == "import" and not is_alias)


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
    locals_at: dict[int, Set[str]] = field(default_factory=dict)  # by the start of a reference

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
    near = [source for source in sources if name in source.text or ".call(" in source.text]
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
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        content = content[: edit.start] + edit.new + content[edit.end :]
    return content.decode("utf-8", "surrogatepass")


def renamed(references: References, new: str) -> str:
    """Return the module's text in which the function has another name.

    Raises:
        UsageError: the new name means something else there.
    """
    fix = "Choose another name, or rename that first."
    bound = references.is_bound or any(each.by_star for each in references.found)
    has_own = any(each.binds_name and not each.is_shown for each in references.found)
    is_taken = bound and new in references.module_names
    if is_taken or ((bound or has_own) and new in references.names_read):
        line = references.names_read.get(new, references.found[0].line)
        raise references.error(line, f"uses the name `{new}` for something else", fix)
    for each in references.found:
        if each.binds_name and new in references.locals_at.get(each.start, ()):
            raise references.error(each.line, f"has a local name `{new}`", fix)
    edits = [Edit(each.start, each.end, new.encode()) for each in references.found]
    return applied_to(references.content, edits)


def retargeted(references: References, module: str, *, is_home: bool = False) -> tuple[str, bool]:
    """Return the module's text in which the function is imported from another module, and whether an import is missing.

    It is missing where the function was named by its module, or came with `*`: there, its name stands alone. A module
    that `is_home` is the new one, which has the function itself.

    Raises:
        UsageError: an import is written in a way that is not rewritten, or the name means something else there.
    """
    edits = list[Edit]()
    lacks = False
    for each in references.found:
        if each.kind == "import":
            edits += _retargeted_import(references, each, module, is_home=is_home)
        elif each.kind == "attribute":
            edits.append(_without_module(references, each))
            lacks |= not each.is_named
        lacks |= each.by_star
    if lacks and references.name in references.module_names and not references.is_bound:
        what = f"uses the name `{references.name}` for something else"
        raise references.error(1, what, "Rename that first.")
    return applied_to(references.content, edits), lacks and not (references.is_bound or is_home)


def _without_module(references: References, reference: Reference) -> Edit:
    """Return the edit that names the function without its module."""
    is_other = references.name in references.locals_at.get(reference.start, ())
    if is_other and not reference.is_named:
        what = f"has a local name `{references.name}`"
        raise references.error(reference.line, what, "Rename the local one first.")
    node = reference.node
    assert isinstance(node, ast.Attribute)
    start = _offsets(references)[node.lineno - 1] + node.col_offset
    return Edit(start, reference.end, references.name.encode())


def _retargeted_import(
    references: References, reference: Reference, module: str, *, is_home: bool
) -> Iterator[Edit]:
    statement = reference.statement
    assert statement is not None
    alias = _alias(reference)
    content = references.content
    # The start of its line, which in an example is after the prompt.
    shift = reference.start - alias.col_offset
    rows = _offsets(references)
    start = shift + statement.col_offset if alias.lineno == statement.lineno else 0
    start = start or rows[statement.lineno - 1] + statement.col_offset
    head = _SOURCE.match(content, start)
    is_alone = len(statement.names) == 1
    if head is None or (reference.is_shown and not is_alone) or (is_home and alias.asname):
        fix = f"Write `from {FOLDER}.… import {references.name}` in a line of its own first."
        raise references.error(reference.line, "imports it in a way that is not rewritten", fix)
    line_end = rows[(statement.end_lineno or statement.lineno)]
    line_start = rows[statement.lineno - 1]
    if is_alone and (reference.is_shown or not is_home):
        yield Edit(head.start(1), head.end(1), f"{FOLDER}.{module}".encode())
        return
    before = content[line_start:start]
    after = content[line_start + (statement.end_col_offset or 0) : line_end]
    if statement.end_lineno != statement.lineno:
        last = rows[(statement.end_lineno or statement.lineno) - 1]
        after = content[last + (statement.end_col_offset or 0) : line_end]
    if before.strip() or (after.strip() and not after.strip().startswith(b"#")):
        fix = "Write the import in a line of its own first."
        raise references.error(reference.line, "has another statement beside the import", fix)
    if is_alone:
        yield Edit(line_start, line_end, b"")
        return
    at = statement.names.index(alias)
    if at + 1 < len(statement.names):
        following = statement.names[at + 1]
        yield Edit(reference.start, rows[following.lineno - 1] + following.col_offset, b"")
    else:
        above = statement.names[at - 1]
        end = rows[(alias.end_lineno or alias.lineno) - 1] + (alias.end_col_offset or 0)
        yield Edit(rows[(above.end_lineno or 0) - 1] + (above.end_col_offset or 0), end, b"")
    if not is_home:
        given = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        newline = b"\r\n" if content[line_start:line_end].endswith(b"\r\n") else b"\n"
        ended = b"" if content[line_start:line_end].endswith((b"\n", b"\r")) else newline
        new = f"from {FOLDER}.{module} import {given}".encode()
        yield Edit(line_end, line_end, ended + before + new + newline)


def _alias(reference: Reference) -> ast.alias:
    assert isinstance(reference.node, ast.alias)
    return reference.node


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
        self._module = references.source.module
        self._is_package = references.source.path.endswith("/__init__.py")
        self._rows = _offsets(references)
        self._content = references.content
        self._shift: list[int] = []  # of an example: where each of its lines begins, in bytes
        self._numbers: list[int] = []  # of an example: the lines in the file
        self._stars = False
        self._listed: set[int] = set()

    def run(self) -> None:
        """Find all references of the module."""
        tree = syntax.tree_of(self._result.source.text)
        top = self._scope(tree.body, None)
        origins = top.origins.get(self._result.name, set())
        self._result.module_names = frozenset(top.origins)
        self._result.is_bound = not origins.isdisjoint(self._result.targets)
        self._result.has_star = self._stars
        self._listed = {
            id(part)
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            and "__all__" in {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            for part in ast.walk(node)
            if isinstance(part, ast.Constant)
        }
        for node in tree.body:
            self._visit(node, top)
        self._read_docstrings(tree, top)

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
                is_own = scope.above is None
                scope.bind(name, f"{FOLDER}.{self._module}.{name}" if is_own else _ELSEWHERE)
            case ast.ClassDef(name=name):
                scope.bind(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
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
            case ast.arg(arg=name):
                scope.bind(name)

    def _base(self, node: ast.ImportFrom) -> str:
        own = f"{FOLDER}.{self._module}"
        return imported_module(node.module or "", node.level, own, is_package=self._is_package)

    def _visit(self, node: ast.AST, scope: _Names) -> None:
        """Find the references in a node."""
        if isinstance(node, _INNER):
            self._look(node, scope)
            for part in _around(node):
                self._visit(part, scope)
            body = _inside(node)
            is_class = isinstance(node, ast.ClassDef)
            inner = self._scope([*_parameters(node), *body], scope, is_class=is_class)
            for part in body:
                self._visit(part, inner)
            return
        self._look(node, scope)
        for part in ast.iter_child_nodes(node):
            self._visit(part, scope)

    def _look(self, node: ast.AST, scope: _Names) -> None:
        name = self._result.name
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if (
                node.name == name
                and scope.above is None
                and self._must_be_clear(scope, node.lineno)
            ):
                start = self._at(node.lineno, node.col_offset)
                head = _HEAD.match(self._content, start)
                self._add("definition", node, head.end() if head else start)
            case ast.Name():
                self._read_name(node, scope)
            case ast.Attribute(attr=attr) if (
                attr == name and self._origin(node, scope) in self._result.targets
            ):
                end = self._at(node.end_lineno or 0, node.end_col_offset or 0)
                self._add("attribute", node, end - len(name), scope)
            case ast.ImportFrom(names=names):
                for alias in names:
                    if f"{self._base(node)}.{alias.name}" in self._result.targets:
                        start = self._at(alias.lineno, alias.col_offset)
                        self._add("import", alias, start, scope, node)
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                if name in scope.top().origins and self._must_be_clear(scope.top(), node.lineno):
                    what = f"declares `{name}` as global or nonlocal"
                    raise self._result.error(self._line(node.lineno), what, "Change that first.")
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="call"), args=[first, *_]
            ):
                self._read_call(first)
            case ast.Constant(value=str(value)) if value == name:
                self._read_text(node)

    def _read_name(self, node: ast.Name, scope: _Names) -> None:
        place = scope.find(node.id)
        if place is None or place.above is None:
            self._result.names_read.setdefault(node.id, self._line(node.lineno))
        if node.id != self._result.name:
            return
        by_star = place is None and self._stars
        if by_star or (place is not None and self._must_be_clear(place, self._line(node.lineno))):
            start = self._at(node.lineno, node.col_offset)
            self._add("name", node, start, scope, by_star=by_star)

    def _read_call(self, first: ast.expr) -> None:
        name = self._result.name
        if not isinstance(first, ast.Constant):
            line = self._line(first.lineno)
            self._result.unread.setdefault(line, "calls a function by a computed name")
        elif first.value == name:
            start = self._at(first.lineno, first.col_offset)
            self._listed.add(id(first))
            self._add("call", first, start + 1)

    def _read_text(self, node: ast.Constant) -> None:
        name = self._result.name
        if id(node) not in self._listed:
            self._result.unread.setdefault(self._line(node.lineno), f'has the text "{name}"')
        elif f"{FOLDER}.{self._module}.{name}" in self._result.targets and not self._has(node):
            self._add("listed", node, self._at(node.lineno, node.col_offset) + 1)

    def _has(self, node: ast.AST) -> bool:
        return any(each.node is node for each in self._result.found)

    def _origin(self, node: ast.expr, scope: _Names) -> str:
        """Return the dotted name that an expression means, as far as imports show it."""
        match node:
            case ast.Name(id=name):
                place = scope.find(name)
                origins = place.origins[name] if place is not None else set()
                return next(iter(origins)) if len(origins) == 1 else _ELSEWHERE
            case ast.Attribute(value=value, attr=attr):
                inner = self._origin(value, scope)
                return f"{inner}.{attr}" if inner else _ELSEWHERE
        return _ELSEWHERE

    def _add(
        self,
        kind: ReferenceKind,
        node: ast.AST,
        start: int,
        scope: _Names | None = None,
        statement: ast.ImportFrom | None = None,
        *,
        by_star: bool = False,
    ) -> None:
        name = self._result.name
        line = self._line(getattr(node, "lineno", 1))
        end = start + len(name)
        if self._content[start:end] != name.encode():
            what = f"uses `{name}` in a way that is not rewritten"
            raise self._result.error(line, what, "Write that place in a plain way first.")
        is_shown = bool(self._numbers)
        place = scope.find(name) if scope is not None else None
        is_named = place is not None and place.origins[name] <= self._result.targets
        self._result.found.append(
            Reference(kind, line, start, end, node, statement, is_shown, by_star, is_named)
        )
        if scope is not None:
            self._result.locals_at[start] = _local_names(scope)

    def _at(self, line: int, column: int) -> int:
        starts = self._shift or self._rows
        return starts[line - 1] + column

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
        self._numbers = [number for number, _, _ in rows]
        self._shift = [shift for _, shift, _ in rows]
        tree = syntax.parse("\n".join(code for _, _, code in rows))
        scope = self._scope(tree.body, top)
        for node in tree.body:
            self._visit(node, scope)
        self._numbers = []
        self._shift = []

    def _readable(self, block: Sequence[tuple[int, int, str]]) -> Sequence[tuple[int, int, str]]:
        """Return the lines of an example, or none if it is not Python."""
        code = "\n".join(text for _, _, text in block)
        try:
            syntax.parse(code)
        except SyntaxError:
            if self._result.name in code:
                self._result.unread.setdefault(block[0][0], "has an example that is not Python")
            return ()
        return block


def _around(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a function, class or comprehension that are evaluated outside of it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            given = [each.annotation for each in _parameters(node) if each.annotation]
            returned = [node.returns] if node.returns else []
            return [*node.decorator_list, *_defaults(node.args), *given, *returned]
        case ast.Lambda():
            return _defaults(node.args)
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node.generators[0].iter]
    return []


def _defaults(arguments: ast.arguments) -> list[ast.AST]:
    return [*arguments.defaults, *filter(None, arguments.kw_defaults)]


def _parameters(node: ast.AST) -> list[ast.arg]:
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return []
    rest = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a function, class or comprehension that are evaluated in a scope of its own."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [*node.body]
        case ast.Lambda():
            return [node.body]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return [*_loops(node.generators), node.elt]
        case ast.DictComp():
            return [*_loops(node.generators), node.key, node.value]
    return []


def _loops(generators: Sequence[ast.comprehension]) -> Iterator[ast.AST]:
    for at, each in enumerate(generators):
        yield each.target
        yield from each.ifs
        if at:
            yield each.iter


def _assigned_inside(node: ast.AST) -> list[ast.AST]:
    """Return the targets of `:=` in a comprehension, which belong to the scope around it."""
    if not isinstance(node, _COMPREHENSIONS):
        return []
    return [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]


def _local_names(scope: _Names) -> Set[str]:
    """Return the names of the functions and classes around a place, without those of the module."""
    found = set[str]()
    inner: _Names | None = scope
    while inner is not None and inner.above is not None:
        found |= inner.origins.keys()
        inner = inner.above
    return found

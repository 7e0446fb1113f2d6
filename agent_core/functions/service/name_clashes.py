"""Names that several modules of one library use: each function gets its module's name before its own.

A workspace has each name once. Text → text: the definition, what means it in its module, and what other modules of
the library take of it are renamed in their lines, so that every line stays where it is.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent_core.base.problem import Problem
from agent_core.registry.spans import bound_names, column_of
from agent_core.registry.tree import Definition
from sandbox.wire.lines import lines_of

from .closure import ModuleParts
from .library_files import LibraryFile, aliases, demands

_Edit = tuple[int, int, str, str]  # line, column in bytes, the old and the new text
_Renamed = Mapping[str, Mapping[str, str]]  # by module: the new names by the old
_LONGEST = 64  # of a function's name
_PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) ")


def told_apart(parts: Mapping[str, LibraryFile], holders: Mapping[str, str]) -> dict[str, LibraryFile]:
    """Return the modules of a library with no function's name in two of them.

    A function keeps its name in the module that holds it in the workspace, by `holders`, or at the top of the package.
    """
    renamed = _renamed(parts, holders)
    return {module: _rewritten(part, renamed) for module, part in parts.items()} if renamed else dict(parts)


def _renamed(parts: Mapping[str, LibraryFile], holders: Mapping[str, str]) -> dict[str, dict[str, str]]:
    owners: dict[str, list[str]] = defaultdict(list)
    for part in parts.values():
        for name in part.parts.public:
            owners[name].append(part.module)
    shared = {name: modules for name, modules in owners.items() if len(modules) > 1}
    moving: dict[str, list[str]] = defaultdict(list)
    wanted = demands(parts)
    for name, modules in shared.items():
        keeper = _keeper(name, modules, parts, holders, wanted)
        for module in modules:
            if module != keeper and _is_bound_by_definitions(name, parts[module]) and "*" not in wanted[module]:
                moving[module].append(name)
    prefixes = _prefixes(list(moving))
    renamed: dict[str, dict[str, str]] = {}
    for module, names in moving.items():
        fresh = {name: f"{prefixes[module]}_{name}" for name in names}
        free = (name for name in names if fresh[name] not in owners and holders.get(fresh[name], module) == module)
        renamed[module] = {name: fresh[name] for name in free if len(fresh[name]) <= _LONGEST}
    return renamed


def _keeper(
    name: str,
    modules: list[str],
    parts: Mapping[str, LibraryFile],
    holders: Mapping[str, str],
    wanted: Mapping[str, frozenset[str]],
) -> str | None:
    """Return the module in which a function keeps its name."""
    if holders.get(name) in modules:
        return holders[name]
    starred = [module for module in modules if "*" in wanted[module]]
    tops = [module for module in modules if parts[module].path.endswith("/__init__.py")]
    return next(iter([*starred, *sorted(tops, key=lambda module: module.count("."))]), None)


def _is_bound_by_definitions(name: str, part: LibraryFile) -> bool:
    """Check whether only `def` binds a name in its module, so that all that means it can be found."""
    body = part.parts.text.body
    is_shared = any(isinstance(node, ast.Global) and name in node.names for top in body for node in ast.walk(top))
    binding = [top for top, names in zip(body, part.parts.binds, strict=True) if name in names]
    return not is_shared and all(isinstance(top, Definition) for top in binding)


def _prefixes(modules: list[str]) -> dict[str, str]:
    """Return the shortest end of each module's path that none has that is not deeper, as the beginning of a name."""
    paths = {module: [word.strip("_") or word for word in module.split(".")] for module in modules}
    prefixes: dict[str, str] = {}
    for module, words in paths.items():
        others = [other for name, other in paths.items() if name != module and len(other) <= len(words)]
        lengths = range(1, len(words) + 1)
        count = next((size for size in lengths if all(words[-size:] != other[-size:] for other in others)), len(words))
        prefixes[module] = "_".join(words[-count:])
    return prefixes


def _rewritten(part: LibraryFile, renamed: _Renamed) -> LibraryFile:
    own = renamed.get(part.module, {})
    nodes = [node for statement in part.parts.text.body for node in ast.walk(statement)]
    before = lines_of(part.text)
    edits = {*_own_edits(part, own), *_imported(part, nodes, renamed), *_attributes(part, nodes, renamed)}
    if not edits:
        return part
    lines = list(before)
    for line, column, old, new in sorted(edits, reverse=True):
        text = lines[line - 1]
        start = column_of(text, column)
        lines[line - 1] = text[:start] + re.sub(rf"\b{re.escape(old)}\b", new, text[start:], count=1)
    parts = ModuleParts.of("".join(lines), part.file, part.module)
    if isinstance(parts, Problem):
        return part
    notes = dict(_notes(part, own, before, lines))
    adapted = replace(part.adapted, text="".join(lines), mapped={**notes, **part.adapted.mapped})
    return replace(part, parts=parts, adapted=adapted)


def _notes(
    part: LibraryFile, own: Mapping[str, str], before: list[str], after: list[str]
) -> Iterator[tuple[int, tuple[str, str]]]:
    for node in part.parts.text.body:
        if isinstance(node, Definition) and node.name in own:
            message = f"named it `{own[node.name]}`, as another module of the library has a `{node.name}`, too"
            at = node.lineno - 1
            yield part.parts.line(node.name), (message, f"-{before[at].rstrip()}\n+{after[at].rstrip()}")


def _own_edits(part: LibraryFile, own: Mapping[str, str]) -> Iterator[_Edit]:
    if not own:
        return
    uses = _Uses(own, [], [])
    for node in part.parts.text.body:
        uses.visit(node)
    yield from uses.edits
    lines = lines_of(part.text)
    for node in part.parts.text.body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield from _in_text(inner, lines, own)


def _in_text(node: ast.Constant, lines: list[str], own: Mapping[str, str]) -> Iterator[_Edit]:
    """Yield the edits in the lines of the examples that a docstring shows."""
    for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
        line = lines[number - 1]
        if _PROMPT.match(line):
            for old, new in own.items():
                for match in re.finditer(rf"(?<![\w.'\"]){old}(?![\w'\"]|\s*=[^=])", line):
                    yield number, len(line[: match.start()].encode()), old, new


def _imported(part: LibraryFile, nodes: list[ast.AST], renamed: _Renamed) -> Iterator[_Edit]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            own = renamed.get(part.base_of(node), {})
            for alias in node.names:
                if alias.name in own:
                    kept = "" if alias.asname else f" as {alias.name}"
                    yield alias.lineno, alias.col_offset, alias.name, f"{own[alias.name]}{kept}"


def _attributes(part: LibraryFile, nodes: list[ast.AST], renamed: _Renamed) -> Iterator[_Edit]:
    modules = aliases(part, nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            own = renamed.get(modules.get(node.value.id, ""), {})
            if node.attr in own and node.end_lineno and node.end_col_offset:
                column = node.end_col_offset - len(node.attr.encode())
                yield node.end_lineno, column, node.attr, own[node.attr]


@dataclass(slots=True)
class _Uses(ast.NodeVisitor):
    """Collects the places that mean a module's own functions; `scopes` are those around a place, classes marked."""

    names: Mapping[str, str]
    scopes: list[tuple[set[str], bool]]
    edits: list[_Edit]

    def visit_Name(self, node: ast.Name) -> None:
        """Take note of a name that no scope around it binds."""
        self._note(node.id, node.lineno, node.col_offset)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Take note of what `__all__` names."""
        if not self.scopes and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets):
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value in self.names:
                    self._note(inner.value, inner.lineno, inner.col_offset)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look into a function, whose decorators, defaults and hints belong to what is around it."""
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Look into a function as into any other."""
        self._function(node)

    def _function(self, node: Definition) -> None:
        self._note(node.name, node.lineno, node.col_offset)
        arguments = [part for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        hints = [part.annotation for part in arguments if part.annotation]
        outside = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *hints]
        for part in [*outside, *([node.returns] if node.returns else [])]:
            self.visit(part)
        bound = {part.arg for part in arguments}.union(*map(bound_names, node.body))
        self._inside(node.body, bound)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Look into a lambda."""
        for part in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)
        self._inside([node.body], {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)})

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look into a class, whose names its methods do not see."""
        for part in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
            self.visit(part)
        self._inside(node.body, set[str]().union(*map(bound_names, node.body)), is_class=True)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        """Look into a comprehension."""
        self._comprehension(node, node.generators)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        """Look into a comprehension."""
        self._comprehension(node, node.generators)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        """Look into a comprehension."""
        self._comprehension(node, node.generators)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """Look into a generator expression."""
        self._comprehension(node, node.generators)

    def _comprehension(self, node: ast.expr, generators: list[ast.comprehension]) -> None:
        targets = {name.id for part in generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
        self._inside(ast.iter_child_nodes(node), targets)

    def _inside(self, nodes: Iterable[ast.AST], bound: set[str], *, is_class: bool = False) -> None:
        around = self.scopes
        self.scopes = [*(scope for scope in around if is_class or not scope[1]), (bound, is_class)]
        for node in nodes:
            self.visit(node)
        self.scopes = around

    def _note(self, name: str, line: int, column: int) -> None:
        if name in self.names and not any(name in bound for bound, _ in self.scopes):
            self.edits.append((line, column, name, self.names[name]))

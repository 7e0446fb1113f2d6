"""The imports between the files of a library, written for their place in a workspace.

Text → text; the lines stay where they are.
"""

import ast
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent_core.base import syntax
from agent_core.registry.source import FOLDER
from sandbox.wire.lines import lines_of

_BACKPORT = "typing_extensions"


@dataclass(frozen=True, slots=True)
class MovedImports:
    """A text with its imports for their new place.

    `uses` are the modules of the library that it imports, `own_packages` those above it from which it takes more than
    their modules, and `notes` the rewrites by line: a sentence and the diff.
    """

    text: str
    uses: frozenset[str] = frozenset()
    own_packages: frozenset[str] = frozenset()
    notes: Mapping[int, tuple[str, str]] = field(default_factory=dict)


def moved_imports(text: str, targets: Mapping[str, str], own: str, prefix: str) -> MovedImports:
    """Return the text of a file with the library's modules under their new names.

    `own` is the module's dotted path in the library, with `__init__` at its end for a package; `targets` are the
    modules by their paths. Whatever is not Python comes back as it is.
    """
    nodes = _imports(text)
    moving = _Moving(lines_of(text), targets, own, prefix)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            moving.take_from(node)
        else:
            moving.take(node)
    return MovedImports("".join(moving.lines), frozenset(moving.uses), frozenset(moving.own_packages), moving.notes)


def offered_modules(text: str, own: str) -> Iterator[str]:
    """Yield the modules of which a package's text takes public names, by their paths in the library."""
    for node in _imports(text):
        if isinstance(node, ast.ImportFrom) and any(not alias.name.startswith("_") for alias in node.names):
            yield climbed(own, node) if node.level else node.module or ""


def climbed(own: str, node: ast.ImportFrom) -> str:
    """Return the module that a relative import names, in the module `own`."""
    parts = own.split(".")
    base = parts[: len(parts) - node.level] if node.level <= len(parts) else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _imports(text: str) -> list[ast.Import | ast.ImportFrom]:
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


@dataclass(slots=True)
class _Moving:
    """The lines of one file while its imports are rewritten."""

    lines: list[str]
    targets: Mapping[str, str]
    own: str
    prefix: str
    uses: set[str] = field(default_factory=set)
    own_packages: set[str] = field(default_factory=set)
    notes: dict[int, tuple[str, str]] = field(default_factory=dict)

    def take_from(self, node: ast.ImportFrom) -> None:
        """Rewrite `from … import …`."""
        base = climbed(self.own, node) if node.level else node.module or ""
        members = {alias.name: f"{base}.{alias.name}".strip(".") for alias in node.names}
        imported = [name for name in (base, *members.values()) if name in self.targets]
        self.uses |= {self.targets[name] for name in imported}
        if self._is_above(base) and not all(name in self.targets for name in members.values()):
            self.own_packages.add(self.targets[base])
        if imported and not (_is_standard(base) and not node.level):
            self._name_base(node, base, imported)
            for alias in node.names:
                self._name_member(node, alias, self.targets.get(members[alias.name], ""))
        elif base == _BACKPORT and all(hasattr(typing, alias.name) for alias in node.names):
            before = self.lines[node.lineno - 1]
            self._replace(node, rf"\b{_BACKPORT}\b", "typing")
            diff = f"-{before.rstrip()}\n+{self.lines[node.lineno - 1].rstrip()}"
            self.notes[node.lineno] = (f"took from `typing` what it took from `{_BACKPORT}`", diff)

    def take(self, node: ast.Import) -> None:
        """Rewrite `import …`."""
        for alias in node.names:
            if alias.name not in self.targets or _is_standard(alias.name):
                continue
            top, new = alias.name.partition(".")[0], f"{FOLDER}.{self.targets[alias.name]}"
            self.uses.add(self.targets[alias.name])
            reached = alias.name if alias.asname else top
            if self._is_above(reached):
                self.own_packages.add(self.targets[reached])
            if alias.asname:
                self._replace(node, rf"(?<![\w.]){re.escape(alias.name)}(?=\s+as\b)", new)
                continue
            package = self.targets.get(top) or ".".join([*([self.prefix] if self.prefix else []), top])
            bound = f"{FOLDER}.{package} as {top}"
            both = bound if alias.name == top else f"{new}, {bound}"  # `a.b` binds `a`
            self._replace(node, rf"(?<![\w.]){re.escape(alias.name)}(?![\w.])", both)

    def _is_above(self, module: str) -> bool:
        """Check whether a module is a package around this one."""
        return module in self.targets and self.own.startswith(f"{module}.") and self.own != f"{module}.__init__"

    def _name_base(self, node: ast.ImportFrom, base: str, imported: list[str]) -> None:
        new = self.targets.get(base) or self.targets[imported[0]].rpartition(".")[0]
        if not node.level:
            self._replace(node, rf"\bfrom\s+{re.escape(base)}(?=\s+import\b)", f"from {FOLDER}.{new}".rstrip("."))
        elif node.module and base in self.targets and new.rpartition(".")[2] != base.rpartition(".")[2]:
            written = re.escape("." * node.level + node.module)
            self._replace(node, rf"\bfrom\s+{written}(?=\s+import\b)", f"from {FOLDER}.{new}")

    def _name_member(self, node: ast.ImportFrom, alias: ast.alias, target: str) -> None:
        new = target.rpartition(".")[2]
        if target and new != alias.name:
            kept = "" if alias.asname else f" as {alias.name}"
            line = self.lines[alias.lineno - 1]
            start = line.index("import") + 6 if alias.lineno == node.lineno else 0
            at = re.compile(rf"\b{re.escape(alias.name)}\b").search(line, start)
            if at:
                self.lines[alias.lineno - 1] = f"{line[: at.start()]}{new}{kept}{line[at.end() :]}"

    def _replace(self, node: ast.stmt, pattern: str, new: str) -> None:
        at = node.lineno - 1
        line = self.lines[at]
        self.lines[at] = line[: node.col_offset] + re.sub(pattern, new, line[node.col_offset :], count=1)


def _is_standard(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names

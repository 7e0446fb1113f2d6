"""A module's syntax tree: its functions, the meanings of its names, and the modules it imports."""

import ast
import builtins
import dataclasses
import datetime
import typing
from functools import lru_cache

from agent_core.base import syntax
from agent_core.base.records import dataclass, field

from .source import FOLDER, ModuleSource, blocks

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_BUILTINS = frozenset(dir(builtins))
_ALL = "__all__"
# The names that `from … import *` binds, for the standard library modules whose types we read.
_STARS = {
    "typing": typing.__all__,
    "datetime": datetime.__all__,
    "dataclasses": dataclasses.__all__,
}


@dataclass(slots=True)
class Scope:
    """The names that a module's top level binds, as far as syntax shows; filled once by `survey`, then only read."""

    module: str = ""
    is_package: bool = False
    imports: dict[str, str] = field(default_factory=dict)  # local name → dotted origin
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)  # plain and type-alias assignments
    reassigned: set[str] = field(default_factory=set)  # values that a later assignment changes
    definitions: dict[str, Definition] = field(default_factory=dict)
    redefined: list[tuple[Definition, Definition]] = field(default_factory=list)  # (earlier, later)
    exported: frozenset[str] | None = None

    def origin(self, node: ast.expr) -> str:
        """Return the dotted origin of a name or attribute; "" if it is unknown, ".Name" for the module's own."""
        if isinstance(node, ast.Name):
            if node.id in self.imports:
                return self.imports[node.id]
            if node.id in self.classes or node.id in self.values:
                return f".{node.id}"
            return f"builtins.{node.id}" if node.id in _BUILTINS else ""
        if isinstance(node, ast.Attribute):
            inner = self.origin(node.value)
            return f"{inner}.{node.attr}" if inner else ""
        return ""

    def public(self) -> list[Definition]:
        """Return the functions that the module offers, in line order."""
        definitions = [
            node
            for name, node in self.definitions.items()
            if not name.startswith("_") and (self.exported is None or name in self.exported)
        ]
        return sorted(definitions, key=lambda node: node.lineno)

    def bind(self, node: ast.stmt, *, is_conditional: bool) -> None:
        """Add what a statement binds; under a condition, an earlier definition keeps its name."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                earlier = self.definitions.get(node.name)
                if any(self.origin(mark).endswith(".overload") for mark in node.decorator_list):
                    return
                if earlier is None:
                    self.definitions[node.name] = node
                elif not is_conditional:
                    self.redefined.append((earlier, node))
                    self.definitions[node.name] = node
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.ClassDef(name=name):
                self.classes[name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.reassigned.add(name)
                if name == _ALL and self.exported is not None:
                    self.exported |= _strings(value) or frozenset()
            case _ if type(node).__name__ == "TypeAlias":  # `type X = …` of Python 3.12
                self.values[node.name.id] = node.value  # type: ignore[attr-defined] # 3.11's ast does not know it

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".", 1)[0]
                self.imports[alias.asname or top] = alias.name if alias.asname else top
            return
        base = "." * node.level + (node.module or "")
        if self.module:
            base = imported_module(
                node.module or "", node.level, f"{FOLDER}.{self.module}", is_package=self.is_package
            )
        for alias in node.names:
            if alias.name == "*":
                self.imports |= {name: f"{base}.{name}" for name in _STARS.get(base, ())}
            else:
                self.imports[alias.asname or alias.name] = f"{base}.{alias.name}"

    def _assign(self, name: str, value: ast.expr) -> None:
        if name == _ALL:
            self.exported = _strings(value)
        else:
            self.reassigned |= {name} & self.values.keys()
            self.values[name] = value


def survey(tree: ast.Module, source: ModuleSource | None = None) -> Scope:
    """Return what the top level of a module binds, including inside `if` and `try`.

    With a source, relative imports are resolved.
    """
    scope = Scope()
    if source is not None:
        scope.module, scope.is_package = source.module, source.path.endswith("/__init__.py")
    pending = [(node, False) for node in reversed(tree.body)]
    while pending:
        node, is_conditional = pending.pop()
        match node:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):  # does not run at import
                continue
            case ast.If() | ast.Try() | ast.TryStar() | ast.With():
                pending += [(inner, True) for inner in reversed(blocks(node))]
            case _:
                scope.bind(node, is_conditional=is_conditional)
    return scope


def _strings(value: ast.expr) -> frozenset[str] | None:
    if not isinstance(value, ast.List | ast.Tuple | ast.Set):
        return None
    return frozenset(
        item.value
        for item in value.elts
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    )


def may_import_neighbors(text: str) -> bool:
    """Check quickly, without parsing, whether a text may import modules of `functions/`."""
    return FOLDER in text or "from ." in text or "from\t." in text


def workspace_imports(
    tree: ast.Module, text: str, module: str, *, is_package: bool
) -> tuple[str, ...]:
    """Return the modules of `functions/` that a module may import, at the top level or in a function.

    `from functions.web import pages` may mean the module `web.pages` or a name in `web`: both are returned, and the
    snapshot shows which of them exists.
    """
    if not may_import_neighbors(text):
        return ()
    modules: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = imported_module(
                node.module or "", node.level, f"{FOLDER}.{module}", is_package=is_package
            )
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.startswith(f"{FOLDER}.") and not name.endswith(".*"):
                modules[name.removeprefix(f"{FOLDER}.")] = None
    return tuple(modules)


def imports_own_name(source: ModuleSource) -> bool:
    """Return whether a file of the folder imports its own name: it means a package, as nothing imports itself."""
    if "." in source.module or source.path.endswith("__init__.py"):
        return False
    return _imports_package(source.module, source.text)


@lru_cache(maxsize=64)  # asked as a file is read, and again as the snapshot takes it
def _imports_package(name: str, text: str) -> bool:
    if name not in text:  # nearly every file
        return False
    if not any(begin in text for begin in (f"import {name}", f"from {name}", f", {name}")):
        return False
    try:
        nodes = [*ast.walk(syntax.tree_of(text))]
    except SyntaxError:
        return False
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [
        node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    ]
    return any(module.partition(".")[0] == name for module in modules)


def imported_module(base: str, level: int, module: str, *, is_package: bool = False) -> str:
    """Return the module that a `from … import …` in this module refers to; relative levels are resolved."""
    if not level:
        return base
    parts = module.split(".")
    return ".".join([*parts[: max(len(parts) - level + is_package, 0)], *([base] if base else [])])

"""The files of a library as modules of this workspace: their names, imports and dependencies.

Imports between the library's own files are written for their new place; everything else stays the author's text.
"""

import ast
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.registry.source import FOLDER, check_module_name, path_of
from agent_core.registry.tree import Definition
from sandbox.wire.lines import lines_of

from ..gate.text_fixes import write_escapes
from .archive import Library
from .closure import ModuleParts
from .foreign import Adapted, adapt, counterparts
from .late_imports import absent_imports
from .library_imports import climbed, moved_imports, offered_modules

_PASSED_OVER = re.compile(
    r"(?:^|/)(?:tests?|docs|examples)/|(?:^|/)(?:tests?|test_[^/]*|[^/]*_test|conftest|setup|__main__)\.py$"
)


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """One file of a library as a module. `uses` are the modules of the same library that it imports, `own_packages`
    those of them that lie above it and from which it takes more than their modules, `absent` its imports of packages.
    """

    file: str
    module: str
    path: str
    parts: ModuleParts
    adapted: Adapted
    problems: tuple[Problem, ...]
    uses: frozenset[str]
    own_packages: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The module's text as it would be written here."""
        return self.adapted.text

    @property
    def is_facade(self) -> bool:
        """True for a file that only makes a package of its modules, and offers nothing itself."""
        return self.path.endswith("/__init__.py") and not self.parts.public

    def loads(self) -> Iterator[str]:
        """Yield the modules that may be meant by the imports at its top, in their order."""
        for node in self.parts.text.body:
            if isinstance(node, ast.ImportFrom):
                base = self.base_of(node)
                yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
            elif isinstance(node, ast.Import):
                yield from (alias.name.removeprefix(f"{FOLDER}.") for alias in node.names)

    def base_of(self, node: ast.ImportFrom) -> str:
        """Return the module from which a statement imports."""
        own = f"{self.module}.__init__" if self.path.endswith("/__init__.py") else self.module
        return (climbed(own, node) if node.level else node.module or "").removeprefix(f"{FOLDER}.")

    def troubles(self, statements: Iterable[int]) -> list[Problem]:
        """Return the problems in these statements that must be fixed manually."""
        spans = [self.parts.text.span(self.parts.text.body[at]) for at in statements]
        return [
            problem for problem in self.problems if any(first <= problem.where.line <= last for first, last in spans)
        ]


def modules(
    library: Library, prefix: str, listed: tuple[str, ...] = (), *, maps: bool = True
) -> Iterator[LibraryFile | Problem]:
    """Yield each file that can be a module, in order of path. A file that cannot be read as Python is a problem.

    `listed` are the packages that are there.
    """
    files = {name: text for name, text in sorted(library.files.items()) if not is_passed_over(name)}
    files = {name: text for name, text in files.items() if text.strip() or not name.endswith("__init__.py")}
    targets = {_dotted(name): _target(name, prefix) for name in files if _dotted(name)}
    targets |= _opened(files, targets)
    brought = frozenset[str]()
    for name, text in files.items():
        dotted = _dotted(name)
        if not dotted:
            continue
        part = _module(library.base + name, (name, text), targets, prefix, maps=maps)
        if isinstance(part, LibraryFile):
            brought |= part.adapted.brings
            part = replace(part, absent=absent_imports(part.parts.text.body, listed))
        yield part
    yield from map(_counterpart, sorted(brought))


def _module(
    shown: str, file: tuple[str, str], targets: Mapping[str, str], prefix: str, *, maps: bool
) -> LibraryFile | Problem:
    name, text = file
    dotted = _dotted(name)
    adapted = adapt(_without_overloads(write_escapes(text)), shown, maps=maps)
    is_package = name.endswith("__init__.py")
    moved = moved_imports(adapted.text, targets, f"{dotted}.__init__" if is_package else dotted, prefix)
    parts = ModuleParts.of(moved.text, shown, targets[dotted])
    if isinstance(parts, Problem):
        return parts
    place = path_of(targets[dotted])
    place = place.removesuffix(".py") + "/__init__.py" if is_package else place
    merged = replace(adapted, text=moved.text, mapped={**escaping(text), **adapted.mapped, **moved.notes})
    own = {targets[dotted]}
    uses = moved.uses - own | {_name_of(module) for module in adapted.brings}
    return LibraryFile(shown, targets[dotted], place, parts, merged, adapted.problems, uses, moved.own_packages - own)


def _without_overloads(text: str) -> str:
    """Return the text with blank lines for the signatures that a function has for type checkers alone."""
    if "overload" not in text:
        return text
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    lines = lines_of(text)
    for node in tree.body:
        if isinstance(node, Definition) and any(map(_is_overload, node.decorator_list)):
            first, last = node.decorator_list[0].lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = ["\n"] * (last - first)
    return "".join(lines)


def _is_overload(node: ast.expr) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "overload"


def _name_of(module: str) -> str:
    return str(counterparts()["modules"][module]["name"])


def _counterpart(module: str) -> LibraryFile:
    """Return the module that stands in for one of another agent, or of a package."""
    name, text = _name_of(module), str(counterparts()["modules"][module]["text"])
    parts = ModuleParts.of(text, name, name)
    assert not isinstance(parts, Problem)
    return LibraryFile(name, name, path_of(name), parts, Adapted(text, {}, (), frozenset()), (), frozenset())


def demands(parts: Mapping[str, LibraryFile]) -> dict[str, frozenset[str]]:
    """Return for each module the names that other modules of the library take from it; `*` for all of them."""
    wanted: dict[str, set[str]] = {module: set() for module in parts}
    used = {module for part in parts.values() for module in part.uses}
    for part in (part for part in parts.values() if part.module in used or not part.is_facade):
        nodes = [node for statement in part.parts.text.body for node in ast.walk(statement)]
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                wanted.get(part.base_of(node), set()).update(alias.name for alias in node.names)
        modules_by_name = aliases(part, nodes)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                root, *rest = _chain(node.value)
                module = ".".join([modules_by_name.get(root, ""), *rest])
                wanted.get(module, set()).add(node.attr)
    return {module: frozenset(names) for module, names in wanted.items()}


def _chain(node: ast.expr) -> list[str]:
    """Return the names of `a.b.c`; an empty one for what is no such chain."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=value, attr=name):
            return [*_chain(value), name]
    return [""]


def aliases(part: LibraryFile, nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the names that these nodes import in a module, each with what it may mean as a module of the library."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            base = part.base_of(node)
            names |= {
                alias.asname or alias.name: f"{base}.{alias.name}".removeprefix(f"{FOLDER}.") for alias in node.names
            }
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name.removeprefix(f"{FOLDER}.") for alias in node.names}
    return names


def escaping(text: str) -> dict[int, tuple[str, str]]:
    """Return the characters written as escapes in the strings of a text, by line: a sentence and the diff."""
    pairs = zip(lines_of(text), lines_of(write_escapes(text)), strict=True)
    message = "wrote characters that cannot be seen as escapes"
    return {
        number: (message, f"-{before.rstrip()}\n+{after.rstrip()}")
        for number, (before, after) in enumerate(pairs, 1)
        if before != after
    }


def is_passed_over(name: str) -> bool:
    """Return whether a file is skipped: tests, setup files and the like hold no functions to be called."""
    return bool(_PASSED_OVER.search(name))


def fitting(name: str) -> str:
    """Return a word as a valid part of a module's name."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII).strip() or "library"
    return f"m{plain}" if plain[0].isdigit() else f"{plain}_" if keyword.iskeyword(plain) else plain


def _dotted(name: str) -> str:
    path = PurePosixPath(name)
    parts = path.parts[:-1] if path.name == "__init__.py" else (*path.parts[:-1], path.stem)
    return ".".join(parts)


def _opened(files: Mapping[str, str], targets: Mapping[str, str]) -> dict[str, str]:
    """Return the private modules of which a package offers what they hold, each with a name that is not private."""
    opened: dict[str, str] = {}
    for name, text in files.items():
        if not name.endswith("/__init__.py"):
            continue
        for module in offered_modules(text, f"{_dotted(name)}.__init__"):
            package, _, own = targets.get(module, "").rpartition(".")
            public = f"{package}.{own.strip('_')}"
            is_file = f"{module.replace('.', '/')}.py" in files
            is_free = public not in {*targets.values(), *opened.values()} and check_module_name(public) is None
            if own.startswith("_") and is_file and is_free:
                opened[module] = public
    return opened


def _target(name: str, prefix: str) -> str:
    return ".".join([*([prefix] if prefix else []), *map(fitting, _dotted(name).split("."))])

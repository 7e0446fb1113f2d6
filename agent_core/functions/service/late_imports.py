"""Imports of packages that are not there, moved from the top of a module into the functions that use them.

At the top, such an import keeps out all functions of the module; inside, only those that use it ask for the package.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from agent_core.base.problem import Problem
from agent_core.registry.source import ModuleSource, parse
from agent_core.registry.spans import bound_names
from agent_core.registry.tree import Definition
from sandbox.wire.lines import lines_of

from ..gate.uses import uses


@dataclass(frozen=True, slots=True)
class LateText:
    """A text with imports moved, and for each of its lines the one that it was; a moved import has its old line."""

    text: str
    lines: tuple[int, ...]


def absent_imports(body: Iterable[ast.stmt], listed: tuple[str, ...]) -> frozenset[str]:
    """Return those import statements among these that need a package, `listed` ones apart, as text."""
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    return frozenset(
        ast.unparse(node)
        for node in imports
        if any(use.kind == "packages" for use in uses(ast.Module([node], []), listed))
    )


def with_late_imports(text: str, absent: Set[str]) -> LateText:
    """Return a module's text with these imports inside the functions that use them, as far as they can be there."""
    lines = lines_of(text)
    tree = parse(ModuleSource("module", "module", text, "")) if absent else None
    if tree is None or isinstance(tree, Problem):
        return LateText(text, tuple(range(1, len(lines) + 1)))
    removed, added = set[int](), dict[int, list[tuple[str, int]]]()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and (written := ast.unparse(node)) in absent:
            places = _places(tree.body, bound_names(node) - {"*"})
            if places is not None:
                removed |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
                for line, indent in places:
                    added.setdefault(line, []).append((f"{' ' * indent}{written}\n", node.lineno))
    rows: list[tuple[str, int]] = []
    for number, written_line in enumerate(lines, 1):
        rows += [] if number in removed else [(written_line, number)]
        rows += added.get(number, ())
    return LateText("".join(line for line, _ in rows), tuple(number for _, number in rows))


def is_at_the_top(text: str, absent: Set[str]) -> bool:
    """Check whether a text has one of these imports at its top."""
    tree = parse(ModuleSource("module", "module", text, "")) if absent else None
    body = tree.body if isinstance(tree, ast.Module) else []
    return any(isinstance(node, ast.Import | ast.ImportFrom) and ast.unparse(node) in absent for node in body)


def _places(body: Sequence[ast.stmt], names: Set[str]) -> list[tuple[int, int]] | None:
    """Return the lines below which functions that read these names can import them, each with its indentation; None if
    something else reads one while the module is loaded.
    """
    places = []
    for node in body:
        inner = list(_functions(node))
        bodies = {id(part) for function in inner for statement in function.body for part in ast.walk(statement)}
        if any(_reads(part, names) for part in ast.walk(node) if id(part) not in bodies):
            return None
        for function in inner:
            if any(_reads(part, names) for statement in function.body for part in ast.walk(statement)):
                first = function.body[0]
                if first.lineno == function.lineno:
                    return None
                is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                line = (first.end_lineno or first.lineno) if is_docstring else _start(first) - 1
                places.append((line, first.col_offset))
    return places


def _functions(node: ast.stmt) -> Iterator[Definition]:
    if isinstance(node, Definition):
        yield node
    elif isinstance(node, ast.ClassDef):
        yield from (member for member in node.body if isinstance(member, Definition))


def _start(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.ClassDef | Definition) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _reads(node: ast.AST, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names

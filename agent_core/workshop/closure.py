"""What a function of a module needs beside itself, and a module's text with only some of its functions.

Text → text: imports, helpers, constants and classes are found by the names that are read; what is kept is kept
word for word.
"""

import ast
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from sandbox.lines import bare_lines

from ..problem import Problem
from ..registry.source import Source, parse
from ..registry.spans import Edit, Text, applied, bound_names, is_blank
from ..registry.tree import Definition, survey
from ..registry.writing import remove_function

_ALWAYS = frozenset({"*"})


@dataclass(frozen=True, slots=True)
class Parts:
    """A module as statements: which names each binds, changes and reads, and which functions are public."""

    text: Text
    binds: tuple[frozenset[str], ...]
    changes: tuple[frozenset[str], ...]
    reads: tuple[frozenset[str], ...]
    public: tuple[str, ...]

    @classmethod
    def of(cls, text: str, path: str = "module") -> "Parts | Problem":
        """The parts of a text, or why it cannot be read."""
        tree = parse(Source(path, path, text, ""))
        if isinstance(tree, Problem):
            return tree
        return cls(
            Text.of(text, tree),
            tuple(frozenset(_bound(node)) for node in tree.body),
            tuple(frozenset(_changed(node)) for node in tree.body),
            tuple(frozenset(_read(node)) for node in tree.body),
            tuple(node.name for node in survey(tree).public() if node in tree.body),
        )

    def line(self, name: str) -> int:
        """Where a function stands."""
        at = max(at for at, bound in enumerate(self.binds) if name in bound)
        return self.text.body[at].lineno

    def uses(self, name: str) -> frozenset[str]:
        """The public functions that one needs, directly or through what is private."""
        return frozenset(self._reached([name], stop=frozenset(self.public) - {name})[1])

    def needed(self, names: Iterable[str], stop: Set[str] = frozenset()) -> set[int]:
        """The statements that these functions need, their own among them; not those of the functions in `stop`."""
        return self._reached(names, stop)[0]

    def methods_left(self) -> Iterator[tuple[int, str, int]]:
        """The classes that no public function needs: line, name, and how many public methods would be left behind."""
        needed = self.needed(self.public)
        for at, node in enumerate(self.text.body):
            if isinstance(node, ast.ClassDef) and at not in needed:
                count = sum(isinstance(one, Definition) and not one.name.startswith("_") for one in node.body)
                if count:
                    yield node.lineno, node.name, count

    def _reached(self, names: Iterable[str], stop: Set[str]) -> tuple[set[int], set[str]]:
        found = {at for at, bound in enumerate(self.binds) if bound & _ALWAYS}
        seen, met = set(names), set[str]()
        waiting = list(seen)
        while waiting:
            name = waiting.pop()
            if name in stop:
                met.add(name)
                continue
            for at, (bound, changed) in enumerate(zip(self.binds, self.changes, strict=True)):
                if at not in found and name in bound | changed:
                    found.add(at)
                    new = (self.reads[at] | changed) - seen
                    seen |= new
                    waiting += new
        return found, met

    def candidate(self, statements: Set[int]) -> tuple[str, list[int]]:
        """These statements as a text of their own, and for each of its lines the line of the module."""
        lines: list[str] = []
        places: list[int] = []
        was_import = True
        for at in sorted(statements):
            node = self.text.body[at]
            is_import = isinstance(node, ast.Import | ast.ImportFrom)
            start = self.text.span(node)[0]
            if lines and not (is_import and was_import):
                lines += ["", ""]
                places += [start, start]
            own = bare_lines(self.text.segment(node))
            lines += own
            places += range(start, start + len(own))
            was_import = is_import
        return "\n".join(lines) + "\n", places


def only(text: str, kept: Set[str], dropped: Set[int] = frozenset(), *, is_bare: bool = True) -> str | Problem:
    """A module's text with some of its public functions, and if it `is_bare` with nothing that they do not need.

    The lines in `dropped` hold imports that go in any case.
    """
    parts = Parts.of(text)
    if isinstance(parts, Problem):
        return parts
    gone = [name for name in parts.public if name not in kept]
    needed = parts.needed(kept) if is_bare else set(range(len(parts.binds)))
    edits = []
    for at, node in enumerate(parts.text.body):
        stays = at in needed or _is_head(node, at, parts) or bool(set(gone) & parts.binds[at])
        if not stays or node.lineno in dropped:
            edits.append(_removal(parts.text, node))
    text = applied(parts.text.lines, edits).strip("\r\n") + parts.text.newline
    for name in gone:
        left = remove_function(text, name)
        if isinstance(left, Problem):
            return left
        text = left
    return text


def _is_head(node: ast.stmt, at: int, parts: Parts) -> bool:
    is_docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or "__all__" in parts.binds[at]


def _removal(text: Text, node: ast.stmt) -> Edit:
    """The statement's lines with the blank ones below it; of those as many stay as are missing above it."""
    start, last = text.span(node)
    first, end = start - 1, last
    while end < len(text.lines) and is_blank(text.lines[end]):
        end += 1
    while first and is_blank(text.lines[first - 1]):
        first -= 1
    above, below = start - 1 - first, end - last
    return Edit(start - 1, end, (text.newline,) * max(0, below - above))


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return {"*"}
    return bound_names(node)


def _changed(node: ast.stmt) -> set[str]:
    """The names whose values a statement of the top level changes: `TABLE["a"] = 1`, `TABLE.update(…)`."""
    match node:
        case ast.Assign(targets=targets):
            found = targets
        case ast.AugAssign(target=target):
            found = [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target))):
            found = [target]
        case _:
            return set()
    return {
        root
        for one in found
        if not isinstance(one, ast.Name) or not isinstance(node, ast.Assign)
        for root in _root(one)
    }


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _read(node: ast.stmt) -> set[str]:
    """Every name that stands in a statement, in hints that are texts too."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.arg | ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef):
            hint = inner.returns if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) else inner.annotation
            found |= _in_text(hint)
    return found


def _in_text(hint: ast.expr | None) -> set[str]:
    found = set()
    for inner in ast.walk(hint) if hint is not None else ():
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            try:
                found |= {one.id for one in ast.walk(ast.parse(inner.value, mode="eval")) if isinstance(one, ast.Name)}
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return found

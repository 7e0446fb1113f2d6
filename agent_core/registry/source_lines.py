"""A module's text as lines and spans, for edits that leave everything else unchanged.

Line numbers count from 1, and a span's end is its last line.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.wire.lines import lines_of

_HEADER = re.compile(r"^#!|^[ \t\f]*#.*?coding[:=]")


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A parsed text: its lines with their line ends, and its top-level statements."""

    lines: tuple[str, ...]
    body: tuple[ast.stmt, ...]

    @classmethod
    def of(cls, text: str, tree: ast.Module) -> "ParsedText":
        """Return the parsed text for a text and its tree."""
        return cls(tuple(lines_of(text)), tuple(tree.body))

    @property
    def newline(self) -> str:
        """The line ending of the first line; the others are assumed to be the same."""
        first = self.lines[0] if self.lines else ""
        return "\r\n" if first.endswith("\r\n") else "\n"

    def ended(self) -> "ParsedText":
        """Return the same text with a line ending on its last line."""
        if not self.lines or self.lines[-1].endswith(("\n", "\r")):
            return self
        return ParsedText((*self.lines[:-1], self.lines[-1] + self.newline), self.body)

    def span(self, node: ast.stmt) -> tuple[int, int]:
        """Return the lines of a statement: with decorators, comments right above, and indented comments at its end."""
        end = last_line(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for number, line in enumerate(self.lines[end:], end + 1):
                if line.strip() and not (line[0] in " \t" and line.lstrip().startswith("#")):
                    break
                if line.strip():
                    end = number
        return self.with_comments(first_line(node)), end

    def with_comments(self, start: int) -> int:
        """Return the first line of a statement that starts on this line, including comments right above it."""
        while start > 1 and self.lines[start - 2].startswith("#"):
            if start <= 3 and _HEADER.match(self.lines[start - 2]):
                break
            start -= 1
        return start

    def shares_a_line(self, node: ast.stmt) -> bool:
        """Check whether another statement shares a line with this one, after a semicolon."""
        start, end = node.lineno, last_line(node)
        return any(
            statement is not node and statement.lineno <= end and last_line(statement) >= start
            for statement in self.body
        )

    def segment(self, node: ast.stmt) -> str:
        """Return a statement's own lines with its comments, without the final line end."""
        if self.shares_a_line(node):
            return ast.unparse(node)
        start, end = self.span(node)
        return "".join(self.lines[start - 1 : end]).rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class LineEdit:
    """New lines for `lines[start:end]`, counted from 0; an insertion if both are equal."""

    start: int
    end: int
    lines: tuple[str, ...]


def applied(lines: Iterable[str], edits: Iterable[LineEdit]) -> str:
    """Return the text with non-overlapping edits applied; insertions at the same position keep their order."""
    original, result, at = list(lines), [], 0
    for edit in sorted(edits, key=lambda item: item.start):
        result += [*original[at : edit.start], *edit.lines]
        at = edit.end
    return "".join([*result, *original[at:]])


def first_line(node: ast.stmt) -> int:
    """Return the first line of a statement, including its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    """Return the last line of a statement."""
    return node.end_lineno or node.lineno


def column_of(line: str, byte_offset: int) -> int:
    """Return the index of a character for the UTF-8 byte offset of a syntax tree."""
    return len(line.encode("utf-8")[:byte_offset].decode("utf-8"))


def is_blank(line: str) -> bool:
    """Check whether a line is empty or whitespace."""
    return not line.strip()


def with_newline(text: str, newline: str) -> str:
    """Return a text with uniform line endings."""
    return re.sub(r"\r\n|\r|\n", lambda _: newline, text)


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds, including in its blocks, but not in functions and classes.

    The signature of an `@overload` binds nothing.
    """
    marks = getattr(node, "decorator_list", ())
    if any((getattr(mark, "attr", "") or getattr(mark, "id", "")) == "overload" for mark in marks):
        return set()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".", 1)[0] for alias in node.names}
    if type(node).__name__ == "TypeAlias":  # Python 3.12's `type X = …`
        return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    outer = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.withitem)]
    inner_names = (part for child in outer for part in ast.walk(child) if isinstance(part, ast.Name))
    names = {name.id for name in inner_names if isinstance(name.ctx, ast.Store)}
    return names.union(*(bound_names(inner) for inner in blocks(node)))


def blocks(node: ast.stmt) -> list[ast.stmt]:
    """Return the statements in the blocks of a statement."""
    handlers = [inner for handler in getattr(node, "handlers", ()) for inner in handler.body]
    return [*getattr(node, "body", ()), *handlers, *getattr(node, "orelse", ()), *getattr(node, "finalbody", ())]


def is_bare_value(node: ast.stmt) -> bool:
    """Check whether a statement is a value by itself, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def callee(node: ast.expr) -> ast.expr:
    """Return the function of a call, and any other expression as it is: what a decorator names."""
    return node.func if isinstance(node, ast.Call) else node


def is_literal(node: ast.expr) -> bool:
    """Check whether an expression is a literal, including containers of literals."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True

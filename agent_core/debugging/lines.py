"""Where a function can stop: the first lines of its statements, by its text alone."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from sandbox.lines import bare_lines, lines_of

from ..registry.function import Function
from ..registry.snapshot import Snapshot


def text_of(function: Function, snapshot: Snapshot) -> str:
    """The function's own lines."""
    lines = lines_of(snapshot.modules[function.module].text)[function.line - 1 : function.end_line]
    return "\n".join(line.rstrip("\r\n") for line in lines)


@lru_cache(maxsize=256)
def stopping(text: str) -> dict[int, int]:
    """The lines (from 1) at which a function stops, each with the last line of what stands there."""
    try:
        top = ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return {}
    found: dict[int, int] = {}
    for one in _statements(top):
        is_text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
        if not is_text and not isinstance(one, ast.Global | ast.Nonlocal):
            found.setdefault(one.lineno, _end(one))
    return dict(sorted(found.items()))


def stopping_lines(name: str, snapshot: Snapshot) -> list[tuple[int, str]]:
    """The lines of its file at which a function stops, each with its text; none where there is no such function."""
    function = snapshot.functions.get(name)
    if function is None:
        return []
    text = text_of(function, snapshot)
    rows = bare_lines(text)
    return [(line + function.line - 1, rows[line - 1]) for line in stopping(text)]


def nearest(text: str, line: int) -> int | None:
    """The stopping line for any line of the text: the statement that it belongs to, else the next; 0: the first."""
    lines = stopping(text)
    inside = [first for first, last in lines.items() if first <= line <= last]
    return max(inside) if inside else next((first for first in lines if first >= line), None)


def _end(one: ast.stmt) -> int:
    """The last line of a statement; of one that holds others, of its head."""
    inner = [child.lineno for child in _statements(one)]
    return max(one.lineno, min(inner) - 1) if inner else one.end_lineno or one.lineno


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)

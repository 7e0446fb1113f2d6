"""The lines at which a function can stop: the first lines of its statements, from its text alone."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from sandbox.wire.lines import bare_lines, lines_of

from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot


def text_of(function: Function, snapshot: Snapshot) -> str:
    """Return the function's own lines."""
    lines = lines_of(snapshot.modules[function.module].text)[function.line - 1 : function.end_line]
    return "\n".join(line.rstrip("\r\n") for line in lines)


@lru_cache(maxsize=256)
def stopping(text: str) -> dict[int, int]:
    """Return the lines (from 1) at which a function stops, each with the last line of its statement."""
    try:
        top = ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return {}
    last_lines: dict[int, int] = {}
    for statement in _statements(top):
        is_text = (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        )
        if not is_text and not isinstance(statement, ast.Global | ast.Nonlocal):
            last_lines.setdefault(statement.lineno, _end(statement))
    return dict(sorted(last_lines.items()))


def stopping_lines(name: str, snapshot: Snapshot) -> list[tuple[int, str]]:
    """Return the lines of its file at which a function stops, each with its text; empty if there is no such
    function.
    """
    function = snapshot.functions.get(name)
    if function is None:
        return []
    text = text_of(function, snapshot)
    rows = bare_lines(text)
    return [(line + function.line - 1, rows[line - 1]) for line in stopping(text)]


def nearest(text: str, line: int) -> int | None:
    """Return the stopping line for any line of the text: its statement's, else the next one; 0 gives the first."""
    lines = stopping(text)
    inside = [first for first, last in lines.items() if first <= line <= last]
    return max(inside) if inside else next((first for first in lines if first >= line), None)


def _end(statement: ast.stmt) -> int:
    """Return the last line of a statement; for a compound statement, of its head."""
    inner = [child.lineno for child in _statements(statement)]
    return max(statement.lineno, min(inner) - 1) if inner else statement.end_lineno or statement.lineno


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)

"""Edits a `def` line: inserts after a parameter, after the parentheses, or before the first parameter."""

import tokenize

from sandbox.wire.lines import lines_of, reader_of

from ..tree import FunctionNode, takes_self
from .view import View


def add_self(view: View) -> str:
    """Return the text with `self` as first parameter, if the function uses it and nothing defines it."""
    text, node = view.text, view.node
    if takes_self(node) or "self" not in view.missing:
        return text
    place = opening(text, node)
    if place is None:
        return text
    tail = text[place:].lstrip()
    return text[:place] + ("self" if tail.startswith(")") else "self, ") + text[place:]


def offset(text: str, line: int, column: int) -> int:
    """Return the position in a text of a tree's line and column, which counts bytes."""
    lines = lines_of(text)
    before = lines[line - 1].encode("utf-8")[:column].decode("utf-8")
    return sum(map(len, lines[: line - 1])) + len(before)


def opening(text: str, node: FunctionNode) -> int | None:
    """Return the position just after the parenthesis that opens a function's parameters."""
    span = _parentheses(text, node)
    return span[0] if span else None


def closing(text: str, node: FunctionNode) -> int | None:
    """Return the position just after the parenthesis that closes a function's parameters."""
    span = _parentheses(text, node)
    return span[1] if span else None


def _parentheses(text: str, node: FunctionNode) -> tuple[int, int] | None:
    start = offset(text, node.lineno, node.col_offset)
    depth, opened = 0, 0
    try:
        for token in tokenize.generate_tokens(reader_of(text[start:])):
            if token.type != tokenize.OP or token.string not in "()[]{}":
                continue
            depth += 1 if token.string in "([{" else -1
            if depth == 1 and token.string == "(" and not opened:
                opened = start + _within(text[start:], token.end)
            if depth == 0:
                return opened, start + _within(text[start:], token.end)
    except (tokenize.TokenError, SyntaxError):
        return None
    return None


def _within(text: str, position: tuple[int, int]) -> int:
    line, column = position
    return sum(map(len, lines_of(text)[: line - 1])) + column

"""The input of a fix: a text with its tree, the promised function, what was sent with it, and the places of its `def`.

`add_self` is the fix that needs no more than these places.
"""

import ast
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_core.registry import docstring
from sandbox.wire.lines import lines_of, reader_of

from .tree import FunctionNode, bound_names, find, missing_names, parameters, parse, takes_self

if TYPE_CHECKING:
    from agent_core.registry.docstring import Described
    from agent_core.registry.function import Function

    from .candidate import GivenExample


@dataclass(frozen=True, slots=True)
class View:
    """A candidate's text before a fix; `around` is the text of the module that it goes into, `module` its name, and
    `functions` are those of the workspace.
    """

    text: str
    name: str
    tree: ast.Module
    node: FunctionNode
    around: str = ""
    description: str = ""
    examples: tuple["GivenExample", ...] = ()
    module: str = ""
    functions: Mapping[str, "Function"] = field(default_factory=dict)

    @property
    def known(self) -> frozenset[str]:
        """The names that the surrounding module has."""
        tree = parse(self.around) if self.around else None
        return bound_names(tree) if isinstance(tree, ast.Module) else frozenset()

    @property
    def missing(self) -> set[str]:
        """The names that nothing defines."""
        return missing_names(self.text, self.tree, self.known)

    def module_with(self, name: str) -> str:
        """Return the other module of the workspace that has a function which can be imported; empty if none has."""
        function = self.functions.get(name)
        if function is None or function.takes_self or function.module == self.module or name == self.name:
            return ""
        return function.module

    @property
    def words(self) -> str:
        """The docstring as written; empty if there is none."""
        return ast.get_docstring(self.node, clean=False) or ""

    @property
    def described(self) -> "Described":
        """The parsed content of the docstring."""
        return docstring.read(self.words)

    @property
    def undescribed(self) -> list[str]:
        """The parameters without a description."""
        descriptions = self.described.parameters
        return [parameter.arg for parameter in parameters(self.node) if not descriptions.get(parameter.arg)]

    @property
    def is_hinted(self) -> bool:
        """True if every parameter and the result have a type."""
        return self.node.returns is not None and all(parameter.annotation for parameter in parameters(self.node))


def view(text: str, name: str) -> View | None:
    """Return the view of a text alone; None if it has no such function."""
    tree = parse(text)
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    return View(text, name, tree, node) if isinstance(tree, ast.Module) and node else None


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

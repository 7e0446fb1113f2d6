"""The input of a fix: a text with its tree, the promised function, and what was sent with it."""

import ast
from dataclasses import dataclass

from agent_core.registry import docstring
from agent_core.registry.docstring import Described
from ..candidate import GivenExample
from ..missing import missing_names
from ..tree import FunctionNode, bound_names, find, parameters, parse


@dataclass(frozen=True, slots=True)
class View:
    """A candidate's text before a fix; `around` is the text of the module that it goes into."""

    text: str
    name: str
    tree: ast.Module
    node: FunctionNode
    around: str = ""
    description: str = ""
    examples: tuple[GivenExample, ...] = ()

    @property
    def known(self) -> frozenset[str]:
        """The names that the surrounding module has."""
        tree = parse(self.around) if self.around else None
        return bound_names(tree) if isinstance(tree, ast.Module) else frozenset()

    @property
    def missing(self) -> set[str]:
        """The names that nothing defines."""
        return missing_names(self.text, self.tree, self.known)

    @property
    def words(self) -> str:
        """The docstring as written; empty if there is none."""
        return ast.get_docstring(self.node, clean=False) or ""

    @property
    def described(self) -> Described:
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

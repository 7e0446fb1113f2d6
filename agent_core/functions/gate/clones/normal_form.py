"""The normal form of a function: what it computes, whatever its names, its spelling and the order of its lines.

Pure. Equal forms compute the same; the other way round nothing is promised. Private helpers, constants and
imports of the module count by what they are, not by what they are called.
"""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_core.registry.tree import Scope, survey

from ..tree import BUILTINS, FunctionNode, parse
from .facts import Facts, facts
from .names import Words
from .words import CanonicalWriter


@dataclass(frozen=True, slots=True)
class Form:
    """The words that describe what a function computes, and their hash."""

    digest: str
    words: tuple[str, ...]


def normal_form(name: str, *texts: str) -> Form | None:
    """Return the form of a function; the first text that knows a name defines it. None if there is no form."""
    trees = [parse(text) for text in texts]
    around = OuterNames([survey(tree) for tree in trees if isinstance(tree, ast.Module)])
    node = next((scope.definitions[name] for scope in around.scopes if name in scope.definitions), None)
    if node is None:
        return None
    try:
        return _form(node, around)
    except RecursionError:
        return None


@dataclass(slots=True)
class OuterNames:
    """The meanings of the names that a function does not bind itself."""

    scopes: Sequence[Scope]
    visiting: list[str] = field(default_factory=list)
    meanings: dict[str, str] = field(default_factory=dict)

    def meaning(self, name: str) -> str:
        """Return where a name was imported from, or the form of what it stands for."""
        if name in self.visiting:
            return f"~{len(self.visiting) - self.visiting.index(name)}"
        if name not in self.meanings:
            self.meanings[name] = self._meaning(name)
        return self.meanings[name]

    def _meaning(self, name: str) -> str:
        for scope in self.scopes:
            if name in scope.definitions:
                return f"#{_form(scope.definitions[name], self).digest}"
            if name in scope.imports:
                return f"@{scope.imports[name]}"
            if name in scope.classes:
                return f"#{_digest(ast.dump(scope.classes[name]))}"
            if name in scope.values:
                return self._value(name, scope.values[name])
        return f"@{name}" if name in BUILTINS else f"?{name}"

    def _value(self, name: str, value: ast.expr) -> str:
        self.visiting.append(name)
        words = _numbered(CanonicalWriter(Facts(), self.meaning, {}).write(value))
        self.visiting.pop()
        return "=" + _digest("\n".join(words))


def _form(node: FunctionNode, around: OuterNames) -> Form:
    around.visiting.append(node.name)
    try:
        words = _written(node, around)
    finally:
        around.visiting.pop()
    return Form(_digest("\n".join(words)), tuple(words))


def _written(node: FunctionNode, around: OuterNames) -> list[str]:
    node_facts = facts(node)
    first = CanonicalWriter(node_facts, around.meaning, {})
    words = first.whole(node)
    if first.is_tied:  # what looked alike is distinguished by where its names are used
        words = CanonicalWriter(node_facts, around.meaning, _colours(words)).whole(node)
    return _numbered(words)


def _numbered(words: Words) -> list[str]:
    """Number the function's own names in the order of their first use."""
    numbers: dict[int, str] = {}
    return [word if isinstance(word, str) else numbers.setdefault(word, f"v{len(numbers)}") for word in words]


def _colours(words: Words) -> dict[int, str]:
    """Return what distinguishes a name from others without naming it: the statements that use it."""
    uses_by_name: defaultdict[int, list[str]] = defaultdict(list)
    start = 0
    for end, word in enumerate([*words, ";"]):
        if word in (";", "{", "}"):
            _note(words[start:end], uses_by_name)
            start = end + 1
    return {name: _digest("|".join(sorted(uses)))[:12] for name, uses in uses_by_name.items()}


def _note(statement: Words, uses_by_name: defaultdict[int, list[str]]) -> None:
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, word in enumerate(statement):
        if isinstance(word, int):
            places[word].append(place)
    form = _digest(" ".join("v" if isinstance(word, int) else word for word in statement))
    for name, own in places.items():
        uses_by_name[name].append(f"{form} {own}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

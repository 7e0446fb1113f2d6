"""The names in a function: its own become numbers, parameters their position, others what they mean."""

import ast
from collections.abc import Callable

from agent_core.registry.tree import survey

from .facts import nodes_of

Word = str | int  # a number stands for a name of the function's own
Words = list[Word]


class Names:
    """The scopes around a place in a function, innermost last; names stay if something looks them up by text."""

    def __init__(self, meaning: Callable[[str], str], *, is_by_name: bool) -> None:
        self._meaning, self._is_by_name = meaning, is_by_name
        self._scopes: list[dict[str, Word]] = []
        self._count = 0

    def bind(self, name: object, scope: dict[str, Word]) -> None:
        """Assign a number to a name that a scope binds."""
        if isinstance(name, str) and name not in scope:
            self._count += 1
            scope[name] = name if self._is_by_name else self._count

    def word(self, name: str) -> Word:
        """Return the word that stands for a name."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None) or self._meaning(name)

    def has(self, name: str) -> bool:
        """Check whether the function binds this name."""
        return any(name in scope for scope in self._scopes)

    def inside(self, scope: dict[str, Word], write: Callable[[], Words]) -> Words:
        """Return what is written within a scope."""
        self._scopes.append(scope)
        words = write()
        self._scopes.pop()
        return words

    def bound_in(self, statements: list[ast.stmt]) -> dict[str, Word]:
        """Return the names that a block binds, each with its number, or with what it was imported from."""
        bindings: dict[str, Word] = {}
        declared: set[str] = set()
        for node in nodes_of(*statements, inside=False):
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    self.bind(name, bindings)
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    declared.update(names)
                case ast.Import() | ast.ImportFrom():
                    bindings |= {name: f"@{origin}" for name, origin in survey(ast.Module([node], [])).imports.items()}
                case ast.alias() | ast.arg() | ast.keyword():
                    pass
                case _:
                    self.bind(getattr(node, "name", None) or getattr(node, "rest", None), bindings)
        return {name: word for name, word in bindings.items() if name not in declared}

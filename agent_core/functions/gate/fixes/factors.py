"""Operands of `*` that are numbers for certain: beside a text or a list, the other factor must be a whole number.

Pure, and careful to one side: what is not known counts as a text.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from ..tree import literal, nodes_of, parameters, parse
from .carriers import carriers_of, carries, flows, local_names
from .view import View

_TEXT = re.compile(r"\b(?:str|bytes|list|tuple|dict|set)\b(?!\[)")
_KEYS = re.compile(r"\bdict\[\w+, ")
_WHOLE = re.compile(r"(?:^|\| )(?:list|tuple|str|bytes)\b")
_LIBRARIES = frozenset(["math", "statistics"])
_SURE = frozenset(
    ["len", "int", "float", "round", "sqrt", "log", "exp", "sin", "cos", "mean", "fmean", "fsum", "floor"]
)
_SAME = frozenset(["sum", "min", "max", "abs", "median", "prod"])


class Factors:
    """The names of a body that may hold texts or lists, from the hints of its parameters and what it assigns."""

    def __init__(self, view: View, hints: Mapping[str, str]) -> None:
        self._view, self._local = view, local_names(view.node)
        names = [parameter.arg for parameter in parameters(view.node)]
        unclear = {name for name in names if name not in hints or _TEXT.search(_KEYS.sub("dict[", hints[name]))}
        self._texts = self._carried(unclear)
        self._known = self._carried(set(names) - unclear)
        self._whole = {name for name in names if _WHOLE.search(hints.get(name, ""))}
        size = -1
        while size < len(self._whole):
            size = len(self._whole)
            self._whole |= {
                target.id
                for child in nodes_of(view.node)
                for target, value, is_part in flows(child)
                if isinstance(target, ast.Name) and not (self._has_numbers(value) if is_part else self.has(value))
            }

    def _carried(self, names: set[str]) -> set[str]:
        return {found for name in names for found in carriers_of(self._view.node, name, by_key=False).names}

    def _has_numbers(self, value: ast.expr) -> bool:
        """Check whether a loop over a value gets numbers."""
        match value:
            case ast.Call(func=ast.Name(id="range")):
                return True
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return all(map(self.has, parts))
            case _:
                return carries(value, self._known) and not carries(value, self._texts)

    def has(self, node: ast.expr) -> bool:
        """Check whether an operand is a number for certain."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int | float | complex)
            case ast.Name(id=name):
                is_own = name in self._local
                return name not in self._texts | self._whole if is_own else self._is_constant(name)
            case ast.Subscript(value=inner, slice=index):
                return not isinstance(index, ast.Slice) and self._has_numbers(inner)
            case ast.Attribute() | ast.Call():
                return self._gives(node)
            case _:
                operands = _operands(node)
                return bool(operands) and all(map(self.has, operands))

    def _gives(self, node: ast.Attribute | ast.Call) -> bool:
        match node:
            case ast.Attribute(value=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
                return name in _LIBRARIES and name not in self._local
            case ast.Call(func=ast.Name(id=name)):
                return name in _SURE or (name in _SAME and not carries(node, self._texts))
            case _:
                return False

    def _is_constant(self, name: str) -> bool:
        """Check whether a name of the module is a number."""
        values = [value for one, value in self._constants() if one == name]
        return len(values) == 1 and isinstance(literal(values[0])[1], int | float)

    def _constants(self) -> Iterator[tuple[str, ast.expr]]:
        for tree in (self._view.tree, parse(self._view.around)):
            for statement in tree.body if isinstance(tree, ast.Module) else ():
                for target, value, _ in flows(statement):
                    if isinstance(target, ast.Name):
                        yield target.id, value


def _operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=one, right=other):
            return [one, other]
        case ast.UnaryOp(operand=operand) if not isinstance(node.op, ast.Not):
            return [operand]
        case _:
            return []

"""The exceptions that a function may raise: those that its docstring, an example or a `raise` names.

Pure. What an exception is a kind of is known for the builtins and a few more; a class by another name is itself.
"""

import ast
import builtins
from collections.abc import Iterator, Sequence

from sandbox import Raised

from agent_core.registry import docstring
from agent_core.registry.examples import Example
from ..tree import FunctionNode

# Exceptions of the standard library that are meant when their base is named.
_KINDS = {
    "JSONDecodeError": "ValueError",
    "StatisticsError": "ValueError",
    "ValidationError": "ValueError",
    "ZoneInfoNotFoundError": "KeyError",
    "InvalidOperation": "ArithmeticError",
    "DivisionByZero": "ZeroDivisionError",
    "DivisionUndefined": "ZeroDivisionError",
}


def named(tree: ast.Module, function: FunctionNode, examples: Sequence[Example]) -> frozenset[str]:
    """Return the exceptions that a function is known to raise."""
    described = docstring.read(ast.get_docstring(function)).raises
    shown = (example.raises.partition(":")[0].strip() for example in examples if example.raises)
    return frozenset(name.rpartition(".")[2] for name in (*described, *shown, *_raised(tree)))


def _raised(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            yield ast.unparse(raised)


def is_right(raised: Raised, names: frozenset[str]) -> bool:
    """Check whether the exception is one of those named, a subclass of one, or marked as intended by its line."""
    frames = raised.failure.frames
    if frames and frames[-1].source.lstrip().startswith("raise "):
        return True
    kind = raised.failure.type.rpartition(".")[2]
    return kind in names or any(issubclass(_class(kind), _class(name)) for name in names if name in _BUILTIN)


_BUILTIN: dict[str, type] = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}


class _Unknown:
    """A class that no known exception is."""


def _class(name: str) -> type:
    return _BUILTIN.get(_KINDS.get(name, name), _Unknown)

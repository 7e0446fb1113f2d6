"""Converts a class's public methods to functions; its source is read by the same code as modules.

For trusted classes, which are already imported: only their text is needed here, for schemas.
"""

import ast
import inspect
import sys
from typing import TYPE_CHECKING

from agent_core.base.errors import UsageError
from agent_core.base.problem import Place, Problem

from .schema import read_module
from .source import ModuleSource, bound_names, callee, parse
from .tree import Definition, survey

if TYPE_CHECKING:
    from .function import Function

_LIMIT = 1 << 20
_OTHER_KINDS = frozenset({"builtins.property", "builtins.staticmethod", "builtins.classmethod"})


def read_methods(of: type, beyond: type = object) -> tuple[tuple["Function", ...], tuple[Problem, ...]]:
    """Return the functions for the public methods of a class, inherited ones first, and the problems found.

    `beyond` and its base classes are left out.
    """
    functions_by_name: dict[str, Function] = {}
    problems: list[Problem] = []
    for cls in reversed([base for base in of.__mro__ if base not in beyond.__mro__]):
        functions, wrong = _own(cls)
        functions_by_name |= {function.name: function for function in functions}
        problems += wrong
    methods = [
        function
        for function in functions_by_name.values()
        if inspect.isfunction(inspect.getattr_static(of, function.name))
    ]
    return tuple(methods), tuple(problems)


def _own(of: type) -> tuple[tuple["Function", ...], tuple[Problem, ...]]:
    try:
        text = inspect.getsource(sys.modules[of.__module__])
    except (OSError, TypeError, KeyError) as error:
        raise UsageError(
            f"The source of the class `{of.__qualname__}` is not at hand, so its methods cannot be described.",
            fix="Put the class into a file that can be imported.",
        ) from error
    module = ".".join(part.strip("_") or "main" for part in of.__module__.split("."))
    source = ModuleSource.of(module, text, inspect.getsourcefile(of) or module)
    tree = parse(source, _LIMIT)
    if isinstance(tree, Problem):
        return (), (tree,)
    names = survey(tree)
    methods = [  # that a model may call: without pydantic validators, properties and class methods
        node
        for node in survey(ast.Module(_definition(tree, of).body, [])).public()
        if not any(
            (origin := names.origin(callee(mark))).startswith("pydantic.") or origin in _OTHER_KINDS
            for mark in node.decorator_list
        )
    ]
    # The module with the methods in place of its functions, so that imports and types keep their meaning.
    around = [node for node in tree.body if not isinstance(node, Definition) and bound_names(node) != {"__all__"}]
    reading = read_module(source, _LIMIT, tree=ast.Module([*around, *methods], []))
    problems = [*reading.problems]
    for function in reading.functions:
        if function.rest or function.extra:  # without a worker, nothing spreads them in a method call
            name = f"*{function.rest}" if function.rest else f"**{function.extra}"
            message = f"the method `{function.name}` takes `{name}`, which a model cannot pass"
            where = Place(function.path, function.line)
            fix = "Name each parameter, or take one list or dictionary."
            problems.append(Problem("star-parameter", message, where, fix))
    return reading.functions, tuple(problems)


def _definition(tree: ast.Module, of: type) -> ast.ClassDef:
    """Return the class in its module's text, even if it is defined in a function."""
    node: ast.AST = tree
    for name in of.__qualname__.split("."):
        if name != "<locals>":
            inner = [part for part in ast.walk(node) if isinstance(part, ast.ClassDef | Definition)]
            node = next((part for part in inner if part is not node and part.name == name), node)
    if not isinstance(node, ast.ClassDef):
        raise UsageError(f"The class `{of.__qualname__}` does not stand in the source of `{of.__module__}`.")
    return node

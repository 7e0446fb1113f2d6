"""Checks a program before any of it runs: syntax, names, imports, and arguments against schemas."""

import ast
import builtins
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_core.base import syntax
from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem
from agent_core.registry.arguments import read as read_arguments
from sandbox.inside.programs import MOST_KEPT

if TYPE_CHECKING:
    from agent_core.registry.function import Function

MOST_CODE: Final = MOST_KEPT  # bytes of a program
GIVEN: Final = frozenset({"each", "CallFailed"})
"""The names that every program has in addition to functions."""
_MOST: Final = 20  # problems that are reported
_NO_MODULE: Final = "The agent's functions are called by name, without an import."


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program: its code, its tree, the names that it binds anywhere, and those that it reads without binding them."""

    code: str
    tree: ast.Module
    bound: frozenset[str]
    free: Mapping[str, int] = field(default_factory=dict)  # name → the first line that reads it

    @classmethod
    def of(cls, code: str) -> "ProgramText | Problem":
        """Parse a program, or return why it is invalid."""
        if len(code.encode("utf-8", "replace")) > MOST_CODE:
            return Problem("too-long", f"a program may have {MOST_CODE:,} bytes", Place(""), "do it in two")
        try:
            tree = syntax.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 0
            return Problem("syntax", str(getattr(error, "msg", error)), Place("", line), "give lines of Python alone")
        bound = frozenset(_bound_names(tree))
        reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        free: dict[str, int] = {}
        for node in sorted(reads, key=lambda node: node.lineno):
            if node.id not in bound:
                free.setdefault(node.id, node.lineno)
        return cls(code, tree, bound, free)

    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of a name."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [node for node in nodes if isinstance(node.func, ast.Name) and node.func.id == name]

    def most_calls(self, name: str, in_loop: int) -> int:
        """Return how often a program may call a name: once per place, or `in_loop` if a place may run again."""
        comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        again = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, *comprehensions)
        once = [node for node in ast.walk(self.tree) if isinstance(node, again)]
        inside = {id(child) for node in once for child in ast.walk(node)}
        places = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name]
        called = {id(call.func) for call in self.calls(name)}
        is_many = any(id(place) in inside or id(place) not in called for place in places)
        return in_loop if is_many else len(places)

    def form(self) -> str:
        """Return its normal form, which is the same for programs that differ only in literals and layout."""
        return ast.dump(_WithoutLiterals().visit(syntax.parse(self.code)))

    def literals(self) -> list[str]:
        """Return the literals that its form leaves out, in order."""
        without = _WithoutLiterals()
        without.visit(syntax.parse(self.code))
        return without.literals


class _WithoutLiterals(ast.NodeTransformer):
    """A transformer that replaces each literal by the name of its type."""

    def __init__(self) -> None:
        self.literals: list[str] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Return a literal's placeholder, or the node with its parts replaced."""
        if isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.Set | ast.Dict):
            try:
                kind = type(ast.literal_eval(node)).__name__
            except (ValueError, TypeError):  # it contains more than literals
                return super().generic_visit(node)
            self.literals.append(ast.unparse(node))
            return ast.Constant(kind)
        return super().generic_visit(node)


def _bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case _:
                pass


def problems(
    program: ProgramText,
    functions: Mapping[str, "Function"],
    known: Collection[str],
    kept: Collection[str],
    packages: Collection[str],
    withheld: Collection[str],
) -> list[Problem]:
    """Return the problems of a program.

    `functions` are those that it names, `known` are the names of all, and `withheld` are names that programs may not
    call.
    """
    found: list[Problem] = []
    for name, line in program.free.items():
        if name in functions or name in kept or name in GIVEN or hasattr(builtins, name) or name.startswith("__"):
            continue
        if name in withheld:
            fix = "call it directly, in a step of its own"
            found.append(Problem("not-inside", f"`{name}` cannot be called in a program", Place("", line), fix))
            continue
        near = nearest(name, [*known, *kept], 3)
        fix = f"the nearest are {', '.join(f'`{other}`' for other in near)}" if near else "define it, or call another"
        found.append(Problem("unknown-name", f"there is no `{name}`", Place("", line), fix))
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in packages:
                fix = _NO_MODULE if top in ("", "functions") else "do it with Python's own modules, or with a function"
                found.append(Problem("no-module", f"a program cannot import `{name}`", Place("", node.lineno), fix))
    for name, function in functions.items():
        if name in program.free:
            found += [problem for call in program.calls(name) for problem in _arguments(call, function)]
    return sorted(found, key=lambda problem: problem.where.line)[:_MOST]


def _arguments(call: ast.Call, function: "Function") -> Iterator[Problem]:
    """Yield the problems with a call's arguments that can be seen in the text."""
    schema, where = function.parameters, Place("", call.lineno)
    properties: Mapping[str, Any] = schema.get("properties", {})
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    if len(call.args) > len(properties):
        message = f"`{function.name}` takes {len(properties)} arguments, and is given {len(call.args)}"
        yield Problem("arguments", message, where, f"it has: {', '.join(properties) or 'none'}")
        return
    given: dict[str, ast.expr] = dict(zip(properties, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    is_open = any(keyword.arg is None for keyword in call.keywords)
    required = [] if is_open else [name for name in schema.get("required", ()) if name not in given]
    if missing := [name for name in required if name in properties]:
        yield Problem("arguments", f"`{function.name}` lacks {', '.join(missing)}", where, "give all that it needs")
    literal: dict[str, Any] = {}
    for name, node in given.items():
        try:
            value = ast.literal_eval(node)
            json.dumps(value, allow_nan=False)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            if name in properties:
                continue
            value = None
        literal[name] = value
    own = {**schema, "properties": {name: properties.get(name, {}) for name in literal if name in properties}}
    checked = read_arguments(json.dumps(literal), {**own, "required": []})
    if not isinstance(checked, dict):
        for problem in checked:
            yield Problem("arguments", f"`{function.name}`: {problem.message}", where, problem.fix)

"""The text of a program: checked before any of it runs, and kept as a function after it ran.

A check covers syntax, names, imports, and arguments against schemas. A function is made from one of a program's `def`s
or from the whole program, with observed calls as examples.
"""

import ast
import builtins
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field
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


_MOST_EXAMPLES: Final = 4
_LONGEST: Final = 400  # characters of an example's result
_TYPES: Final = {"str", "int", "float", "bool", "list", "dict"}


@dataclass(frozen=True, slots=True)
class SeenProgram:
    """A program that finished: its text, the calls of its own functions with their results, and its value."""

    program: ProgramText
    seen: Mapping[str, Sequence[Sequence[str]]]
    value: object


def source_of_program(name: str, words: str, runs: Sequence[SeenProgram], functions: Mapping[str, "Function"]) -> str:
    """Return the source of a function: the `def` with this name in the last of these runs, or the whole program.

    For the whole program, its initial literal values become parameters. `functions` are those that it may call and that
    need no grant.

    Raises:
        UsageError: it uses what only programs can use.
    """
    last = runs[-1]
    definitions = [node for node in last.program.tree.body if isinstance(node, ast.FunctionDef)]
    chosen = next((node for node in definitions if node.name == name), None)
    examples: list[tuple[str, str]] = []
    if chosen is None:
        chosen = _whole(name, last)
        for run in runs:
            arguments = ", ".join(f"{target}={value!r}" for target, value in _literal_names(run.program).items())
            examples.append((f"{name}({arguments})", repr(run.value)))
    else:
        examples = [(call, value) for run in runs for call, value in run.seen.get(name, ())]
    names = {node.id for node in ast.walk(chosen) if isinstance(node, ast.Name)}
    others = [node for node in definitions if node.name in names and node.name != name]
    names |= {inner.id for node in others for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    imports: list[str] = []
    for node in last.program.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            imports += [ast.unparse(node)] if bound & names else []
    for free in (free for free in last.program.free if free in names):
        if free in functions:
            imports.append(f"from functions.{functions[free].module} import {free}")
        elif free in GIVEN:
            fix = "Write a loop instead, run that, and keep it."
            raise UsageError(f"`{free}` is there in programs only, and a function has none.", fix=fix)
        elif not hasattr(builtins, free):
            fix = "Give the source yourself: there `self.call(name, …)` calls what has grants of its own."
            raise UsageError(f"The program uses `{free}`, which a function cannot call by its name.", fix=fix)
    chosen.decorator_list = []
    is_documented = ast.get_docstring(chosen) is not None
    docstring = ast.Expr(ast.Constant(_docstring(chosen, words, examples)))
    chosen.body = [docstring, *chosen.body[is_documented:]]
    parts = ["\n".join(imports), *map(ast.unparse, others), ast.unparse(ast.fix_missing_locations(chosen))]
    return "\n\n\n".join(filter(None, parts)) + "\n"


def _whole(name: str, program: SeenProgram) -> ast.FunctionDef:
    """Return a program as one function: its initial literal values become parameters, and its value is returned."""
    apart = ast.Import | ast.ImportFrom | ast.FunctionDef
    body = [node for node in program.program.tree.body if not isinstance(node, apart)]
    given = _literal_names(program.program)
    rest: list[ast.stmt] = [node for node in body if _target(node) not in given]
    if rest and isinstance(rest[-1], ast.Expr):
        rest[-1] = ast.Return(rest[-1].value)
    else:
        targets = [target for node in rest if (target := _target(node))]
        if not targets:
            fix = "End the program with an expression, or give the source yourself."
            raise UsageError("The program has no last expression that a function could return.", fix=fix)
        rest.append(ast.Return(ast.Name(targets[-1], ast.Load())))
    parameters = [ast.arg(target, ast.Name(_type(value), ast.Load())) for target, value in given.items()]
    arguments = ast.arguments([], parameters, None, [], [], None, [])
    made = ast.FunctionDef(name, arguments, rest, [], ast.Name(_type(program.value), ast.Load()), lineno=1)
    # Python 3.12 requires this field; 3.11 does not have it.
    vars(made)["type_params"] = []
    return made


def _literal_names(program: ProgramText) -> dict[str, object]:
    """Return the names that a program sets to literal values and binds only once."""
    given: dict[str, object] = {}
    stores = [
        node.id for node in ast.walk(program.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    for node in program.tree.body[:-1]:
        target = _target(node)
        try:
            value = ast.literal_eval(node.value) if target and isinstance(node, ast.Assign) else None
        except (ValueError, TypeError):
            continue
        if value is not None and stores.count(target) == 1:
            given[target] = value
    return given


def _target(node: ast.stmt) -> str:
    """Return the single name that a statement assigns, or an empty text."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name
        case _:
            return ""


def _type(value: object) -> str:
    kind = type(value).__name__
    return kind if kind in _TYPES else "object"


def _docstring(chosen: ast.FunctionDef, words: str, examples: Sequence[Sequence[str]]) -> str:
    own = ast.get_docstring(chosen) or ""
    said = (words.strip() if words.strip() else own) or own
    has_args = "Args:" in said or not chosen.args.args
    arguments = [] if has_args else ["Args:", *(f"    {argument.arg}: …" for argument in chosen.args.args)]
    fitting = [(call, value) for call, value in dict.fromkeys(map(tuple, examples)) if len(value) <= _LONGEST]
    shown = [line for call, value in fitting[:_MOST_EXAMPLES] for line in (f">>> {call}", value)]
    parts = [said, "\n".join(arguments), "" if ">>>" in said else "\n".join(shown)]
    return "\n\n".join(filter(None, parts)).replace("\n", "\n    ") + "\n    "

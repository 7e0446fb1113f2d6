"""A function made from a program that ran: one of its `def`s or the whole program, with observed calls as examples."""

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import UsageError

from .program_check import GIVEN, ProgramText

if TYPE_CHECKING:
    from agent_core.registry.function import Function

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

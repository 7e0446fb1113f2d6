"""The text of a program: checked before any of it runs, and kept as a function after it ran.

A check covers syntax, names, imports, and arguments against schemas. A function is made from one of a program's `def`s
or from the whole program, with observed calls as examples.
"""

import ast
import builtins
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.registry.arguments import read as read_arguments
from sandbox.inside.programs import MOST_SMALL
from sandbox.wire.large import Large
from sandbox.wire.lines import lines_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function


MOST_CODE: Final = MOST_SMALL  # bytes of a program
MAX_PROBLEMS: Final = 20
"""The problems of a program that are told."""
GIVEN: Final = frozenset({"each", "CallFailed"})
"""The names that every program has in addition to functions."""
_SHOWS: Final = frozenset({"print", "range"})
_CALLS_ALONE: Final = (
    *(
        ast.Module,
        ast.Expr,
        ast.Assign,
        ast.For,
        ast.Call,
        ast.keyword,
        ast.Name,
        ast.Constant,
        ast.expr_context,
    ),
    *(
        ast.Tuple,
        ast.List,
        ast.Dict,
        ast.Set,
        ast.ListComp,
        ast.DictComp,
        ast.SetComp,
        ast.GeneratorExp,
    ),
    *(ast.comprehension, ast.JoinedStr, ast.FormattedValue, ast.UnaryOp, ast.USub),
)
"""The parts of a program that only calls functions and shows what they return."""
_NO_MODULE: Final = "The agent's functions are called by name, without an import."


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program: its code, its tree, the names that it binds anywhere, and those that it reads without binding them."""

    code: str
    free: Mapping[str, int]  # name → the first line that reads it
    imports: Sequence[tuple[str, int]]  # module, "" for a relative one, and line
    calls: Mapping[str, Sequence[ast.Call]]  # by the name that is called
    repeated: frozenset[str]  # names in a place that may run again, or that are no call
    stores: Counter[str]
    loops: Counter[str]  # names in the targets of loops

    @property
    def loop_names(self) -> frozenset[str]:
        """The names that nothing but loops bind."""
        return frozenset(name for name, count in self.loops.items() if count == self.stores[name])

    @property
    def tree(self) -> ast.Module:
        """A tree that may be changed."""
        return syntax.parse(self.code)

    @classmethod
    def of(cls, code: str) -> "ProgramText | Problem":
        """Parse a program, or return why it is invalid."""
        tree = syntax.read(code, MOST_CODE)
        if isinstance(tree, syntax.Flaw):
            fix = "give lines of Python alone" if tree.code == "syntax" else tree.fix
            return Problem(tree.code, tree.description, Place("", tree.line), fix)
        bound = set[str]()
        reads: list[ast.Name] = []
        imports: list[tuple[str, int]] = []
        calls: dict[str, list[ast.Call]] = {}
        repeated = set[str]()
        stores = Counter[str]()
        loops = Counter[str]()
        called = set[int]()
        waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
        while waiting:  # from the top down, in text order, so that a call comes before its name
            node, is_again = waiting.pop()
            bound.update(_bound_names(node))
            loops.update(_names_of_loop(node))
            match node:
                case ast.Call(func=ast.Name(id=name) as callee):
                    calls.setdefault(name, []).append(node)
                    called.add(id(callee))
                case ast.Name(id=name):
                    if isinstance(node.ctx, ast.Load):
                        reads.append(node)
                    elif isinstance(node.ctx, ast.Store):
                        stores[name] += 1
                    if is_again or id(node) not in called:
                        repeated.add(name)
                case ast.Import(names=names):
                    imports += ((alias.name, node.lineno) for alias in names)
                case ast.ImportFrom(module=module):
                    imports.append((module or ".", node.lineno))
            is_again = is_again or isinstance(node, _AGAIN)
            waiting += ((child, is_again) for child in reversed([*ast.iter_child_nodes(node)]))
        free: dict[str, int] = {}
        for read in sorted(reads, key=lambda read: read.lineno):
            if read.id not in bound:
                free.setdefault(read.id, read.lineno)
        return cls(code, free, imports, calls, frozenset(repeated), stores, loops)

    def most_calls(self, name: str, in_loop: int) -> int:
        """Return how often a program may call a name: once per place, or `in_loop` if a place may run again."""
        return in_loop if name in self.repeated else len(self.calls.get(name, ()))

    def form(self) -> str:
        """Return its normal form, which is the same for programs that differ only in literals and layout."""
        return ast.dump(_WithoutLiterals().visit(self.tree))

    def has_logic(self, functions: Collection[str]) -> bool:
        """Check whether it does more than call these functions with values that are written in it, and show them.

        It does if a function gets what another returned, or if it computes, decides or selects anything itself.
        """
        nodes, named = [*ast.walk(self.tree)], set[str]()
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        if not all(isinstance(node, _CALLS_ALONE) for node in nodes):
            return True
        if not all(
            isinstance(call.func, ast.Name) and call.func.id in {*functions, *_SHOWS}
            for call in calls
        ):
            return True
        for node in nodes:  # the names that have what a function returned
            if isinstance(node, ast.Assign) and _holds(node.value, functions, frozenset()):
                named |= {
                    part.id
                    for target in node.targets
                    for part in ast.walk(target)
                    if isinstance(part, ast.Name)
                }
        given = [
            part
            for call in calls
            if _calls_one(call, functions)
            for part in (*call.args, *call.keywords)
        ]
        given += [node.iter for node in nodes if isinstance(node, ast.For | ast.comprehension)]
        is_selecting = any(node.ifs for node in nodes if isinstance(node, ast.comprehension))
        return is_selecting or any(_holds(part, functions, named) for part in given)

    def literals(self) -> list[str]:
        """Return the literals that its form leaves out, in order."""
        without = _WithoutLiterals()
        without.visit(self.tree)
        return without.literals


def _calls_one(node: ast.AST, functions: Collection[str]) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
    )


def _holds(node: ast.AST, functions: Collection[str], named: Collection[str]) -> bool:
    """Check whether a node has what one of these functions returned, directly or by one of these names."""
    return any(
        _calls_one(part, functions) or (isinstance(part, ast.Name) and part.id in named)
        for part in ast.walk(node)
    )


def with_names(
    program: ProgramText, meant: Callable[[str], str | None], own: Collection[str]
) -> ProgramText:
    """Return the program with the names of the functions that it means, where it spells them in a model's way.

    `meant` returns the function for a name, as for any call, and `own` are the names that programs have kept. Only a
    name that stands for nothing else is replaced: `functions.add_up(1, 2)` becomes `add_up(1, 2)`.
    """
    unbound = program.free.keys() - sys.stdlib_module_names - GIVEN - {*own}
    names = {name: meant(name) for name in unbound if not hasattr(builtins, name)}
    strange = {name for name, function in names.items() if name != function}
    edits: list[tuple[int, int, str]] = []
    code = program.code.encode()
    starts = (
        [0, *accumulate(len(line.encode()) for line in lines_of(program.code))] if strange else []
    )
    for node in ast.walk(program.tree) if strange else ():
        root, *inner = _dotted_name(node)
        if root not in strange or not isinstance(node, ast.expr):
            continue
        # Below a namespace, its first part that is a function: its methods stay.
        is_method = bool(names[root]) or any(map(meant, inner[:-1]))
        name = names[root] if not inner else None if is_method else meant(inner[-1])
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        if (
            name and code[begin:end] == ".".join((root, *inner)).encode()
        ):  # within an f-string, a place may be wrong
            edits.append((begin, end, name))
    for begin, end, name in sorted(edits, reverse=True):
        code = code[:begin] + name.encode() + code[end:]
    changed = ProgramText.of(code.decode()) if edits else program
    return changed if isinstance(changed, ProgramText) else program


def _dotted_name(node: ast.AST) -> tuple[str, ...]:
    """Return the parts of a name such as `a.b.c`; one empty part for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ("",)


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


_AGAIN: Final = (
    *(ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Nodes whose parts may run more than once."""


def _names_of_loop(node: ast.AST) -> Iterator[str]:
    """Yield the names that a loop binds to its items."""
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        for part in ast.walk(node.target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, without its parts."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
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
    """Return the first problems of a program, one more than `MAX_PROBLEMS` at most.

    `functions` are those that it names, `known` are the names of all, and `withheld` are names that programs may not
    call.
    """
    names = (*known, *kept)
    unknown = [
        name
        for name in program.free
        if not (
            name in functions
            or name in kept
            or name in GIVEN
            or hasattr(builtins, name)
            or name.startswith("__")
        )
    ]
    modules = [(name, line) for name, line in program.imports if not _is_importable(name, packages)]
    calls = [
        (call, function)
        for name, function in functions.items()
        if name in program.free
        for call in program.calls.get(name, ())
    ]
    checks: list[tuple[int, Callable[[], Iterable[Problem]]]] = [
        *(
            (program.free[name], partial(_unknown_name, name, program.free[name], names, withheld))
            for name in unknown
        ),
        *((line, partial(_unknown_module, name, line)) for name, line in modules),
        *((call.lineno, partial(_arguments, call, function)) for call, function in calls),
    ]
    found: list[Problem] = []
    for _line, check in sorted(checks, key=lambda check: check[0]):
        found += check()
        if len(found) > MAX_PROBLEMS:
            break
    return found


def _unknown_name(
    name: str, line: int, names: Iterable[str], withheld: Collection[str]
) -> Iterator[Problem]:
    if name in withheld:
        fix = "call it directly, in a step of its own"
        yield Problem("not-inside", f"`{name}` cannot be called in a program", Place("", line), fix)
        return
    near = nearest(name, names, 3)
    fix = (
        f"the nearest are {', '.join(f'`{other}`' for other in near)}"
        if near
        else "define it, or call another"
    )
    yield Problem("unknown-name", f"there is no `{name}`", Place("", line), fix)


def _unknown_module(name: str, line: int) -> Iterator[Problem]:
    is_own = name.partition(".")[0] in ("", "functions")
    fix = _NO_MODULE if is_own else "do it with Python's own modules, or with a function"
    yield Problem("no-module", f"a program cannot import `{name}`", Place("", line), fix)


def _is_importable(name: str, packages: Collection[str]) -> bool:
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in packages


def _arguments(call: ast.Call, function: "Function") -> Iterator[Problem]:
    """Yield the problems with a call's arguments that can be seen in the text."""
    schema, where = function.parameters, Place("", call.lineno)
    properties: Mapping[str, Any] = schema.get("properties", {})
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    if len(call.args) > len(properties):
        message = (
            f"`{function.name}` takes {len(properties)} arguments, and is given {len(call.args)}"
        )
        yield Problem("arguments", message, where, f"it has: {', '.join(properties) or 'none'}")
        return
    given: dict[str, ast.expr] = dict(zip(properties, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    is_open = any(keyword.arg is None for keyword in call.keywords)
    required = [] if is_open else [name for name in schema.get("required", ()) if name not in given]
    if missing := [name for name in required if name in properties]:
        yield Problem(
            "arguments",
            f"`{function.name}` lacks {', '.join(missing)}",
            where,
            "give all that it needs",
        )
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
    own = {
        **schema,
        "properties": {name: properties.get(name, {}) for name in literal if name in properties},
    }
    checked = read_arguments(json.dumps(literal), {**own, "required": []})
    if not isinstance(checked, dict):
        for problem in checked:
            yield Problem("arguments", f"`{function.name}`: {problem.message}", where, problem.fix)


_INSTEAD: Final = {
    "each": "Write a loop instead, run that, and keep it.",
    "CallFailed": "Catch the error of the function itself, such as `ValueError`, run that, and keep it.",
}
_MOST_EXAMPLES: Final = 4
_MOST_SHOWN: Final = 3  # values
_LONGEST: Final = 400  # characters of an example's result
_TYPES: Final = {"str", "int", "float", "bool", "list", "dict"}


@dataclass(frozen=True, slots=True)
class SeenProgram:
    """A program that finished: its text, the calls of its own functions with their results, and its value.

    The tree is not kept, because many programs are looked through at once.
    """

    code: str
    seen: Mapping[str, Sequence[Sequence[str]]]
    value: object

    def parse(self) -> ProgramText:
        """Return the text, parsed again.

        Raises:
            UsageError: an older release ran it, and it is beyond a limit now.
        """
        program = ProgramText.of(self.code)
        if isinstance(program, Problem):
            fix = "Give the source yourself, in smaller functions."
            raise UsageError(f"The program cannot be kept: {program.message}.", fix=fix)
        return program


@dataclass(frozen=True, slots=True)
class ProgramCallees:
    """The functions that a program names: how a function that is made of it can call them.

    Those with a state of their own, and those of other programs, are called by `self.call`; those of the host cannot be
    called. If it `reaches` something outside, what it returned is no example: that cannot be repeated. If it only
    `computes`, the same values always give the same result.
    """

    by_name: Mapping[str, "Function"]
    by_call: Mapping[str, "Function"]
    of_the_host: Collection[str]
    reaches: bool = False
    computes: bool = False


class _CallsByName(ast.NodeTransformer):
    """A transformer that writes calls of these functions as `self.call("name", parameter=value)`."""

    def __init__(self, functions: Mapping[str, "Function"]) -> None:
        self._functions = functions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call, written by name if it is of such a function."""
        function = self._functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None:
            return self.generic_visit(node)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            fix = f"Write the arguments of `{function.name}` one by one, run that, and keep it."
            raise UsageError(f"The program unpacks the arguments of `{function.name}`.", fix=fix)
        properties = function.parameters.get("properties", {})
        given = [
            ast.keyword(name, value) for name, value in zip(properties, node.args, strict=False)
        ]
        target = ast.Attribute(ast.Name("self", ast.Load()), "call", ast.Load())
        return ast.Call(target, [ast.Constant(function.name)], [*given, *node.keywords])

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return the name, unless such a function is passed on as a value."""
        if node.id in self._functions:
            fix = f"Write `lambda value: {node.id}(value)` in its place, run that, and keep it."
            raise UsageError(
                f"The program passes `{node.id}` on, which a function can only call.", fix=fix
            )
        return node


def source_of_program(
    name: str, words: str, runs: Sequence[SeenProgram], callees: ProgramCallees
) -> str:
    """Return the source of a function: the `def` with this name in the last of these runs, or the whole program.

    For the whole program, its initial literal values become parameters. Functions are called by their names, as in the
    program; the gate adds the imports.

    Raises:
        UsageError: it uses what only programs can use.
    """
    last, program = runs[-1], runs[-1].parse()
    statements = program.tree.body
    definitions = [node for node in statements if isinstance(node, ast.FunctionDef)]
    chosen = next((node for node in definitions if node.name == name), None)
    examples: list[tuple[str, str]] = []
    if chosen is None:
        chosen = _whole(name, program, last.value)
        for run in runs:
            arguments = ", ".join(
                f"{target}={value!r}" for target, value in _literal_names(run.parse()).items()
            )
            if not isinstance(run.value, Large):
                examples.append((f"{name}({arguments})", repr(run.value)))
    else:
        examples = [(call, value) for run in runs for call, value in run.seen.get(name, ())]
    names = {node.id for node in ast.walk(chosen) if isinstance(node, ast.Name)}
    others = [node for node in definitions if node.name in names and node.name != name]
    names |= {
        inner.id for node in others for inner in ast.walk(node) if isinstance(inner, ast.Name)
    }
    imports: list[str] = []
    for node in statements:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            imports += [ast.unparse(node)] if bound & names else []
    for free in (free for free in program.free if free in names):
        if free in GIVEN:
            raise UsageError(
                f"`{free}` is there in programs only, and a function has none.", fix=_INSTEAD[free]
            )
        if free in callees.of_the_host:
            raise UsageError(
                f"Only an assistant can call `{free}`.", fix="Leave it out, run that, and keep it."
            )
        if not (free in callees.by_name or free in callees.by_call or hasattr(builtins, free)):
            fix = f"Run it once more with `{free} = …` at its beginning, which makes it a parameter, and keep that."
            raise UsageError(
                f"The program uses `{free}`, which an earlier program has kept.", fix=fix
            )
    if (
        chosen not in definitions
        and callees.computes
        and not chosen.args.args
        and (written := _values_within(chosen))
    ):
        fix = "Run it once more with `NAME = …` at its beginning for each value that is an argument, and keep that."
        raise UsageError(
            f"`{name}()` would always return the same: its values ({written}) are fixed.", fix=fix
        )
    by_call = _CallsByName(callees.by_call)
    chosen, others = by_call.visit(chosen), [by_call.visit(node) for node in others]
    with_self = {name for name, function in callees.by_name.items() if function.takes_self} | {
        "self"
    }
    nested = [
        node
        for node in others
        if with_self & {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    ]
    others = [node for node in others if node not in nested]
    chosen.decorator_list = []
    is_documented = ast.get_docstring(chosen) is not None
    docstring = ast.Expr(
        ast.Constant(_docstring(chosen, words, [] if callees.reaches else examples))
    )
    chosen.body = [docstring, *nested, *chosen.body[is_documented:]]
    parts = [
        "\n".join(imports),
        *map(ast.unparse, others),
        ast.unparse(ast.fix_missing_locations(chosen)),
    ]
    return "\n\n\n".join(filter(None, parts)) + "\n"


def _whole(name: str, program: ProgramText, value: object) -> ast.FunctionDef:
    """Return a program as one function: its initial literal values become parameters, and its value is returned."""
    apart = ast.Import | ast.ImportFrom | ast.FunctionDef
    body = [node for node in program.tree.body if not isinstance(node, apart)]
    given = _literal_names(program)
    rest: list[ast.stmt] = [node for node in body if _target(node) not in given]
    if rest and isinstance(rest[-1], ast.Expr):
        rest[-1] = ast.Return(rest[-1].value)
    else:
        targets = [target for node in rest if (target := _target(node))]
        if not targets:
            fix = "End the program with an expression, or give the source yourself."
            raise UsageError(
                "The program has no last expression that a function could return.", fix=fix
            )
        rest.append(ast.Return(ast.Name(targets[-1], ast.Load())))
    parameters = [
        ast.arg(target, ast.Name(_type(value), ast.Load())) for target, value in given.items()
    ]
    arguments = ast.arguments([], parameters, None, [], [], None, [])
    made = ast.FunctionDef(name, arguments, rest, [], ast.Name(_type(value), ast.Load()), lineno=1)
    # Python 3.12 requires this field; 3.11 does not have it.
    vars(made)["type_params"] = []
    return made


def _literal_names(program: ProgramText) -> dict[str, object]:
    """Return the names that a program sets to literal values and binds only once."""
    given: dict[str, object] = {}
    for node in program.tree.body[:-1]:
        target = _target(node)
        try:
            value = (
                ast.literal_eval(node.value) if target and isinstance(node, ast.Assign) else None
            )
        except (ValueError, TypeError):
            continue
        if value is not None and program.stores[target] == 1:
            given[target] = value
    return given


def _values_within(chosen: ast.FunctionDef) -> str:
    """Return the first literal values in a program that could be arguments, other than 0 and 1; empty if none is."""
    nodes = [node for node in ast.walk(chosen) if isinstance(node, ast.Constant)]
    values = [node.value for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]
    values = [
        value
        for value in values
        if isinstance(value, str | bytes | int | float) and value not in ("", b"", 0, 1)
    ]
    return ", ".join(
        [*dict.fromkeys(f"`{one_line(repr(value), 40)}`" for value in values)][:_MOST_SHOWN]
    )


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
    kind = value.kind if isinstance(value, Large) else type(value).__name__
    return kind if kind in _TYPES else "object"


def _docstring(chosen: ast.FunctionDef, words: str, examples: Sequence[Sequence[str]]) -> str:
    own = ast.get_docstring(chosen) or ""
    said = (words.strip() if words.strip() else own) or own
    has_args = "Args:" in said or not chosen.args.args
    arguments = (
        [] if has_args else ["Args:", *(f"    {argument.arg}: …" for argument in chosen.args.args)]
    )
    fitting = [
        (call, value)
        for call, value in dict.fromkeys(map(tuple, examples))
        if len(value) <= _LONGEST
    ]
    shown = [line for call, value in fitting[:_MOST_EXAMPLES] for line in (f">>> {call}", value)]
    parts = [said, "\n".join(arguments), "" if ">>>" in said else "\n".join(shown)]
    return "\n\n".join(filter(None, parts)).replace("\n", "\n    ") + "\n    "

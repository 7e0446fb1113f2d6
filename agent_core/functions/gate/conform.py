"""The stage "conform": checks that the function can be shown to the model, and that the model can know how to call it.

Pure. The registry's findings about the schema are weighed by the policy. The stage also checks for a docstring, a
return type, defaults that are not shared, and names that keep their meaning.
"""

import ast
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from agent_core.registry import docstring
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource

from .capability import shares_state
from .draft import Draft, Finding
from .tree import BUILTINS, FunctionNode, defaults, missing_names, nodes_of, parameters, takes_self
from .verdict import UNDEFINED, severity

if TYPE_CHECKING:
    from agent_core.base.problem import Problem

STAGE = "conform"
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MUTABLE_CALLS = frozenset({"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter"})
_PAIRS = ((list, tuple), (dict, MappingProxyType), (set, frozenset), (bytearray, bytes))
_CHANGING = frozenset(name for one, other in _PAIRS for name in {*dir(one)} - {*dir(other)}) - {
    "copy",
    "fromkeys",
}
"""The methods by which a value changes itself: those that its unchangeable sibling has not."""
# Builtins that are rarely needed in a body, so they may name a parameter.
_RARE = frozenset(
    [
        "id",
        "dir",
        "format",
        "hash",
        "license",
        "credits",
        "copyright",
        "help",
        "next",
        "all",
        "any",
        "_",
    ]
)


def conform(draft: Draft) -> Draft:
    """Return the draft with everything that would keep the model from calling the function correctly."""
    if draft.function is None or draft.tree is None:
        return draft.skip("there is no function to look at")
    source = ModuleSource.of(draft.candidate.module, draft.text, draft.candidate.path)
    reading = read_module(source, tree=draft.tree)
    problems = [
        weigh(problem, draft) for problem in reading.problems if problem.code != "redefined"
    ]
    findings = [*check(draft.function), *undefined_names(draft, draft.tree, draft.module_names)]
    return replace(draft, own=reading).with_problems(problems).with_findings(STAGE, findings)


def weigh(problem: "Problem", draft: Draft) -> "Problem":
    """Return the registry's finding under the policy; what cannot be offered is always rejected."""
    where = problem.where
    line = draft.authors_line(where.line)
    if line != where.line:
        where = replace(where, line=line)
    if problem.severity == "refuses":
        return replace(problem, where=where)
    return replace(problem, where=where, severity=severity(draft.policy, STAGE, problem.code))


def _is_unpacked(annotation: ast.expr) -> bool:
    """Check whether an annotation is `Unpack[…]`, which names the keys of `**kwargs`."""
    return (
        isinstance(annotation, ast.Subscript)
        and ast.unparse(annotation.value).split(".")[-1] == "Unpack"
    )


def check(node: FunctionNode) -> Iterator[Finding]:
    """Yield problems that the registry does not check: docstring, return type, defaults, names, `self`."""
    for star, argument in (("*", node.args.vararg), ("**", node.args.kwarg)):
        if argument is not None:
            is_typed = argument.annotation is not None and (
                star == "*" or _is_unpacked(argument.annotation)
            )
            keys = "the keys of its type" if is_typed else "any keys"
            kind = "a list" if star == "*" else f"an object with {keys}"
            message = (
                f"`{node.name}` takes `{star}{argument.arg}`, which a model can only pass as {kind}"
            )
            fix = "name each parameter, or take one list or dictionary"
            code = "rest-parameter" if is_typed else "star-parameter"
            yield Finding(code, message, fix, argument.lineno, argument.col_offset + 1)
    for argument in node.args.posonlyargs:
        if argument.arg != "self":
            message = (
                f"parameter `{argument.arg}` of `{node.name}` is positional-only, and models "
                f"pass arguments by name"
            )
            yield Finding(
                "positional-only",
                message,
                "remove the `/`",
                argument.lineno,
                argument.col_offset + 1,
            )
    words = (ast.get_docstring(node, clean=False) or "").lstrip()
    is_sentence = words[:1].isalpha() and not words.startswith(("Example", "Doctest"))
    if not words or not (is_sentence or docstring.read(words).text):
        entries = "".join(f"\n    {parameter.arg}: …" for parameter in parameters(node))
        arguments = f"\n\nArgs:{entries}" if entries else ""
        example = f"\n\nExamples:\n    >>> {node.name}(…)\n    …"
        fix = f'begin the body with """What it returns, in one sentence.{arguments}\n\nReturns:\n    …{example}\n"""'
        message = f"`{node.name}` has no docstring, so the model cannot know what it is for"
        yield Finding("no-docstring", message, fix, node.lineno)
    if node.returns is None:
        message = f"`{node.name}` does not say what type it returns"
        fix = f"write the type that it returns: `def {node.name}(…) -> …:`"
        yield Finding("no-return-type", message, fix, node.lineno)
    for name, default in defaults(node.args).items():
        called = default.func if isinstance(default, ast.Call) else None
        is_mutable = isinstance(default, _MUTABLE) or (
            isinstance(called, ast.Name) and called.id in _MUTABLE_CALLS
        )
        if is_mutable and _may_change(name, node):
            shown = ast.unparse(default)
            message = f"the default `{shown}` of `{name}` is shared by all calls"
            fix = f"write `{name}: … | None = None`, and `{name} = {shown} if {name} is None else {name}` in the body"
            yield Finding("mutable-default", message, fix, default.lineno, default.col_offset + 1)
    for parameter in parameters(node):
        if parameter.arg in BUILTINS - _RARE:
            message = f"the parameter `{parameter.arg}` hides the builtin of that name"
            fix = f"rename `{parameter.arg}` to `{parameter.arg}_value`, in the body and under `Args:` too"
            yield Finding("hides-builtin", message, fix, parameter.lineno, parameter.col_offset + 1)
        if parameter.arg == "self" and not takes_self(node):
            message = "`self`, the call's context, is not the first parameter"
            yield Finding(
                "self-not-first", message, f"write `def {node.name}(self, …)`", node.lineno
            )


def _may_change(name: str, function: FunctionNode) -> bool:
    """Check whether a function may change the value of a name, or lets it out where something else may."""
    for node in (inner for statement in function.body for inner in ast.walk(statement)):
        held: list[ast.AST | None] = []
        match node:
            case ast.Attribute(value=value, attr=attr) if attr in _CHANGING:
                held = [value]
            case (
                ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
                | ast.AugAssign(target=value)
            ):
                held = [value]
            case (
                ast.Return(value=value)
                | ast.Yield(value=value)
                | ast.Assign(value=value)
                | ast.NamedExpr(value=value)
            ):
                held = [value]
            case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Dict(values=values):
                held = [*values]
            case ast.Call(func=called, args=arguments, keywords=keywords):
                reads = isinstance(called, ast.Name) and called.id in BUILTINS
                held = [] if reads else [*arguments, *(keyword.value for keyword in keywords)]
        if any(isinstance(each, ast.Name) and each.id == name for each in held):
            return True
    return False


def undefined_names(
    draft: Draft, tree: ast.Module, known_names: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Yield names that are not defined; they fail when their line is reached."""
    missing = missing_names(draft.text, tree, known_names)
    lines: dict[str, int] = {}
    for node in nodes_of(tree) if missing else ():
        if isinstance(node, ast.Name) and node.id in missing:
            lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    for name in sorted(missing):
        line = lines.get(name, 0)
        fix, existing = (
            f"define `{name}`, import it, or fix the spelling",
            draft.snapshot.functions.get(name),
        )
        if existing is not None and existing.takes_self:
            arguments = ", ".join(
                f"{parameter}=…" for parameter in existing.parameters["properties"]
            )
            fix = f'take `self` and call `self.call("{name}", {arguments})`'
            if not shares_state(existing, draft.snapshot):
                fix = f"take `self` and call `{name}(self, …)`"
        yield Finding(UNDEFINED, f"`{name}` is used but defined nowhere", fix, line)

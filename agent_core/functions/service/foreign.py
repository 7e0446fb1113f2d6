"""Functions written for another agent framework: `def f(self, …)` with a MemGPT agent as `self`.

What has an equivalent here is written so; what has none is named with its line and what to write instead. Text →
text; the lines stay where they are. `counterparts.toml` has the constants and modules that are brought along.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem
from agent_core.registry.source import too_much
from agent_core.registry.spans import column_of
from agent_core.registry.tree import Definition
from sandbox.wire.foreign import read_toml
from sandbox.wire.lines import lines_of

_Edit: TypeAlias = tuple[int, int, int, int, str]  # from and to, as lines and columns; what stands there instead
_ROOTS = frozenset({"memgpt", "letta"})
_OWN = frozenset({"progress", "scratch", "call"})
# What the agent showed while it thought; here it is a note next to the progress of the call.
_NOTES = frozenset({"internal_monologue", "function_message", "system_message", "user_message"})
_FIXES = {
    "interface.assistant_message": "return the text instead, and the agent says it",
    "interface": "write `self.progress(0, note=…)` to tell how far it is, or return the text",
    "memory": "take the text as a parameter and return the new one: the agent edits its memory, a function computes",
    "persistence_manager.archival_memory": "take what was found as a parameter: the agent searches with"
    " `archival_memory_search` and stores with `archival_memory_insert`, a function computes",
    "persistence_manager": "take what was found as a parameter: the agent searches with `conversation_search`,"
    " a function computes",
    "rebuild_memory": "leave the line out: what the model sees is built anew at every step",
    "functions_python": "write `self.call(name, …)`, which calls another function of the workspace",
    "pause_heartbeats_start": "leave it out: a function does not steer the agent's turns",
    "pause_heartbeats_minutes": "leave it out: a function does not steer the agent's turns",
    "append_to_messages": "return the text instead: what a function returns is what the model reads",
    "messages": "take the messages as a parameter",
}
_ELSE = "take it as a parameter: `self` has progress, scratch and call"


@dataclass(frozen=True, slots=True)
class Adapted:
    """The adapted text, its rewrites with diffs by line, and the problems to fix manually.

    `brings` are the modules of `counterparts.toml` that it imports now.
    """

    text: str
    mapped: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    brings: frozenset[str] = frozenset()


@cache
def counterparts() -> Mapping[str, Any]:  # Any: TOML
    """Return what takes the place of another agent's functions, constants and modules."""
    return read_toml(files(__package__).joinpath("counterparts.toml").read_text("utf-8"))


def counterpart(module: str) -> tuple[str, str]:
    """Return the name and the text of the module that stands in for one of another agent, or of a package."""
    row = counterparts()["modules"][module]
    return str(row["name"]), str(row["text"])


def here_already(node: Definition, hosted: Mapping[str, tuple[str, ...]]) -> str:
    """Return that a function of another agent is one of the agent's own here, and what differs; else an empty text."""
    own = counterparts()["here"].get(node.name, node.name)
    if own not in hosted or not _takes_self(node):
        return ""
    there = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)][1:]
    here = hosted[own]
    more, fewer = [item for item in here if item not in there], [item for item in there if item not in here]
    differences = [f"it also takes {_listed(more)}"] * bool(more) + [f"it does not take {_listed(fewer)}"] * bool(fewer)
    shown = "here already" if own == node.name else f"here already, as `{own}`"
    difference = "; ".join(differences) or "its parameters are the same"
    return f"`{node.name}` is {shown}: a function of the agent itself; {difference}"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def adapt(text: str, path: str, *, maps: bool = True) -> Adapted:
    """Return the text of a module adapted to Knapper. A text without a foreign `self` is returned unchanged.

    Where nothing is to be mapped, all that is foreign is named.
    """
    if too_much(text):  # it is refused where it is read
        return Adapted(text)
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Adapted(text)
    takers = [node for node in ast.walk(tree) if isinstance(node, Definition) and _takes_self(node)]
    own = {id(node) for statement in tree.body if isinstance(statement, ast.ClassDef) for node in ast.walk(statement)}
    takers = [node for node in takers if id(node) not in own]
    brought = list(_brought(tree)) if maps else []
    edits = [*_notes(takers), *_replies(takers), *_hints(takers), *(row[:2] for row in brought)] if maps else []
    before, text = lines_of(text), _edited(text, [edit for edit, _ in edits])
    after, mapped = lines_of(text), dict[int, tuple[str, str]]()
    for (first, _, last, *_), description in edits:
        diff = [*_marked("-", before[first - 1 : last]), *_marked("+", after[first - 1 : last])]
        mapped[first] = description, "\n".join(diff)
    tree = syntax.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and _is_foreign(node)]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {node: {alias.asname or alias.name.split(".")[0] for alias in node.names} & used for node in imports}
    problems = [*(_import(node, text, path) for node in imports if bound[node]), *_uses(tree, text, path)]
    if maps:  # nothing of it is here to be imported: whoever uses it is told, and all others do without
        top = {id(node) for node in tree.body}
        gone = {node: f"{' = '.join(sorted(names))} = None" if names else "" for node, names in bound.items()}
        text = _edited(text, [(*_span(node), new or "pass" * (id(node) not in top)) for node, new in gone.items()])
    return Adapted(text, mapped, tuple(problems), frozenset(module for *_, module in brought if module))


def _span(node: ast.stmt) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def _notes(takers: list[Definition]) -> Iterator[tuple[_Edit, str]]:
    for call in (call for node in takers for call in _note_calls(node)):
        argument = call.args[0]
        edit = (call.lineno, call.col_offset, argument.lineno, argument.col_offset, "self.progress(0, note=")
        yield edit, f"`self.{_chain(call.func)[1]}(…)` became a note of progress"


def _replies(takers: list[Definition]) -> Iterator[tuple[_Edit, str]]:
    """Yield the messages to the user with which a function ends: what it returns is what the agent tells."""
    for node in takers:
        match node.body:
            case [*_, ast.Expr(value=ast.Call() as call)]:
                pass
            case [*_, ast.Expr(value=ast.Call() as call), ast.Return(value=None | ast.Constant(value=None)) as end]:
                column = end.end_col_offset or 0
                yield (end.lineno, end.col_offset, end.lineno, column, "pass"), "what it says is what it returns"
            case _:
                continue
        if _chain(call.func) == (True, "interface.assistant_message") and len(call.args) == 1 and not call.keywords:
            argument = call.args[0]
            edit = (call.lineno, call.col_offset, argument.lineno, argument.col_offset, "return (")
            yield edit, "`self.interface.assistant_message(…)` became the result, which the agent tells"


def _brought(tree: ast.Module) -> Iterator[tuple[_Edit, str, str]]:
    """Yield the imports of what has a counterpart, each with the module that is brought along, if there is one."""
    modules, constants = counterparts()["modules"], counterparts()["constants"]
    for node in ast.walk(tree):
        new = module = ""
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            root, _, rest = node.module.partition(".")
            origin = f"memgpt.{rest}" if root in _ROOTS else root
            names = [alias.name for alias in node.names]
            if origin == "memgpt.constants" and all(name in constants for name in names):
                bound = ", ".join(alias.asname or alias.name for alias in node.names)
                new = f"{bound} = {', '.join(repr(constants[name]) for name in names)}"
            elif origin in modules and set(names) <= set(modules[origin]["offers"]):
                module = origin
                new = f"from functions.{modules[origin]['name']} import {', '.join(map(ast.unparse, node.names))}"
        elif isinstance(node, ast.Import) and len(node.names) == 1 and (origin := node.names[0].name) in modules:
            name = node.names[0].asname or origin
            if "." not in name and _attributes(tree, name) <= set(modules[origin]["offers"]):
                module, new = origin, f"from functions import {modules[origin]['name']} as {name}"
        if new:
            assert isinstance(node, ast.Import | ast.ImportFrom)
            yield (*_span(node), new), f"`{ast.unparse(node)[:80]}` became what there is of it here", module


def _attributes(tree: ast.Module, name: str) -> set[str]:
    """Return the attributes that are used of a name; one that is used otherwise counts as the attribute `*`."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    own = [node for node in nodes if isinstance(node.value, ast.Name) and node.value.id == name]
    count = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    return {node.attr for node in own} | (set() if count == len(own) else {"*"})


def _hints(takers: list[Definition]) -> Iterator[tuple[_Edit, str]]:
    for name in map(_self_of, takers):
        hint = name.annotation
        if hint is not None and hint.end_lineno and hint.end_col_offset:
            edit = (name.lineno, name.col_offset, hint.end_lineno, hint.end_col_offset, "self")
            yield edit, f"`self` lost the hint `{ast.unparse(hint)}`, which is not here"


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [mark + line.rstrip("\r\n") for line in lines]


def _takes_self(node: Definition) -> bool:
    return bool([*node.args.posonlyargs, *node.args.args]) and _self_of(node).arg == "self"


def _self_of(node: Definition) -> ast.arg:
    return [*node.args.posonlyargs, *node.args.args][0]


def _note_calls(node: Definition) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        match inner:
            case ast.Expr(value=ast.Call(args=[argument], keywords=[]) as call) if not isinstance(
                argument, ast.Starred
            ):
                is_own, chain = _chain(call.func)
                if is_own and chain.removeprefix("interface.") in _NOTES:
                    yield call


def _chain(node: ast.expr) -> tuple[bool, str]:
    """Return whether an expression is an attribute of `self`, and its dotted name: `interface.internal_monologue`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self" and bool(parts), ".".join(reversed(parts))


def _uses(tree: ast.Module, text: str, path: str) -> Iterator[Problem]:
    lines = lines_of(text)
    for node in tree.body:
        if not isinstance(node, Definition) or not _takes_self(node):
            continue
        reported_lines: set[int] = set()
        for inner in ast.walk(node):
            if not isinstance(inner, ast.Attribute):
                continue
            is_own, chain = _chain(inner)
            if not is_own or chain.split(".")[0] in _OWN or inner.lineno in reported_lines:
                continue
            reported_lines.add(inner.lineno)
            parts = chain.split(".")
            keys = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
            fix = next((_FIXES[key] for key in keys if key in _FIXES), _ELSE)
            message = (
                f"`{lines[inner.lineno - 1].strip()[:160]}` uses `self.{chain}`, which a function does not have here"
            )
            yield Problem("foreign-context", message, Place(path, inner.lineno, inner.col_offset + 1), fix)


def _is_foreign(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").split(".")[0] in _ROOTS
    return all(alias.name.split(".")[0] in _ROOTS for alias in node.names)


def _import(node: ast.Import | ast.ImportFrom, text: str, path: str) -> Problem:
    line = lines_of(text)[node.lineno - 1].strip()
    names = ", ".join(f"`{alias.asname or alias.name}`" for alias in node.names)
    fix = f"write what {names} stands for above the function: a constant, or a helper of its own"
    return Problem("foreign-import", f"`{line[:160]}` imports what is not here", Place(path, node.lineno, 1), fix)


def _edited(text: str, edits: list[_Edit]) -> str:
    """Return the text with places replaced from last to first. A place that spans lines keeps their line endings."""
    lines = lines_of(text)
    for line, column, last, end, new in sorted(edits, reverse=True):
        start = column_of(lines[line - 1], column)
        stop = column_of(lines[last - 1], end)
        if line == last:
            lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][stop:]
        else:
            lines[last - 1] = lines[last - 1][stop:]
            lines[line : last - 1] = ["\n"] * (last - 1 - line)
            lines[line - 1] = lines[line - 1][:start] + new + "\n"
    return "".join(lines)

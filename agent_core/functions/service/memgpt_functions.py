"""Translates functions written for a MemGPT or Letta agent (`def f(self, …)`); only this module knows their API.

- `self: Agent` → `self`
- `self.interface.internal_monologue(text)`, and the others of `_NOTES` → `self.progress(0, note=text)`
- `self.interface.assistant_message(text)` as the last statement → `return (text)`, which the agent sends
- names of `memgpt.constants` and `memgpt.utils` → the expressions in `_NAMES`, on the line of their import
- any other import of `memgpt` → nothing; its uses are reported

Any other use of the agent is a problem at its line, with a replacement. Text → text; line numbers do not change.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field
from agent_core.registry.source import column_of
from agent_core.registry.tree import Definition
from sandbox.wire.lines import lines_of

_Edit: TypeAlias = tuple[
    int, int, int, int, str, str
]  # from and to, as lines and columns; the new text; the note
_ROOTS: Final = frozenset({"memgpt", "letta"})
_OWN: Final = frozenset(
    {"progress", "scratch", "call", "fetch", "secret", "state", "now", "call_key"}
)
_OWN_MEMORY: Final = frozenset({"memory.read", "memory.append", "memory.replace", "memory.write"})
_HERE: Final = {"message_chatgpt": "message_llm", "core_memory_save": "core_memory_append"}
# The agent displayed these while it worked; here they become notes with the progress of the call.
_NOTES: Final = frozenset(
    {"internal_monologue", "function_message", "system_message", "user_message"}
)
_SHOWN: Final = "'%Y-%m-%d %I:%M:%S %p %Z%z'"
_LOCAL: Final = f"_datetime.datetime.now().astimezone(timezone and _zoneinfo.ZoneInfo(timezone)).strftime({_SHOWN})"
_LOADS: Final = "lambda text: _json.loads(text, strict=False)"
_NAMES: Final = {  # expressions; modules have a name with an underscore
    "CORE_MEMORY_HUMAN_CHAR_LIMIT": "2000",
    "CORE_MEMORY_PERSONA_CHAR_LIMIT": "2000",
    "FUNCTION_RETURN_CHAR_LIMIT": "3000",
    "JSON_ENSURE_ASCII": "False",
    "JSON_LOADS_STRICT": "False",
    "MAX_PAUSE_HEARTBEATS": "360",
    "MESSAGE_CHATGPT_FUNCTION_MODEL": "'gpt-3.5-turbo'",
    "MESSAGE_CHATGPT_FUNCTION_SYSTEM_MESSAGE": "'You are a helpful assistant. Keep your responses short and concise.'",
    "RETRIEVAL_QUERY_DEFAULT_PAGE_SIZE": "5",
    "datetime_to_timestamp": "lambda dt: int(dt.timestamp())",
    "extract_date_from_timestamp": r"lambda timestamp: (_re.match(r'\d{4}-\d{2}-\d{2}', timestamp) or [None])[0]",
    "format_datetime": f"lambda dt: dt.strftime({_SHOWN})",
    "get_local_time": f"lambda timezone=None: {_LOCAL}",
    "get_local_time_timezone": f"lambda timezone='America/Los_Angeles': {_LOCAL}",
    "get_utc_time": "lambda: _datetime.datetime.now(_datetime.timezone.utc)",
    "json_dumps": "lambda data, indent=2: _json.dumps(data, indent=indent, ensure_ascii=False, default=str)",
    "json_loads": _LOADS,
    "parse_json": _LOADS,
    "printd": "lambda *args, **kwargs: None",
    "timestamp_to_datetime": "lambda ts: _datetime.datetime.fromtimestamp(ts)",
}
_MODULES: Final = ("datetime", "json", "re", "zoneinfo")
_FIXES: Final = {
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
_ELSE: Final = "take it as a parameter: `self` has fetch, secret, state, scratch, progress and call"


@dataclass(frozen=True, slots=True)
class Adapted:
    """The adapted text, its rewrites with diffs by line, and the problems that remain."""

    text: str
    mapped: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def here_already(node: Definition, hosted: Mapping[str, tuple[str, ...]]) -> str:
    """Return that a function of another agent is built in here, with the differences; otherwise an empty text."""
    own = _HERE.get(node.name, node.name)
    if own not in hosted or _self_of(node) is None:
        return ""
    there = [
        argument.arg
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    ][1:]
    more = [item for item in hosted[own] if item not in there]
    fewer = [item for item in there if item not in hosted[own]]
    differences = [f"it {verb} {', '.join(f'`{name}`' for name in names)}"
                   for verb, names in (("also takes", more), ("does not take", fewer)) if names]  # fmt: skip
    shown = "here already" if own == node.name else f"here already, as `{own}`"
    difference = "; ".join(differences) or "its parameters are the same"
    return f"`{node.name}` is {shown}: a function of the agent itself; {difference}"


def adapt(text: str, path: str, *, maps: bool = True) -> Adapted:
    """Return the text of a module adapted to Knapper. A text without a foreign `self` is returned unchanged.

    Without `maps`, nothing is translated, and everything foreign is reported.
    """
    try:
        tree = syntax.parse(text)
    except SyntaxError:
        return Adapted(text)
    lines, gone, edits, problems = lines_of(text), set[int](), list[_Edit](), list[Problem]()
    takers = [
        node for node in tree.body if isinstance(node, Definition) and _self_of(node) is not None
    ]
    for replaced, edit in (pair for node in takers if maps for pair in _translations(node, lines)):
        gone |= {id(part) for part in ast.walk(replaced)}
        edits.append(edit)
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in gone
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom) or not _is_foreign(node):
            continue
        names = {
            alias.asname or alias.name.split(".")[0]: _NAMES.get(alias.name, "")
            for alias in node.names
        }
        if not (
            maps
            and isinstance(node, ast.ImportFrom)
            and (node.module or "").endswith((".constants", ".utils"))
        ):
            names = dict.fromkeys(names, "")
        missing = [name for name, value in names.items() if not value and name in used]
        if missing:
            shown = lines[node.lineno - 1].strip()[:160]
            what = ", ".join(f"`{name}`" for name in missing)
            fix = f"write what {what} stands for above the function: a constant, or a helper of its own"
            place = Place(path, node.lineno, 1)
            problems.append(
                Problem("foreign-import", f"`{shown}` imports what is not here", place, fix)
            )
        needed = [
            module for module in _MODULES if any(f"_{module}." in value for value in names.values())
        ]
        written = [f"import {module} as _{module}" for module in needed]
        written += [
            f"{name} = {value or None}" for name, value in names.items() if value or name in missing
        ]
        new = "; ".join(written) or "pass" * (node not in tree.body)
        said = (
            f"`{ast.unparse(node)[:80]}` became what there is of it here"
            if any(names.values())
            else ""
        )
        edits += [(*_span(node), new, said)] if maps else []
    problems += (problem for node in takers for problem in _uses(node, lines, path, gone))
    after, mapped = _replace_places(lines, edits), dict[int, tuple[str, str]]()
    for first, _, last, _, _, said in edits:
        diff = [*(f"-{line.rstrip()}" for line in lines[first - 1 : last]),
                *(f"+{line.rstrip()}" for line in after[first - 1 : last])]  # fmt: skip
        mapped |= {first: (said, "\n".join(diff))} if said else {}
    return Adapted("".join(after), mapped, tuple(problems))


def _self_of(node: Definition) -> ast.arg | None:
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return first[0] if first and first[0].arg == "self" else None


def _is_foreign(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").split(".")[0] in _ROOTS
    return all(alias.name.split(".")[0] in _ROOTS for alias in node.names)


def _span(node: ast.stmt | ast.expr | ast.arg) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def _up_to_arguments(call: ast.Call, lines: Sequence[str]) -> tuple[int, int, int, int]:
    """Return the place of a call up to its opening parenthesis; the argument may have more of them."""
    line, at = call.func.end_lineno or call.lineno, call.func.end_col_offset or 0
    while (opening := lines[line - 1].encode().find(b"(", at)) < 0:
        line, at = line + 1, 0
    return call.lineno, call.col_offset, line, opening + 1


def _translations(function: Definition, lines: Sequence[str]) -> Iterator[tuple[ast.AST, _Edit]]:
    """Yield the edits that translate a function with `self`, each with the node that it replaces."""
    for inner in ast.walk(function):
        match inner:
            case ast.Expr(value=ast.Call(func=func, args=[argument], keywords=[]) as call) if (
                _chain(func).removeprefix("interface.") in _NOTES
                and not isinstance(argument, ast.Starred)
            ):
                start = _up_to_arguments(call, lines)
                said = f"`self.{_chain(func)}(…)` became a note of progress"
                yield func, (*start, "self.progress(0, note=", said)
    match function.body:
        case [*_, ast.Expr(value=ast.Call(func=func, args=[_], keywords=[]) as call)] | [
            *_, ast.Expr(value=ast.Call(func=func, args=[_], keywords=[]) as call),
            ast.Return(value=None | ast.Constant(value=None)),
        ] if _chain(func) == "interface.assistant_message":  # fmt: skip
            said = "`self.interface.assistant_message(…)` became the result, which the agent tells"
            yield func, (*_up_to_arguments(call, lines), "return (", said)
            if isinstance(end := function.body[-1], ast.Return):
                yield end, (*_span(end), "pass", "what it says is what it returns")
    name = _self_of(function)
    if name is not None and name.annotation is not None:
        said = f"`self` lost the hint `{ast.unparse(name.annotation)}`, which is not here"
        yield name.annotation, (*_span(name), "self", said)


def _chain(node: ast.AST) -> str:
    """Return the dotted name of an attribute of `self`, such as `interface.internal_monologue`, or an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed(parts)) if isinstance(node, ast.Name) and node.id == "self" else ""


def _uses(function: Definition, lines: list[str], path: str, gone: set[int]) -> Iterator[Problem]:
    """Yield a problem for each line of a function that uses an attribute that `self` does not have."""
    reported: set[int] = set()
    attributes = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
    of_memory = [node for node in attributes if _chain(node) in _OWN_MEMORY]
    known = gone.union(*({id(node), id(node.value)} for node in of_memory))
    for node in attributes:
        parts = _chain(node).split(".")
        if id(node) in known or not parts[0] or parts[0] in _OWN:
            continue
        if node.lineno not in reported:
            reported.add(node.lineno)
            keys = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
            fix = next((_FIXES[key] for key in keys if key in _FIXES), _ELSE)
            shown = lines[node.lineno - 1].strip()[:160]
            message = (
                f"`{shown}` uses `self.{'.'.join(parts)}`, which a function does not have here"
            )
            yield Problem(
                "foreign-context", message, Place(path, node.lineno, node.col_offset + 1), fix
            )


def _replace_places(lines: list[str], edits: list[_Edit]) -> list[str]:
    """Return the lines with the edits applied from last to first. An edit that spans lines keeps their number."""
    lines = [*lines]
    for line, column, last, end, new, _ in sorted(edits, reverse=True):
        start, stop = column_of(lines[line - 1], column), column_of(lines[last - 1], end)
        if line == last:
            lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][stop:]
        else:
            lines[last - 1] = lines[last - 1][stop:]
            lines[line : last - 1] = ["\n"] * (last - 1 - line)
            lines[line - 1] = lines[line - 1][:start] + new + "\n"
    return lines

"""Example regression check: every promise of an example stays required.

Pure. An example is known by its call, as Python reads it, with the set-up lines that the call depends on. One that
is gone, or promises another result, is named; where the signature became another, as many must take its place.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem, Severity
from agent_core.base.untrusted import fence
from agent_core.registry.examples import Example
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.typenames import Schema

from ..gate.examples.agreement import literal_value

CODE: Final = "example-dropped"
_MOST = 6
_Key = tuple[str, str]  # the call with its set-up, and what it promises
_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def dropped(before: Function | None, after: Function | None) -> list[tuple[Example, str]]:
    """Return the examples that a function no longer has, each with what their call promises now, if anything."""
    if before is None or after is None:
        return []
    now = {_key(example) for example in after.examples}
    promised = dict(now)
    lost = [example for example in before.examples if _key(example) not in now]
    return [(example, promised.get(_key(example)[0], "")) for example in lost]


def problem(before: Function | None, after: Function | None, severity: Severity, where: Place) -> Problem | None:
    """Return the problem if examples of the previous version are missing."""
    lost = dropped(before, after)
    if before is None or after is None or not lost:
        return None
    unfit = [pair for pair in lost if _is_other(before, after) and not _fits(pair[0], before, after)]
    old = {_key(example) for example in before.examples}
    fresh = sum(_key(example) not in old for example in after.examples)
    missing = [pair for pair in lost if pair not in unfit]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"{_count(len(missing))} that `{after.name}` had {verb} gone: {_listed(missing)}"
        fix = "put it back, and add others next to it"
        fix += "; if it must go, say why in `reason`" if severity == "refuses" else ""
        return Problem(CODE, message, where, fix, severity)
    if fresh < len(unfit):
        message = f"{_count(len(unfit))} of `{after.name}` do not fit its new signature, and {fresh} took their place"
        fix = f"write {len(unfit) - fresh} more for the new signature"
        fix += ", or say in `reason` why fewer will do" if severity == "refuses" else ""
        return Problem(CODE, message, where, fix, severity)
    return None


def of_save(before: ModuleReading | None, after: ModuleReading) -> list[Problem]:
    """Return the warnings on the functions of a saved file. They only warn because a save cannot state a reason."""
    had = {function.name: function for function in before.functions} if before else {}
    path = after.source.path
    problems = [
        problem(had.get(function.name), function, "warns", Place(path, function.line)) for function in after.functions
    ]
    return [warning for warning in problems if warning is not None]


def still_there(calls: Collection[str], before: Function, after: Function) -> list[str]:
    """Return those calls that have an example in both versions with the same promise."""
    old = {example.call: _key(example) for example in before.examples}
    now = {_key(example): example.call for example in after.examples}
    return [now[old[call]] for call in calls if call in old and old[call] in now]


def holds(function: Function | None, call: str) -> Example | None:
    """Return the function's example of that call, however it is written."""
    normalized = _normal(call)
    return (
        next((example for example in function.examples if _normal(example.call) == normalized), None)
        if function
        else None
    )


def _key(example: Example) -> _Key:
    return "\n".join([*_set_up(example), _normal(example.call)]), promise(example)


def promise(example: Example) -> str:
    """Return the promise of an example such that equal promises are equal texts."""
    if example.raises:
        return f"raises {example.raises}"
    text = example.expected.strip()
    value = literal_value(text)
    return text if type(value) is object else repr(value)


def written(example: Example) -> str:
    """Return the promise of an example in the form that `add_example` takes."""
    return example.raises or example.expected.rstrip("\n")


def _normal(call: str) -> str:
    try:
        return ast.unparse(syntax.parse(call.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return call.strip()


def _set_up(example: Example) -> list[str]:
    """Return the setup lines that the call depends on, in order."""
    lines: list[str] = []
    needed = _names(example.call)
    for line in reversed(example.setup):
        names = _names(line)
        if names & needed:
            needed |= names
            lines.insert(0, line.strip())
    return lines


def _names(text: str) -> set[str]:
    return {*re.findall(r"[^\W\d]\w*", text)}


def _is_other(before: Function, after: Function) -> bool:
    """Return whether the signature changed: names, types, what is required, what is returned."""
    return _signature(before) != _signature(after)


def _signature(function: Function) -> object:
    typed = {
        name: {key: value for key, value in schema.items() if key not in ("description", "default")}
        for name, schema in function.parameters.get("properties", {}).items()
    }
    return list(typed.items()), sorted(function.parameters.get("required", ())), function.returns


def _fits(example: Example, before: Function, after: Function) -> bool:
    """Return whether an example could still run unchanged: its call fits, and so may its result."""
    if before.returns != after.returns:
        return False
    try:
        tree = syntax.parse(example.call.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return all(_takes(after, call) for call in calls if getattr(call.func, "id", "") == after.name)


def _takes(function: Function, call: ast.Call) -> bool:
    schemas: dict[str, Schema] = function.parameters.get("properties", {})
    names = list(schemas)
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        return True
    by_name = {keyword.arg or "": keyword.value for keyword in call.keywords}
    arguments = dict(zip(names, call.args, strict=False)) | by_name
    is_full = (
        len(call.args) <= len(names) and not {*names[: len(call.args)]} & by_name.keys() and {*arguments} <= {*names}
    )
    required = {*function.parameters.get("required", ())}
    return (
        is_full and required <= {*arguments} and all(_is_of(schemas[name], value) for name, value in arguments.items())
    )


def _is_of(schema: Schema, node: ast.expr) -> bool:
    """Return whether a literal may be of a type, as far as the name of the type tells."""
    kind = _KINDS.get(str(schema.get("type")))
    value = literal_value(ast.unparse(node))
    if type(value) is object or kind is None:
        return True
    return isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)


def _listed(lost: Iterable[tuple[Example, str]]) -> str:
    named = list(_named(lost))
    return "; ".join(named[:_MOST]) + (f"; and {len(named) - _MOST} more" if len(named) > _MOST else "")


def _named(lost: Iterable[tuple[Example, str]]) -> Iterator[str]:
    for example, now in lost:
        instead = f", now {fence(now, 80)}" if now else ""
        yield f"{fence(example.call, 120)} → {fence(promise(example), 80)}{instead}"


def _count(number: int) -> str:
    return "1 example" if number == 1 else f"{number} examples"

"""Examples as a ratchet: what a function once promised by an example goes on being asked of it.

Pure. An example is known by its call, as Python reads it, with the set-up lines that the call depends on. One that
is gone, or promises another result, is named; where the signature became another, as many must take its place.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ..gate.examples.agreement import literal_value
from ..problem import Place, Problem, Severity
from ..registry.examples import Example
from ..registry.function import Function, Reading
from ..registry.typenames import Schema
from ..untrusted import fence

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
    """The examples of a function that it has no more, each with what their call promises now, if anything."""
    if before is None or after is None:
        return []
    now = {_key(example) for example in after.examples}
    promised = dict(now)
    lost = [example for example in before.examples if _key(example) not in now]
    return [(example, promised.get(_key(example)[0], "")) for example in lost]


def problem(before: Function | None, after: Function | None, severity: Severity, where: Place) -> Problem | None:
    """What is to be said where examples of the version before are missing afterwards."""
    lost = dropped(before, after)
    if before is None or after is None or not lost:
        return None
    unfit = [pair for pair in lost if _is_other(before, after) and not _fits(pair[0], before, after)]
    old = {_key(example) for example in before.examples}
    fresh = sum(_key(example) not in old for example in after.examples)
    kept = [pair for pair in lost if pair not in unfit]
    if kept:
        what = f"{_count(len(kept))} that `{after.name}` had {'is' if len(kept) == 1 else 'are'} gone: {_listed(kept)}"
        mend = "put it back, and add others beside it; where it must go, say why in `reason`"
        return Problem(CODE, what, where, mend, severity)
    if fresh < len(unfit):
        what = f"{_count(len(unfit))} of `{after.name}` do not fit its new signature, and {fresh} took their place"
        mend = f"write {len(unfit) - fresh} more for the new signature, or say in `reason` why fewer will do"
        return Problem(CODE, what, where, mend, severity)
    return None


def of_save(before: Reading | None, after: Reading) -> list[Problem]:
    """What is to be said of the functions of a saved file: nobody can give a reason in a save, so it warns."""
    had = {function.name: function for function in before.functions} if before else {}
    path = after.source.path
    found = [problem(had.get(one.name), one, "warns", Place(path, one.line)) for one in after.functions]
    return [one for one in found if one is not None]


def still_there(calls: Collection[str], before: Function, after: Function) -> list[str]:
    """Those of some calls whose example stands in both versions with the same promise."""
    old = {example.call: _key(example) for example in before.examples}
    now = {_key(example): example.call for example in after.examples}
    return [now[old[call]] for call in calls if call in old and old[call] in now]


def holds(function: Function | None, call: str) -> Example | None:
    """The function's example of that call, however it is written."""
    wanted = _normal(call)
    return next((one for one in function.examples if _normal(one.call) == wanted), None) if function else None


def _key(example: Example) -> _Key:
    return "\n".join([*_set_up(example), _normal(example.call)]), promise(example)


def promise(example: Example) -> str:
    """What an example promises, such that equal promises are equal texts."""
    if example.raises:
        return f"raises {example.raises}"
    text = example.expected.strip()
    value = literal_value(text)
    return text if type(value) is object else repr(value)


def written(example: Example) -> str:
    """What an example promises, as `add_example` takes it."""
    return example.raises or example.expected.rstrip("\n")


def _normal(call: str) -> str:
    try:
        return ast.unparse(ast.parse(call.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return call.strip()


def _set_up(example: Example) -> list[str]:
    """The set-up lines that the call depends on, in their order."""
    found: list[str] = []
    needed = _names(example.call)
    for line in reversed(example.setup):
        names = _names(line)
        if names & needed:
            needed |= names
            found.insert(0, line.strip())
    return found


def _names(text: str) -> set[str]:
    return {*re.findall(r"[^\W\d]\w*", text)}


def _is_other(before: Function, after: Function) -> bool:
    """Whether the signature became another: names, types, what is required, what is returned."""
    return _signature(before) != _signature(after)


def _signature(function: Function) -> object:
    typed = {
        name: {key: value for key, value in schema.items() if key not in ("description", "default")}
        for name, schema in function.parameters.get("properties", {}).items()
    }
    return list(typed.items()), sorted(function.parameters.get("required", ())), function.returns


def _fits(example: Example, before: Function, after: Function) -> bool:
    """Whether an example could still be run as it stands: its call fits, and so may its result."""
    if before.returns != after.returns:
        return False
    try:
        tree = ast.parse(example.call.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return all(_takes(after, call) for call in calls if getattr(call.func, "id", "") == after.name)


def _takes(function: Function, call: ast.Call) -> bool:
    schemas: dict[str, Schema] = function.parameters.get("properties", {})
    names = list(schemas)
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return True
    by_name = {one.arg or "": one.value for one in call.keywords}
    given = dict(zip(names, call.args, strict=False)) | by_name
    is_full = len(call.args) <= len(names) and not {*names[: len(call.args)]} & by_name.keys() and {*given} <= {*names}
    required = {*function.parameters.get("required", ())}
    return is_full and required <= {*given} and all(_is_of(schemas[name], value) for name, value in given.items())


def _is_of(schema: Schema, node: ast.expr) -> bool:
    """Whether a literal may be of a type, as far as one word for the type tells."""
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

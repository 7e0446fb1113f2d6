"""Regression check: every promise of an example must be kept, and so must checks and the uses that were granted.

Pure. An example is identified by its call, as Python parses it, with the setup lines that the call depends on; between
these there may be others, if they bind none of its names. It still stands if its call has arguments for new parameters
besides. Examples that are gone or promise another result are named; as many new ones must replace those whose calls do
not fit a new signature. A result that only got new keys is noted where nothing else can rely on it.
A check is an error that the docstring lists, or a bound on an argument in the schema. A grant is given for what the
code reaches.
"""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.access.grants import Grants
from agent_core.access.grants.value import KINDS, UNSAID, covered
from agent_core.base import syntax
from agent_core.base.problem import Evidence, Place, Problem, Severity
from agent_core.base.records import replace
from agent_core.base.untrusted import fence
from agent_core.registry import docstring
from agent_core.registry.source import bound_names

from ..gate.capability import needs_of_text, reach_of
from ..gate.examples import literal_value, promise
from ..gate.tree import find, parse

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function, ModuleReading
    from agent_core.registry.typenames import Schema
    from agent_core.storage import FunctionStore

CODE: Final = "example-dropped"
CHECK_CODE: Final = "check-dropped"
USE_CODE: Final = "use-dropped"
ADDED_CODE: Final = "result-added"
_Place: TypeAlias = tuple[str, ...]
"""The keys that lead to a part of a result; an empty one stands for all rows of a list."""
_MOST = 6
_MOST_ALIKE: Final = 20  # examples of one call that another is compared with
_BOUNDS: Final = frozenset(
    {"enum", "const", "pattern", "multipleOf", "uniqueItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)
"""The schema keywords that constrain a value beyond its type."""
_WITHIN: Final = ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf")
_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def dropped(
    old_function: "Function | None", function: "Function | None"
) -> list[tuple["Example", str]]:
    """Return the examples that a function no longer has, each with the current promise of its call, if any."""
    if old_function is None or function is None:
        return []
    return [
        (example, "" if now_example is None else promise(now_example))
        for example, now_example in _pairs(old_function, function)
        if now_example is None or promise(now_example) != promise(example)
    ]


def _pairs(
    old_function: "Function", function: "Function"
) -> list[tuple["Example", "Example | None"]]:
    """Return the examples of the previous version, each with the one that it is now, if any."""
    now = _ExamplesByCall(function.examples)
    wider = _wider_examples(old_function, function)
    return [(each, now.kept(each) or wider.kept(each)) for each in old_function.examples]


def _wider_examples(old_function: "Function", function: "Function") -> "_ExamplesByCall":
    """Return the examples with their calls and setup as they are without the arguments for new parameters."""
    new_names = set(_parameters(function)) - set(_parameters(old_function))
    if not new_names:
        return _ExamplesByCall(())
    lines = {line for each in function.examples for line in (each.call, *each.setup)}
    values = frozenset[str]().union(*(_names(line)[0] for line in lines))
    narrowed = {
        line: _narrowed(line, function, new_names, values) if function.name in line else line
        for line in lines
    }
    examples = []
    for each in function.examples:
        setup = tuple(map(narrowed.__getitem__, each.setup))
        examples.append(replace(each, call=narrowed[each.call], setup=setup))
    return _ExamplesByCall(examples)


def _narrowed(
    source: str, function: "Function", new_names: Collection[str], values: frozenset[str]
) -> str:
    """Return a line of an example without the arguments of its calls for new parameters.

    One that could change the `values` of the example stays.
    """
    try:
        tree = syntax.parse(source.strip())
    except SyntaxError:
        return source
    names = _parameters(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function.name:
            given = zip(node.args, [*names, *[""] * len(node.args)], strict=False)
            node.args = [
                argument
                for argument, name in given
                if name not in new_names or _may_change(argument, values)
            ]
            node.keywords = [
                each
                for each in node.keywords
                if each.arg not in new_names or _may_change(each.value, values)
            ]
    return ast.unparse(tree)


def _may_change(argument: ast.expr, values: frozenset[str]) -> bool:
    """Check whether evaluating an argument may bind or change one of these values."""
    binds, uses = _names(ast.unparse(argument))
    is_plain = all(
        isinstance(
            node, ast.Name | ast.Constant | ast.expr_context | ast.List | ast.Tuple | ast.Dict
        )
        for node in ast.walk(argument)
    )
    return bool(binds) or (not is_plain and bool(uses & values))


def addition(
    old_function: "Function", function: "Function", code: str, place: Place
) -> Problem | None:
    """Return the note that all that changed of the examples is that their results got new keys; None if it is not.

    Each old part is there as it was, in its order. The new keys are the same in every result, and `code` writes them:
    what data decide is a promise of its own, like one more row.
    """
    added = dict[_Place, set[frozenset[str]]]()
    for example, now in _pairs(old_function, function):
        if now is None:
            return None
        values = literal_value(example.expected), literal_value(now.expected)
        is_comparable = now.options == example.options and object not in map(type, values)
        is_kept = is_comparable and _note_added(*values, (), added)
        if not is_kept and promise(now) != promise(example):
            return None
    new_keys = frozenset[str]().union(*(keys for sets in added.values() for keys in sets))
    if not new_keys or any(len(sets) > 1 for sets in added.values()):
        return None
    if not new_keys <= _written(function.name, code):
        return None
    named = ", ".join(fence(repr(key), 80) for key in sorted(new_keys))
    message = f"what `{function.name}` returns has more than before: {named}; the rest is as it was"
    return Problem(ADDED_CODE, message, place, None, "warns")


def _note_added(
    old: object, new: object, place: "_Place", added: "dict[_Place, set[frozenset[str]]]"
) -> bool:
    """Note which keys a result got at which places. Return whether all old parts are there as they were.

    The rows of a list are one place. What was empty stays so: that is a promise, too.
    """
    if type(old) is not type(new):
        return False
    if isinstance(old, dict) and isinstance(new, dict):
        new_keys = [key for key in new if key not in old]
        if [repr(key) for key in new if key in old] != [repr(key) for key in old]:
            return False
        if not all(isinstance(key, str) for key in new_keys) or (new_keys and not old):
            return False
        added.setdefault(place, set()).add(frozenset(new_keys))
        return all(_note_added(old[key], new[key], (*place, repr(key)), added) for key in old)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(
            _note_added(before, after, (*place, ""), added)
            for before, after in zip(old, new, strict=True)
        )
    return repr(old) == repr(new)


def _written(name: str, code: str) -> set[str]:
    """Return the texts and the names of arguments that a function's code has, without its docstring."""
    tree = parse(code)
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    words = set[str]()
    for statement in node.body if node is not None else ():
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        for part in ast.walk(statement):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                words.add(part.value)
            elif isinstance(part, ast.keyword) and part.arg:
                words.add(part.arg)
    return words


def problem(
    old_function: "Function | None", function: "Function | None", severity: Severity, place: Place
) -> Problem | None:
    """Return the problem if examples of the previous version are missing."""
    lost = dropped(old_function, function)
    if old_function is None or function is None or not lost:
        return None
    is_other = _signature(old_function) != _signature(function)
    unfit = [pair for pair in lost if is_other and not _fits(pair[0], function)]
    before = _ExamplesByCall(old_function.examples)
    fresh = sum(before.kept(example) is None for example in function.examples)
    missing = [pair for pair in lost if pair not in unfit]
    if missing:
        many = len(missing) > 1
        what = ["are gone" if many else "is gone"] if not all(now for _, now in missing) else []
        what += (
            ["promise another result" if many else "promises another result"]
            if any(now for _, now in missing)
            else []
        )
        named = [
            f"{fence(example.call, 120)} → {fence(promise(example), 80)}{f', now {fence(now, 80)}' if now else ''}"
            for example, now in missing
        ]
        message = f"{_count(len(missing))} that `{function.name}` had {' or '.join(what)}: {_first_few(named)}"
        fix = "put it back, and add others next to it"
        fix += _way_out(function) if severity == "refuses" else ""
        return Problem(CODE, message, place, fix, severity, _lost_evidence(missing))
    if fresh < len(unfit):
        message = (
            f"{_count(len(unfit))} of `{function.name}` do not fit its new signature, and "
            f"{fresh} took their place"
        )
        fix = f"write {len(unfit) - fresh} more for the new signature"
        fix += _way_out(function) if severity == "refuses" else ""
        return Problem(CODE, message, place, fix, severity, _lost_evidence(unfit))
    return None


def _way_out(function: "Function") -> str:
    """Return how a human can allow that something goes."""
    return (
        f"; if it must go, say why in `reason`: a person decides, if asked, or by "
        f"`functions confirm {function.name}`"
    )


def _lost_evidence(lost: Sequence[tuple["Example", str]]) -> tuple[Evidence, ...]:
    """Return the lost examples as evidence: each call with its promise."""
    return tuple(
        Evidence(call=example.call, expected=example.raises or example.expected.strip())
        for example, _ in lost
    )


def proved_problems(
    old_function: "Function",
    function: "Function",
    old: str,
    new: str,
    grants: Grants,
    severity: Severity,
    place: Place,
) -> list[Problem]:
    """Return the problems if checks of the previous version, or uses that it was granted, are gone.

    `old` and `new` are the texts of both versions. `grants` is what the new one needs, including its module.
    """
    way_out = _way_out(function) if severity == "refuses" else ""
    problems = []
    if checks := [*_checks_gone(old_function, function, old, new)]:
        message = f"what `{function.name}` checked is gone: {_first_few(checks)}"
        facts = tuple(map(Evidence, checks))
        problems.append(Problem(CHECK_CODE, message, place, f"keep it{way_out}", severity, facts))
    had, needs = needs_of_text(old), grants | needs_of_text(new)
    gone = {
        kind: tuple(item for item in had.items(kind) if not covered(kind, item, needs.items(kind)))
        for kind in KINDS
        if UNSAID not in needs.items(kind)  # what it does not name may be the same
    }
    if uses := reach_of(Grants.from_json(gone)):
        message = f"`{function.name}` no longer does what it needs a grant for: {', '.join(uses)}"
        facts = tuple(Evidence(f"the version before {use}") for use in uses)
        problems.append(Problem(USE_CODE, message, place, f"keep it{way_out}", severity, facts))
    return problems


def _checks_gone(
    old_function: "Function", function: "Function", old: str, new: str
) -> Iterator[str]:
    """Yield the errors that the docstring no longer lists or the code no longer raises itself, and dropped bounds.

    An error that an example still shows is not lost, wherever it is raised. Bounds on arguments only count if the type
    is the same.
    """
    (listed, raised), (still_listed, still_raised) = (
        _errors(old_function.name, old),
        _errors(function.name, new),
    )
    shown = {example.raises.partition(":")[0] for example in function.examples if example.raises}
    for error in dict.fromkeys(listed):
        if error in shown:
            continue
        if error not in still_listed:
            yield f"`{error}` under `Raises:`"
        elif error in raised and error not in still_raised:
            yield f"`raise {error}`, which its docstring lists"
    before, after = (each.parameters.get("properties", {}) for each in (old_function, function))
    for name in [
        name
        for name in before
        if name in after and before[name].get("type") == after[name].get("type")
    ]:
        kept = {key for key, _value in _bounds(after[name])}
        for key, value in _bounds(before[name]):
            if key not in kept:
                yield f"`{key}` {fence(repr(value), 80)} of `{name}`"


def _errors(name: str, text: str) -> tuple[tuple[str, ...], set[str]]:
    """Return the errors that a function's docstring lists, and those that its own statements raise."""
    tree = parse(text)
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if node is None:
        return (), set()
    statements = [statement.exc for statement in ast.walk(node) if isinstance(statement, ast.Raise)]
    called = [error.func if isinstance(error, ast.Call) else error for error in statements]
    return docstring.read(ast.get_docstring(node)).raises, {
        ast.unparse(error) for error in called if error
    }


def _bounds(schema: object) -> Iterator[tuple[str, object]]:
    if isinstance(schema, list):
        for part in schema:
            yield from _bounds(part)
    elif isinstance(schema, dict):
        yield from ((key, value) for key, value in schema.items() if key in _BOUNDS)
        for key in _WITHIN:
            yield from _bounds(schema.get(key))


def of_save(before: "ModuleReading | None", reading: "ModuleReading") -> list[Problem]:
    """Return the warnings on the functions of a saved file. They only warn because a save cannot state a reason."""
    had = {function.name: function for function in before.functions} if before else {}
    path = reading.source.path
    problems = [
        problem(had.get(function.name), function, "warns", Place(path, function.line))
        for function in reading.functions
    ]
    return [warning for warning in problems if warning is not None]


def still_there(
    calls: Collection[str], old_function: "Function", function: "Function"
) -> list[str]:
    """Return the calls that have an example with the same promise in both versions."""
    old = {example.call: example for example in old_function.examples if example.call in calls}
    now = _ExamplesByCall(function.examples if old else ())
    found = [(old[call], now.kept(old[call])) for call in calls if call in old]
    return [
        each.call
        for example, each in found
        if each is not None and promise(each) == promise(example)
    ]


async def confirmed(
    store: "FunctionStore",
    newest: tuple[str, ...],
    old_function: "Function | None",
    function: "Function",
) -> tuple[str, ...]:
    """Return the calls with returned results that were accepted, now or earlier, and are still promised."""
    calls = [*newest]
    for earlier in filter(None, (old_function, function)):
        if not (earlier.examples and function.examples):
            continue  # without examples, no accepted result can remain
        verdict = await store.verdict(earlier.body_hash, earlier.name)
        calls += still_there((verdict or {}).get("confirmed") or (), earlier, function)
    return tuple(dict.fromkeys(calls))


def holds(function: "Function | None", call: str) -> "Example | None":
    """Return the function's example of this call, regardless of formatting."""
    normalized = _normal(call)
    examples = function.examples if function else ()
    return next((example for example in examples if _normal(example.call) == normalized), None)


class _ExamplesByCall:
    """The examples of a function, to look up which of them is one that an earlier version had."""

    def __init__(self, examples: Sequence["Example"]) -> None:
        self._alike: dict[str, list[Example]] = {}
        for example in examples:
            self._alike.setdefault(_normal(example.call), []).append(example)

    def kept(self, example: "Example") -> "Example | None":
        """Return the example with the same call and setup, one with the same promise first; None if there is none."""
        alike = self._alike.get(_normal(example.call), [])[:_MOST_ALIKE]
        same = [each for each in alike if _has_setup_of(each, example)]
        return min(same, key=lambda each: promise(each) != promise(example), default=None)


def _has_setup_of(example: "Example", old_example: "Example") -> bool:
    """Check whether an example has the setup lines of an earlier one in order, and no others that bind its names."""
    lines, needed = _setup(old_example)
    left, between = iter(_setup(example)[0]), list[str]()
    for line in lines:
        while (now := next(left, None)) != line:
            if now is None:
                return False
            between.append(now)
    return not any(_names(line)[0] & needed for line in (*between, *left))


def _setup(example: "Example") -> tuple[list[str], frozenset[str]]:
    """Return the setup lines that the call of an example depends on, and all names that it needs."""
    lines, needed = list[str](), _names(example.call)[1]
    values = frozenset[str]().union(*(_names(line)[0] for line in example.setup))
    for line in reversed(example.setup):
        binds, uses = _names(line)
        if binds & needed or uses & needed & values:
            needed |= uses
            lines.insert(0, _normal(line))
    return lines, needed


def written(example: "Example") -> str:
    """Return the promise of an example in the form that `add_example` accepts."""
    return example.raises or example.expected.rstrip("\n")


@lru_cache(maxsize=4096)
def _normal(source: str) -> str:
    """Return a call or a line of setup as Python writes it."""
    try:
        return ast.unparse(syntax.parse(source.strip()))
    except SyntaxError:
        return source.strip()


@lru_cache(maxsize=4096)
def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of values that a source binds, and those that it uses; a module is no value that it changes."""
    try:
        tree = syntax.parse(source.strip())
    except SyntaxError:
        words = frozenset(re.findall(r"[^\W\d]\w*", source))
        return words, words
    binding = (
        bound_names(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)
    )
    names = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    return frozenset().union(*binding), frozenset(node.id for node in names)


def _parameters(function: "Function") -> "dict[str, Schema]":
    schemas: dict[str, Schema] = function.parameters.get("properties", {})
    return schemas


def _signature(function: "Function") -> object:
    typed = {
        name: {key: value for key, value in schema.items() if key not in ("description", "default")}
        for name, schema in _parameters(function).items()
    }
    return list(typed.items()), sorted(function.parameters.get("required", ()))


def _fits(example: "Example", function: "Function") -> bool:
    """Return whether an example may still hold: its call fits the signature, whatever type is returned now."""
    try:
        tree = syntax.parse(example.call.strip(), mode="eval")
    except SyntaxError:
        return True
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return all(
        _takes(function, call) for call in calls if getattr(call.func, "id", "") == function.name
    )


def _takes(function: "Function", call: ast.Call) -> bool:
    schemas = _parameters(function)
    names = list(schemas)
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        return True
    by_name = {keyword.arg or "": keyword.value for keyword in call.keywords}
    arguments = dict(zip(names, call.args, strict=False)) | by_name
    is_full = (
        len(call.args) <= len(names)
        and not {*names[: len(call.args)]} & by_name.keys()
        and {*arguments} <= {*names}
    )
    required = {*function.parameters.get("required", ())}
    return (
        is_full
        and required <= {*arguments}
        and all(_is_of(schemas[name], value) for name, value in arguments.items())
    )


def _is_of(schema: "Schema", node: ast.expr) -> bool:
    """Return whether a literal may have a type, as far as the name of the type tells."""
    kind = _KINDS.get(str(schema.get("type")))
    value = literal_value(ast.unparse(node))
    if type(value) is object or kind is None:
        return True
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind)


def _first_few(items: Sequence[str]) -> str:
    shown = "; ".join(items[:_MOST])
    more = len(items) - _MOST
    return f"{shown}; and {more} more" if more > 0 else shown


def _count(number: int) -> str:
    return "1 example" if number == 1 else f"{number} examples"

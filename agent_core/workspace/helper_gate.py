"""The gate of helpers: the names in its file exist, its name and purpose are unique, and its examples are correct."""

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.json_form import to_json
from agent_core.base.matching import look, nearest
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import one_line
from agent_core.functions.answers import CallReport
from agent_core.memory import words
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.function import fits
from agent_core.runtime.dispatch import GIVE

from .agent_files import MOST_PROBLEMS, RESERVED
from .helper_file import Helper, path_of, place_of

if TYPE_CHECKING:
    from agent_core.base.limits import SpendingLimits
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

NEAR_PURPOSE: Final = 0.75
"""The share of common words among all words of two purposes from which they count as nearly the same."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context for checking a helper's file: the functions, the built-in names (`hosted`), and other helpers."""

    snapshot: "Snapshot"
    hosted: Collection[str]
    helpers: Mapping[str, Helper]


def problems_around(helper: Helper, surroundings: Surroundings) -> tuple[Problem, ...]:
    """Return the problems of a helper in its context, such as unknown names and name clashes."""
    checks = (
        _clashes(helper, surroundings),
        _unknown(helper, surroundings),
        _depth(helper),
        _examples(helper, surroundings),
    )
    return tuple(islice(chain.from_iterable(checks), MOST_PROBLEMS))


def _clashes(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    where, fix = Place(path_of(helper.name), 1), "give the helper another name: rename its file"
    other = surroundings.snapshot.functions.get(helper.name)
    if helper.name in surroundings.hosted or helper.name == GIVE or helper.name.lower() in RESERVED:
        yield Problem("reserved-name", f"`{helper.name}` is a name that the program itself uses", where, fix)
    elif other is not None:
        message = f"`{helper.name}` is already the function at {other.path}:{other.line}, which stays"
        yield Problem("name-clash", message, where, fix)
    else:
        names = (*surroundings.snapshot.functions, *surroundings.hosted, *surroundings.helpers)
        shape = look(helper.name)
        for name in sorted(name for name in names if name != helper.name and look(name) == shape):
            yield Problem("look-alike", f"`{helper.name}` looks like `{name}`, which is there", where, fix)


def _unknown(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    functions, where = surroundings.snapshot.functions, place_of(helper, "functions")
    for pattern in helper.functions:
        if any(fits((pattern,), function) for function in functions.values()):
            continue
        shown = one_line(pattern, 80)
        if pattern in surroundings.hosted:
            message = f"`{shown}` is a function of the program, which no helper is given"
            yield Problem(
                "meta-function", message, where, "`grows = true` lets it make functions; leave the others out"
            )
        elif set(pattern) & set("*?["):
            yield Problem("no-function", f"`{shown}` fits no function", where, "make one, or leave it out", "warns")
        else:
            names = nearest(pattern, [*functions, *surroundings.helpers])
            fix = f"did you mean `{names[0]}`?" if names else "list_functions and `knapper functions list` name them"
            fix = f"{fix} A helper belongs into `helpers`" if names and names[0] in surroundings.helpers else fix
            yield Problem("unknown-function", f"there is no function `{shown}`", where, fix)
    where = place_of(helper, "helpers")
    for pattern in helper.helpers:
        shown = one_line(pattern, 80)
        if pattern == helper.name:
            fix = "leave it out: no helper calls itself"
            yield Problem("own-name", f"`{shown}` is the helper itself", where, fix)
        elif not set(pattern) & set("*?[") and pattern not in surroundings.helpers:
            names = nearest(pattern, surroundings.helpers)
            fix = f"did you mean `{names[0]}`?" if names else "`knapper helpers list` names them"
            yield Problem("unknown-helper", f"there is no helper `{shown}`", where, fix)


def _depth(helper: Helper) -> Iterator[Problem]:
    if helper.helpers and (helper.budget.depth or 0) < 2:
        message = "`helpers` names helpers that it may call, and its depth lets it call none"
        fix = "write `depth = 2` into `budget`, or leave `helpers` out"
        yield Problem("depth", message, place_of(helper, "helpers"), fix)


def _examples(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    where = place_of(helper, "examples")
    for example in helper.examples:
        for kind, value, parameters in (
            ("inputs", example.inputs, helper.function.parameters),
            ("result", {"result": example.result}, helper.answer.parameters),
        ):
            problems = read_arguments(json.dumps(value, default=str), parameters)
            if isinstance(problems, tuple):
                yield Problem(
                    "example", f"the {kind} of an example do not fit: {problems[0].message}", where, "fix them"
                )
        function = surroundings.snapshot.functions.get(example.function)
        if function is None or not helper.may_call(function):
            message = f"an example names `{one_line(example.function, 80)}`, which is not one of its functions"
            yield Problem("example", message, where, "name the function that gives this result for these inputs")


def near_copies(helper: Helper, surroundings: Surroundings) -> Iterator[Problem]:
    """Yield a problem for each helper or function with nearly the same purpose."""
    where, fix = place_of(helper, "purpose"), "call that one, or say in `purpose` what only this one does"
    for other in surroundings.helpers.values():
        if other.name != helper.name and _likeness(helper.purpose, other.purpose) >= NEAR_PURPOSE:
            message = f"`{helper.name}` has nearly the purpose of the helper `{other.name}`: {other.purpose}"
            yield Problem("near-copy", one_line(message, 300), where, fix)
    for function in surroundings.snapshot.functions.values():
        first = function.description.partition("\n\n")[0]
        if _likeness(helper.purpose, first) >= NEAR_PURPOSE and _takes(helper.function) == _takes(function):
            message = f"`{helper.name}` has the purpose and the inputs of the function `{function.name}`"
            yield Problem("near-copy", message, where, "call that function: it costs no model")


def beyond(helper: Helper, limits: "SpendingLimits") -> Iterator[Problem]:
    """Yield a problem for each part of the budget that exceeds the remaining budget of the proposer."""
    for name, most in limits.amounts().items():
        wanted = getattr(helper.budget, name)
        if name not in ("hops", "messages") and wanted is not None and wanted > most:
            message = f"`{name}` of its budget is {wanted:g}, and you have {most:g} left yourself"
            yield Problem("budget", message, place_of(helper, "budget"), f"write at most {most:g}")


CallFunction = Callable[[str, dict[str, Any]], Awaitable[CallReport]]
"""Calls a function of the workspace in a worker, without recording the call."""


async def failing_examples(helper: Helper, call: CallFunction) -> list[Problem]:
    """Return a problem for each example that the function does not reproduce."""
    problems = []
    for example in helper.examples:
        report = await call(example.function, dict(example.inputs))
        result = {"result": report.value} if report.outcome == "returned" else None
        if result is None or to_json(result) != to_json({"result": example.result}):
            came = report.outcome if result is None else one_line(repr(report.value), 120)
            message = f"`{example.function}` gives {came} for an example, and not {one_line(repr(example.result), 120)}"
            fix = "write the result that the function gives, or fix the function"
            problems.append(Problem("example", message, place_of(helper, "examples"), fix))
    return problems


def _likeness(purpose: str, other: str) -> float:
    own, others = (frozenset(words.stems(words.content(text))) for text in (purpose, other))
    return len(own & others) / len(own | others) if own and others else 0.0


def _takes(function: "Function") -> list[str]:
    return sorted(str(schema.get("type")) for schema in function.parameters["properties"].values())

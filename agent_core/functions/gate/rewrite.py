"""An existing function under another name: the two give the same results, on the examples of both and on other calls.

Only functions that take the same kinds of arguments are compared. The candidate is run on the examples of all of them
in one worker; one that agrees with all is run on the candidate's examples, and both on calls that no example has.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from itertools import islice
from pathlib import PurePath
from typing import Literal, TypeAlias
from uuid import UUID

from agent_core.base.problem import Evidence
from agent_core.registry.function import Function
from sandbox import Attempt, Attempts, Outcome, Raised, Refused, Returned, TimedOut
from sandbox.code import Modules

from .call_arguments import Arguments, edge_calls, recombined, shown
from .draft import Draft, Finding
from .duplicate import STAGE, fix_of_copy, is_apart, shown_function
from .examples.agreement import literal_value, same
from .tree import nodes_of, parse
from .trial import TrialTools

_MOST, _EXAMPLES, _LEAST = 40, 4, 2
_TEXTS, _LONGEST, _OTHERS = 24, 200, 40
_EACH_S = 0.25

Sameness: TypeAlias = Literal["same", "different", "other arguments", "unknown"]
"""What is known of the results of two functions."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A call of a function by position, and the result that its example promises."""

    values: tuple[object, ...]
    result: object


async def check_rewrite(draft: Draft, bench: TrialTools) -> Draft:
    """Return the draft with the function of the workspace that it writes again, if there is one."""
    own = draft.loaded
    if own is None or own.takes_self or draft.trial is None or draft.shows("copy") or draft.candidate.replaces:
        return draft
    mine = _known(own)
    others = {function.name: known for function in _alike(draft, own) if len(known := _known(function)) >= _LEAST}
    if len(mine) < _LEAST or not others:
        return draft
    calls = [(name, known) for name, all_known in others.items() for known in all_known]
    given = await _results(own, [known.values for _name, known in calls], *_ground(draft), bench)
    wrong = {name for (name, known), outcome in zip(calls, given, strict=True) if not _is(outcome, known.result)}
    for name in [name for name in others if name not in wrong]:
        if await _agrees(own, draft.snapshot.functions[name], mine, draft, bench):
            return draft.with_findings(STAGE, [_finding(draft, draft.snapshot.functions[name])])
    return draft


async def compared(first: Function, second: Function, modules: Modules, wall_s: float, bench: TrialTools) -> Sameness:
    """Return whether two functions give the same results, on the examples of both."""
    if first.takes_self or second.takes_self:
        return "unknown"
    if not _kinds(first) or _kinds(first) != _kinds(second):
        return "other arguments"
    calls = [call for function in (first, second) for call in _calls(function)]
    if not calls:
        return "unknown"
    ours = await _results(first, calls, modules, wall_s, bench)
    theirs = await _results(second, calls, modules, wall_s, bench)
    pairs = [pair for pair in zip(ours, theirs, strict=True) if None not in pair]
    if any(not _are_same(*pair) for pair in pairs):
        return "different"
    are_returned = sum(all(isinstance(outcome, Returned) for outcome in pair) for pair in pairs)
    return "same" if are_returned >= _LEAST else "unknown"


def _calls(function: Function) -> Iterator[tuple[object, ...]]:
    """Yield the arguments of the examples, as far as they are given without a gap."""
    calls, names = [example.call for example in function.examples[:_EXAMPLES]], [*function.parameters["properties"]]
    for arguments in shown(calls, function.name, function.parameters):
        if [*arguments] == names[: len(arguments)]:
            yield tuple(map(_sent, arguments.values()))


def _alike(draft: Draft, own: Function) -> Iterator[Function]:
    """Yield functions of the workspace that take the same kinds of arguments."""
    kinds = _kinds(own)
    functions = (
        function
        for function in draft.snapshot.functions.values()
        if function.name != own.name and not function.takes_self and function.examples and _kinds(function) == kinds
    )
    return islice((function for function in functions if not is_apart(draft, function.name)), _MOST if kinds else 0)


def _kinds(function: Function) -> list[str]:
    return [str(schema.get("type", "")) for schema in function.parameters["properties"].values()]


def _known(function: Function) -> list[_Known]:
    """Return the examples of a function whose arguments and result are literals; none if all results are alike."""
    known = []
    for example in function.examples[:_EXAMPLES]:
        arguments = shown([example.call], function.name, function.parameters)
        result = literal_value(example.expected)
        if len(arguments) == 1 and type(result) is not object and example.call.startswith(function.name):
            known.append(_Known(tuple(map(_sent, arguments[0].values())), result))
    return known if len({repr(each.result) for each in known}) > 1 else []


def _sent(value: object) -> object:
    """Return a value as a model sends it: where one function takes a date, another may take the text of one."""
    match value:
        case date() | time():
            return value.isoformat()
        case Decimal() | UUID() | PurePath():
            return str(value)
        case list():
            return [_sent(item) for item in value]
        case _:
            return value


def _ground(draft: Draft) -> tuple[Modules, float]:
    assert draft.trial is not None
    return draft.trial.modules, draft.rules.fitted_s


async def _results(
    function: Function, calls: Sequence[tuple[object, ...]], modules: Modules, wall_s: float, bench: TrialTools
) -> tuple[Outcome | None, ...]:
    names = list(function.parameters["properties"])
    attempts = [Attempt(dict(zip(names, values, strict=False))) for values in calls]
    return await bench.attempt(modules, function.module, Attempts(function.name, attempts, _EACH_S), wall_s)


def _is(outcome: Outcome | None, result: object) -> bool:
    return isinstance(outcome, Returned) and same(result, outcome.value, is_float=True)


async def _agrees(own: Function, other: Function, mine: Sequence[_Known], draft: Draft, bench: TrialTools) -> bool:
    """Check whether the other function gives the results of the candidate, on its examples and on other calls."""
    calls = [known.values for known in mine]
    more = [tuple(map(_sent, call.values())) for call in _others(own, other, draft) if len(call) == len(_kinds(own))]
    theirs = await _results(other, [*calls, *more], *_ground(draft), bench)
    if not all(_is(outcome, known.result) for outcome, known in zip(theirs, mine, strict=False)):
        return False
    ours = await _results(own, more, *_ground(draft), bench)
    return all(_are_same(*pair) for pair in zip(ours, theirs[len(calls) :], strict=True))


def _others(own: Function, other: Function, draft: Draft) -> list[Arguments]:
    """Return calls that no example has: of the examples' values, generated, and with the texts in the code of both."""
    calls = shown([example.call for example in own.examples], own.name, own.parameters)
    more = [arguments for arguments, _name in recombined(calls, own.parameters)]
    more += islice(edge_calls(own.parameters, calls), _OTHERS)
    trees = (draft.tree, parse(draft.snapshot.modules[other.module].text))
    written = {value for tree in trees if isinstance(tree, ast.Module) for value in _texts(tree)}
    names = [name for name, value in calls[0].items() if isinstance(value, str)] if calls else []
    return more + [calls[0] | {name: text} for name in names for text in sorted(written)[:_TEXTS]]


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _LONGEST:
            yield node.value


def _are_same(first: Outcome | None, second: Outcome | None) -> bool:
    if any(outcome is None or isinstance(outcome, Refused | TimedOut) for outcome in (first, second)):
        return True  # the hints of one exclude the call, or it was too slow: that says nothing about what they compute
    if isinstance(first, Returned) and isinstance(second, Returned):
        return same(first.value, second.value, is_float=True)
    return isinstance(first, Raised) and isinstance(second, Raised)


def _finding(draft: Draft, existing: Function) -> Finding:
    name = draft.candidate.name
    message = f"`{name}` gives the same results as a function that is there, on the examples of both and on other calls"
    line = draft.function.lineno if draft.function else 0
    evidence = tuple(
        Evidence(call=example.call, returned=example.expected.strip(), expected=example.expected.strip())
        for example in existing.examples[:_EXAMPLES]
    )
    fix = fix_of_copy(draft, existing)
    return Finding("rewrite", f"{message}: {shown_function(existing)}", fix, line, evidence=evidence)

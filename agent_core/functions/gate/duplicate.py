"""The stage "duplicate": checks whether the function already exists, with another name or other wording.

A function with the same normal form is a copy, and a function that search confuses with another is reported. Once the
candidate runs, it is also compared with a few functions that take the same kinds of arguments and that its description
finds: a rewrite gives the same results, on the examples of both and on other calls. The author can override this: the
reason of a candidate, or the docstring of a function in a file, names the function that it differs from.
"""

import ast
import asyncio
import re
import time as clock
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import UUID

from agent_core.base.offload import aside
from agent_core.base.problem import Evidence
from agent_core.base.untrusted import one_line
from agent_core.registry.function import first_sentence
from sandbox import Attempt, Attempts, Outcome, Raised, Refused, Returned, TimedOut

from ..search import describe_difference, mistaken
from .call_arguments import Arguments, Value, edge_calls, read_calls, read_cases, recombine
from .clones import sketch
from .draft import Draft, Finding, TrialSubject
from .examples import literal_value, same
from .mutation import literal_mutants
from .tree import constants, function_in, parse
from .trial import EACH_S

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from sandbox.code import Modules

    from ..search import FunctionSearch
    from .trial import TrialTools

STAGE = "duplicate"
_WORD: Final = re.compile(r"\w+")
_REQUEST = 120
_SEARCH_S = 5.0  # the first search of a process indexes all functions
SMALL = 15  # words of a form; below it, the types are part of the meaning
_FOUND: Final = 200  # functions that a description finds
_MOST, _EXAMPLES, _LEAST = (
    8,
    4,
    2,
)  # functions compared by running, examples of each, and the minimum of examples
_OTHERS, _LITERALS, _LONGEST = (
    40,
    24,
    200,
)  # generated calls, literals of the code, and characters of a text
_BASES, _KEYS = 2, 8  # calls, and entries of an object, that the literals are put into
_FEW_VARIED, _MANY_VARIED = (
    50,
    1_000,
)  # variants of a call, for a candidate that waits and for a strict comparison
_STRICT_S, _AT_ONCE = 30.0, 32
_MOST_CHANGED = 100  # literals of which each is changed

Sameness: TypeAlias = Literal["same", "different", "other arguments", "unknown"]
"""The result of a comparison of two functions."""


async def duplicate(draft: Draft, trial: "TrialTools") -> Draft:
    """Return the draft with a finding about the function that it repeats, if any."""
    name = draft.candidate.name
    if draft.function is None:
        return draft.skip("there is no function to compare")
    if all(other == name or other in draft.apart for other in draft.snapshot.functions):
        return replace(draft, note="there is no other function yet")
    around = draft.around.text if draft.around else ""
    digest, size = await aside(draft.size, sketch, name, draft.text, around)
    pending = await trial.alike.see(draft.snapshot, draft.rules.duplicate_s)
    after = _check_copies(draft, trial.alike.copies(digest), is_small=size < SMALL)
    late = f"{pending} functions not reached: time was up" if pending else ""
    after = replace(after, note="; ".join(filter(None, [late, after.note])), late=pending > 0)
    if trial.finder is None or draft.policy == "import" or after.shows("copy", "near-copy"):
        return after
    return await _check_search(after, trial.finder)


async def _check_search(draft: Draft, search: "FunctionSearch") -> Draft:
    """Return the draft with the functions that its description finds, as far as time allows.

    A finding is added if the description finds another function first.
    """
    own, name = draft.own_function, draft.candidate.name
    if own is None or (draft.candidate.file and name not in draft.snapshot.functions):
        return draft
    functions = draft.snapshot.functions
    if (
        not draft.candidate.file
    ):  # not in its module yet: index it without one, and again once it is admitted
        functions = {**functions, name: replace(own, module="")}
    snapshot = replace(draft.snapshot, functions=functions)
    try:
        async with asyncio.timeout(_SEARCH_S):
            pair = await mistaken(search.index, snapshot, name)
            found = await search.index.rank(own.description, snapshot, _FOUND, by_text=True)
    except TimeoutError:
        return draft
    draft = replace(draft, likely=tuple(ranked.name for ranked in found))
    if pair is None or is_apart(draft, pair.other if pair.name == name else pair.name):
        return draft
    asked, other = functions[pair.name], functions[pair.other]
    # Quote only descriptions: a served request belongs to some agent, and everyone reads a verdict.
    is_own = pair.request == first_sentence(asked.description)
    what = (
        f"“{one_line(pair.request, _REQUEST)}”"
        if is_own
        else f"a request that `{asked.name}` has served"
    )
    message = f"{what} finds `{other.name}` before `{asked.name}`: {function_line(other)}"
    facts = (Evidence(function_line(asked)), Evidence(function_line(other)))
    fix = f"of `{asked.name}`, {describe_difference(asked, other)}"
    return draft.with_findings(STAGE, [_finding("confusable", message, fix, draft, facts)])


def _check_copies(draft: Draft, copies: Sequence[str], *, is_small: bool) -> Draft:
    name, functions = draft.candidate.name, draft.snapshot.functions
    copies = [copy for copy in copies if copy not in draft.apart]
    if name in copies and not draft.candidate.file:
        return replace(draft, note="it computes the same as before")
    copies = [copy for copy in copies if copy != name]
    words = _words_of_difference(draft)  # read once: a file may have thousands of copies
    if told := next((copy for copy in copies if copy in words), ""):
        return replace(draft, note=f"said to differ from `{told}`")
    if not copies:
        return replace(draft, note="no function computes the same")
    fitting = copies[
        0
    ]  # the first that accepts everything that the new one accepts, judged by their schemas
    if draft.own_function is not None:
        mine = draft.own_function.parameters.get("properties", {}).values()
        fitting = next(
            (copy for copy in copies if _fits(functions[copy], mine, is_small=is_small)), ""
        )
    existing = functions[fitting or copies[0]]
    code, evidence = "copy" if fitting else "near-copy", (Evidence(function_line(existing)),)
    message = f"`{name}` computes the same as a function that is there: {function_line(existing)}"
    fix = fix_of_copy(draft, existing)
    if not fitting:
        message = (
            f"`{name}` computes the same as {function_line(existing)}, for arguments of other types"
        )
        fix = (
            f"one function can serve both: give `{existing.name}` the wider type with edit_function"
        )
    return draft.with_findings(STAGE, [_finding(code, message, fix, draft, evidence)])


def _fits(
    function: "Function", arguments: Collection[dict[str, Any]], *, is_small: bool
) -> bool:  # Any: JSON Schema
    own = function.parameters.get("properties", {}).values()
    return all(
        _takes(wide, narrow, is_small=is_small)
        for wide, narrow in zip(own, arguments, strict=False)
    )


def _finding(
    code: str, message: str, fix: str, draft: Draft, evidence: tuple[Evidence, ...] = ()
) -> Finding:
    return Finding(code, message, fix, draft.line, evidence=evidence)


def fix_of_copy(draft: Draft, existing_function: "Function") -> str:
    """Return the fix for a function that already exists."""
    place = "its docstring" if draft.candidate.file else "`reason`"
    return (
        f"call `{existing_function.name}` instead, or say in {place} how yours differs "
        f"from `{existing_function.name}`"
    )


def function_line(function: "Function") -> str:
    """Return a function as one line: signature, place and first sentence."""
    properties = function.parameters.get("properties", {})
    typed = [f"{name}: {_kind(schema) or 'any'}" for name, schema in properties.items()]
    returns = f" -> {function.returns}" if function.returns else ""
    first = function.description.strip().partition("\n")[0]
    return f"`{function.name}({', '.join(typed)}){returns}` ({function.path}:{function.line})" + (
        f": {first}" if first else ""
    )


def is_apart(draft: Draft, name: str) -> bool:
    """Check whether a candidate says how it differs from a function, or is exempt from comparison with it."""
    return name in draft.apart or name in _words_of_difference(draft)


def _words_of_difference(draft: Draft) -> Collection[str]:
    """Return all words in which a candidate may say how it differs from functions."""
    docstring = (
        ast.get_docstring(draft.function, clean=False)
        if draft.function and draft.candidate.file
        else None
    )
    return {*_WORD.findall(f"{draft.candidate.reason} {docstring or ''}")}


def _takes(
    wide: dict[str, Any], narrow: dict[str, Any], *, is_small: bool
) -> bool:  # Any: JSON Schema
    wide_kind, narrow_kind = _kind(wide), _kind(narrow)
    if wide_kind and not narrow_kind:
        return not is_small
    if wide_kind and wide_kind != narrow_kind:
        return (wide_kind, narrow_kind) == ("number", "integer")
    inside, within = wide.get("items"), narrow.get("items")
    return not (isinstance(inside, dict) and isinstance(within, dict)) or _takes(
        inside, within, is_small=is_small
    )


def _kind(schema: dict[str, Any]) -> str:  # Any: JSON Schema
    kind = schema.get("type")
    return kind if isinstance(kind, str) else ""


async def check_rewrite(draft: Draft, subject: TrialSubject, trial: "TrialTools") -> Draft:
    """Return the draft with a finding about the workspace function that it rewrites, if any."""
    own, modules, wall_s = subject.function, subject.snapshot.modules, draft.rules.fitted_s
    if own.takes_self or draft.shows("copy") or draft.candidate.replaces:
        return draft
    mine = _literal_examples(own)
    # A few functions with the same kinds of arguments, among those that the description finds if searched.
    kinds, functions = _kinds(own), draft.snapshot.functions
    named = (
        functions[name]
        for name in draft.likely or functions
        if name in functions and name != own.name
    )
    alike = (function for function in named if not function.takes_self and function.examples)
    fitting = (
        function
        for function in alike
        if _kinds(function) == kinds and not is_apart(draft, function.name)
    )
    few = islice(fitting, _MOST if kinds else 0)
    others = {
        function: known for function in few if len(known := _literal_examples(function)) >= _LEAST
    }
    if len(mine) < _LEAST or not others:
        return draft
    calls = [(function, *known) for function, all_known in others.items() for known in all_known]
    given = await _results(own, [values for _, values, _ in calls], modules, wall_s, trial)
    wrong = {
        function
        for (function, _, result), outcome in zip(calls, given, strict=True)
        if not _is(outcome, result)
    }
    for existing in (function for function in others if function not in wrong):
        trees = [draft.tree, parse(draft.snapshot.modules[existing.module].text)]
        more = [tuple(map(_as_sent, call.values())) for call in _others(own, trees, _FEW_VARIED)]
        theirs = await _results(
            existing, [*(values for values, _ in mine), *more], modules, wall_s, trial
        )
        ours = await _results(own, more, modules, wall_s, trial)
        if (
            all(map(_is, theirs, (result for _, result in mine)))
            and _same_results(ours, theirs[len(mine) :]) == "same"
        ):
            name = draft.candidate.name
            message = f"`{name}` gives the same results as a function that is there, on the examples of both and"
            message = f"{message} on other calls: {function_line(existing)}"
            shown_results = (
                (example.call, example.expected.strip())
                for example in existing.examples[:_EXAMPLES]
            )
            evidence = tuple(Evidence("", call, result, result) for call, result in shown_results)
            finding = _finding("rewrite", message, fix_of_copy(draft, existing), draft, evidence)
            return draft.with_findings(STAGE, [finding])
    return draft


async def compare_functions(  # noqa: PLR0913 - what may differ from the examples of both
    first_function: "Function",
    second_function: "Function",
    modules: "Modules",
    wall_s: float,
    trial: "TrialTools",
    *,
    is_strict: bool = False,
    more: tuple[object, ...] = (),
    fixed_in: "Modules | None" = None,
) -> Sameness:
    """Return whether two functions give the same results on the examples of both.

    If it `is_strict`, other calls are compared as well, with the literals in their code and adjacent numbers, and a
    literal that only one of them has must make a difference in one of the calls: otherwise they prove nothing about it.
    The second function gets `more` arguments at the end; its own examples are then left out. With `fixed_in`, the
    second is the first one as fixed in these modules, and calls in which the first does not return are ignored.
    """
    if first_function.takes_self or second_function.takes_self:
        return "unknown"
    kinds, later_kinds = _kinds(first_function), _kinds(second_function)
    if not kinds or kinds != later_kinds[: len(later_kinds) - len(more)]:
        return "other arguments"
    both = (first_function,) if more else (first_function, second_function)
    calls: list[tuple[object, ...]] = []
    for function in both:
        names = [*function.parameters["properties"]]
        for arguments in read_calls(
            [example.call for example in function.examples[:_EXAMPLES]], function
        ):
            is_usable = len(arguments) == len(kinds) or not more
            if is_usable and [*arguments] == names[: len(arguments)]:  # none in between is left out
                calls.append(tuple(map(_as_sent, arguments.values())))
    if not calls:
        return "unknown"
    texts = (first_function, modules), (second_function, fixed_in or modules)
    trees: list[ast.AST | None] = []
    if is_strict:
        wall_s = _STRICT_S
        trees += [
            function_in(sources[function.module].text, function.name) for function, sources in texts
        ]
        others = [call for function in both for call in _others(function, trees, _MANY_VARIED)]
        calls += [tuple(map(_as_sent, call.values())) for call in others]
    ours = await _results(first_function, calls, modules, wall_s, trial)
    later_calls = [(*call, *more) for call in calls]
    theirs = await _results(second_function, later_calls, fixed_in or modules, wall_s, trial)
    if is_strict and None in (*ours, *theirs):  # time was up
        return "unknown"
    compared = tuple(one if isinstance(one, Returned) or not fixed_in else None for one in ours)
    sameness = _same_results(compared, theirs, is_strict=is_strict)
    if sameness == "same" and is_strict and not fixed_in:
        mine, yours = (
            {repr(value) for value in constants(tree)} if tree else set() for tree in trees
        )
        is_proven = not (
            await _has_unnoticed(mine - yours, first_function, calls, ours, modules, trial)
            or await _has_unnoticed(
                yours - mine, second_function, later_calls, theirs, modules, trial
            )
        )
        return "same" if is_proven else "unknown"
    return sameness


async def _has_unnoticed(
    literals: Collection[str],
    function: "Function",
    calls: Sequence[tuple[object, ...]],
    outcomes: Sequence[Outcome | None],
    modules: "Modules",
    trial: "TrialTools",
) -> bool:
    """Return whether a change of one of these literals makes no difference in any of the calls, or may make none."""
    text = modules[function.module].text
    changed = islice(literal_mutants(text, function.name, literals), _MOST_CHANGED + 1)
    unnoticed: list[str] = await aside(len(text), list, changed)
    if len(unnoticed) > _MOST_CHANGED:
        return True  # too many to try
    named, at, until = _by_name(function, calls), 0, clock.monotonic() + _STRICT_S
    while unnoticed and at < len(calls):
        few, own = named[at : at + _AT_ONCE], outcomes[at : at + _AT_ONCE]
        work = Attempts(
            function.name, [Attempt(call, text) for text in unnoticed for call in few], EACH_S
        )
        tried = await trial.attempt(function, modules, work, max(0.0, until - clock.monotonic()))
        rows = [tried[start : start + len(few)] for start in range(0, len(tried), len(few))]
        unnoticed = [
            text
            for text, row in zip(unnoticed, rows, strict=True)
            if not any(isinstance(outcome, TimedOut) for outcome in row)
            and _same_results(own, row, is_strict=True) != "different"
        ]
        at += _AT_ONCE
    return bool(unnoticed)


def _same_results(
    first: Sequence[Outcome | None], second: Sequence[Outcome | None], *, is_strict: bool = False
) -> Sameness:
    """Return whether two functions ended alike, if it `is_strict` with errors of the same type.

    A call that one of them refused or had no time for is ignored.
    """
    returned = 0
    for one, other in zip(first, second, strict=True):
        if any(
            outcome is None or isinstance(outcome, Refused | TimedOut) for outcome in (one, other)
        ):
            continue
        if (
            isinstance(one, Returned)
            and isinstance(other, Returned)
            and same(one.value, other.value, is_float=True)
        ):
            returned += 1
        elif not (isinstance(one, Raised) and isinstance(other, Raised)) or (
            is_strict and one.failure.type != other.failure.type
        ):
            return "different"
    return "same" if returned >= _LEAST else "unknown"


def _kinds(function: "Function") -> list[str]:
    """Return the kinds of its arguments, treating integers as numbers."""
    kinds = [_kind(schema) for schema in function.parameters["properties"].values()]
    return ["number" if kind == "integer" else kind for kind in kinds]


def _literal_examples(function: "Function") -> list[tuple[tuple[object, ...], object]]:
    """Return the examples with literal positional arguments and results; empty if all results are equal."""
    examples = [
        (example.call, literal_value(example.expected)) for example in function.examples[:_EXAMPLES]
    ]
    cases = read_cases(
        ((call, result) for call, result in examples if type(result) is not object), function
    )
    known = [(tuple(map(_as_sent, arguments.values())), result) for arguments, result in cases]
    return known if len({repr(result) for _, result in known}) > 1 else []


def _as_sent(value: object) -> object:
    """Return a value as a model sends it: one function may accept a date, another its text."""
    match value:
        case date() | time():
            return value.isoformat()
        case Decimal() | UUID() | PurePath():
            return str(value)
        case list():
            return [_as_sent(item) for item in value]
        case _:
            return value


async def _results(
    function: "Function",
    calls: Sequence[tuple[object, ...]],
    modules: "Modules",
    wall_s: float,
    trial: "TrialTools",
) -> tuple[Outcome | None, ...]:
    return await trial.call_all(function, modules, _by_name(function, calls), wall_s)


def _by_name(function: "Function", calls: Sequence[tuple[object, ...]]) -> list[Arguments]:
    names = list(function.parameters["properties"])
    return [dict(zip(names, values, strict=False)) for values in calls]


def _is(outcome: Outcome | None, result: object) -> bool:
    return isinstance(outcome, Returned) and same(result, outcome.value, is_float=True)


def _others(function: "Function", trees: Sequence[object], most_varied: int) -> list[Arguments]:
    """Return calls that no example has: recombined and generated values, and those with literals of these trees."""
    calls = read_calls([example.call for example in function.examples], function)
    more = recombine(calls, function.parameters)
    more += islice(edge_calls(function.parameters, calls), _OTHERS)
    every = [value for tree in trees if isinstance(tree, ast.AST) for value in constants(tree)]
    texts = {value for value in every if isinstance(value, str) and len(value) <= _LONGEST}
    numbers = {value for value in every if type(value) is float}
    numbers |= {
        sign * (value + step)
        for value in every
        if type(value) is int
        for step in (-1, 0, 1)
        for sign in (1, -1)
    }
    literals: list[str | float] = [
        *sorted(texts)[:_LITERALS],
        *sorted(numbers, key=abs)[: 2 * _LITERALS],
    ]
    for call in calls[:_BASES]:
        varied = (
            call | {name: new} for name, value in call.items() for new in _varied(value, literals)
        )
        more += islice(varied, most_varied)
    return [call for call in more if len(call) == len(_kinds(function))]


def _varied(value: Value, literals: Sequence[str | float]) -> Iterator[Value]:
    """Yield a value with one of its texts and numbers replaced by a literal, or with as many parts as one says.

    A text is also written with other blanks and letters.
    """
    if isinstance(value, str | list) and value:
        sizes = (size for size in literals if isinstance(size, int) and 0 < size <= _LONGEST)
        yield from ((value * size)[:size] for size in sizes)
    match value:
        case bool():
            pass
        case int() | str():
            yield from (new for new in literals if type(new) is type(value))
            if isinstance(value, str):
                yield from (
                    value.swapcase(),
                    value.capitalize(),
                    f" {value} ",
                    value.replace(" ", "  "),
                )
        case float():
            yield from (float(new) for new in literals if not isinstance(new, str))
        case list() if value:
            for at in sorted({0, len(value) // 2, len(value) - 1}):
                yield from (
                    [*value[:at], new, *value[at + 1 :]] for new in _varied(value[at], literals)
                )
            yield from ([new] for new in _varied(value[0], literals))
        case dict():
            for key in [*value][:_KEYS]:
                yield from (value | {key: new} for new in _varied(value[key], literals))

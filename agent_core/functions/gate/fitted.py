"""The stage "fitted": detects tables and branches that only serve a function's own examples, in its tree and by runs.

A *selector* is a constant that an argument is compared with or looked up by. A function is hard-coded if its examples
depend on selectors, and calls with other combinations of the examples' values all get the same answer. A table with
more entries than the examples, or with keys that a type lists (`Literal`, `Enum`), is legitimate.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core.base.problem import Evidence
from sandbox import Outcome, Raised, Returned

from .call_arguments import Arguments, read_cases, recombine, write_call
from .draft import NOT_IMPORTED, NOTHING_YET, Draft, Finding
from .duplicate import check_rewrite
from .substance import HOLLOW
from .tree import literal, nodes_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function

    from .trial import TrialTools

STAGE: Final = "fitted"
_MOST = 40  # calls
_LEAST = 5  # calls that ended; fewer prove nothing
_SHOWN = 3  # calls shown as evidence
_MORE = 2  # selectors beyond the examples; from here on it is a legitimate table
_FIX = "compute the result from the arguments; a table must cover what is promised"

Form: TypeAlias = Any  # a value, normalized for comparison
Case: TypeAlias = tuple[Arguments, Any]  # the arguments of an example, and the returned value


async def check_fitted(draft: Draft, trial: "TrialTools") -> Draft:
    """Return the draft with evidence that it only answers its own examples, or rewrites an existing function."""
    own = draft.loaded
    if own is None:
        return draft.skip(NOT_IMPORTED)
    if draft.shows(*HOLLOW):
        return draft.skip(NOTHING_YET)
    draft = await check_rewrite(draft, own, trial)
    # Exclude the calls that the gate asked for.
    agreed = [
        (call, value) for call, value in draft.trials.values if call not in draft.candidate.asked
    ]
    cases, constants = read_cases(agreed, own.function), selectors(own.tree)
    if (
        len(cases) < _MORE
        or draft.trials.disagreements
        or not any(links(given, constants) for given, _value in cases)
    ):
        return replace(draft, note="its examples hang on no constant of its code")
    examples = [arguments for arguments, _value in cases]
    made = recombine(examples, own.function.parameters)
    apart, linked = [
        [call for call in made if bool(links(call, constants)) is is_linked]
        for is_linked in (False, True)
    ]
    calls = [*apart[:_MOST], *linked[:_MOST]]
    outcomes = await trial.call_all(
        own.function, own.modules, calls, draft.rules.fitted_s, is_patient=True
    )
    finding = _judge(draft, own.function, cases, constants, [*zip(calls, outcomes, strict=True)])
    return replace(
        draft.with_findings(STAGE, [finding] if finding else []),
        note=f"{len(calls)} other calls compared",
    )


def _judge(
    draft: Draft,
    function: "Function",
    cases: Sequence[Case],
    constants: frozenset[Form],
    calls: Sequence[tuple[Arguments, Outcome | None]],
) -> Finding | None:
    """Return a finding if calls without the examples' constants all get one answer, and others an example's."""
    ended = [
        (call, _answer(call, outcome.value))
        for call, outcome in calls
        if isinstance(outcome, Returned)
    ]
    ended += [(call, "an error") for call, outcome in calls if isinstance(outcome, Raised)]
    answers = [answer for call, answer in ended if not links(call, constants)]
    known = {*answers, *(_answer(*case) for case in cases)}
    if (
        len(answers) < _LEAST
        or len(set(answers)) > 1
        or any(answer not in known for _call, answer in ended)
    ):
        return None
    special = [case for case in cases if _answer(*case) != answers[0]]
    tied = [case for case in special if links(case[0], constants)]
    # The arguments of the examples, their items, and their rows.
    values = [
        value
        for arguments, _value in cases
        for value in (*arguments.values(), tuple(arguments.values()))
    ]
    items = [item for value in values if isinstance(value, list | tuple) for item in value]
    seen = {*map(form, [*values, *items])}
    more = [
        key for key in constants - seen - _PLAIN if not (isinstance(key, tuple) and seen & {*key})
    ]
    named = {link for arguments, _value in cases for link in links(arguments, constants)}
    is_table = named <= {*_enumerated_values(function.parameters)} or len(more) >= _MORE
    if not special or len(tied) < len(special) or is_table:
        return None
    name, line = function.name, draft.line
    results = {_answer(*case) for case in special if not isinstance(case[1], bool)}
    first = write_call(function, calls[0][0])
    message = f"gives every other call one answer (`{first}`: {answers[0]}), and its code names the examples'"
    others = [(call, answer) for call, answer in ended if not links(call, constants)]
    evidence = tuple(
        Evidence(call=write_call(function, call), returned=answer)
        for call, answer in others[:_SHOWN]
    )
    if len(results) > 1:
        arguments = {
            value
            for given, _value in tied
            for value in given.values()
            if isinstance(value, str | int)
        }
        keys = sorted(repr(value) for value in arguments if form(value) in constants - _PLAIN)
        fix = _FIX + (
            f", or let the type list its keys: `Literal[{', '.join(keys)}]`" if keys else ""
        )
        return Finding("hard-coded", f"`{name}` {message} arguments", fix, line, evidence=evidence)
    fix = "add an example with arguments that the code does not name"
    return Finding("doubt-examples", f"`{name}` {message}", fix, line, evidence=evidence)


def _answer(arguments: Arguments, value: Any) -> str:  # Any: a value that crossed
    """Return a result as text, or that it is one of the arguments unchanged."""
    is_echo = any(type(value) is type(given) and value == given for given in arguments.values())
    return "its argument" if is_echo else repr(value)[:200]


def _enumerated_values(schema: Any) -> Iterator[Form]:  # Any: JSON Schema
    """Yield the values that a schema enumerates for a `Literal` or an `Enum`, at any depth."""
    match schema:
        case dict():
            yield from map(form, schema["enum"] if isinstance(schema.get("enum"), list) else ())
            yield from (form(value) for key, value in schema.items() if key == "const")
            yield from (value for part in schema.values() for value in _enumerated_values(part))
        case list():
            yield from (value for part in schema for value in _enumerated_values(part))


def links(arguments: Arguments, constants: frozenset[Form]) -> frozenset[Form]:
    """Return the constants of the code that equal a call's arguments, alone, together, or as items."""
    values = [*arguments.values()]
    values += [item for value in values if isinstance(value, list | tuple) for item in value[:8]]
    values += [tuple(arguments.values())] if len(arguments) > 1 else []
    return frozenset(map(form, values)) & constants - _PLAIN


def form(value: Any) -> Form:  # Any: a literal
    """Return a value normalized for comparison: without case and whitespace, and with lists equal to tuples."""
    match value:
        case bool() | None:
            return (type(value).__name__, value)
        case str():
            return "".join(value.split()).casefold()
        case int() | float():
            return float(value) if abs(value) < 1e300 else repr(value)[:40]
        case list() | tuple():
            return ("row", *map(form, value))
        case _:
            return repr(value)


_PLAIN: Final[frozenset[Form]] = frozenset({"", 0.0, 1.0, -1.0, *map(form, (None, True, False))})
"""Constants that are common in any code, such as start and end values."""


def selectors(tree: ast.Module) -> frozenset[Form]:
    """Return the constants that arguments are compared with or looked up by."""
    return frozenset(form(value) for node in nodes_of(tree) for value in _selecting_values(node))


def _selecting_values(node: ast.AST) -> Iterator[Any]:  # Any: literals
    match node:
        case ast.Compare(left=subject, ops=operators, comparators=operands):
            for operator, operand in zip(operators, operands, strict=True):
                if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
                    yield from (*_value(subject), *_value(operand))
                elif isinstance(operator, ast.In | ast.NotIn):
                    rows = [
                        row
                        for row in _value(operand)
                        if isinstance(row, Iterable) and not isinstance(row, str)
                    ]
                    yield from (member for row in rows for member in row)
        case ast.MatchValue(value=value):
            yield from _value(value)
        case ast.MatchSequence(patterns=patterns):
            yield [
                value
                for part in patterns
                if isinstance(part, ast.MatchValue)
                for value in _value(part.value)
            ]
        case ast.Dict(keys=keys, values=values) if all(
            literal(value)[0] or isinstance(value, ast.Lambda) for value in values
        ):
            yield from (value for key in keys if key is not None for value in _value(key))
        case ast.Assign(targets=[ast.Subscript(slice=key)], value=value) if literal(value)[
            0
        ] or isinstance(value, ast.Lambda):
            yield from _value(key)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            yield from (
                keyword.arg for keyword in keywords if keyword.arg and literal(keyword.value)[0]
            )
        case ast.List(elts=rows) | ast.Tuple(elts=rows) if rows and all(
            isinstance(row, ast.Tuple | ast.List) for row in rows
        ):
            for row in rows:
                yield from (
                    *_value(row),
                    *(value for cell in row.elts[:1] for value in _value(cell)),  # type: ignore[attr-defined]
                )


def _value(node: ast.expr) -> list[Any]:
    is_literal, value = literal(node)
    return [value] if is_literal and value is not None and not isinstance(value, bool) else []

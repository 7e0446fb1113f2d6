"""What everybody knows: results of calls of well-known tasks, against those of a function that is named for one.

Pure; the tasks with their calls are data, in `known_tasks.toml`. A body for the easy cases gets some of them wrong, and
a function that means something else by its name does, too: who disagrees is asked, and never refused.
"""

import ast
import datetime
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile
from typing import Any, TypeAlias

from sandbox import Raised, Returned
from sandbox.wire.claimed_collections import Members
from sandbox.wire.lines import bare_lines

from ..arguments.generation import Arguments
from ..arguments.schema_fit import fits
from .answers import Bag, plain
from .case import Case, Suspicion
from .claims import OF
from .lexicon import lemma, lists_in
from .relations import suspicion
from .similarity import is_written_alike

_TABLE_ENDS = frozenset({"KeyError", "IndexError"})
_CLOSE = 1e-2
_SHORT = 2  # letters of a symbol or a unit, in which capitals matter
_YEARS = range(1600, 2200)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]*|\d+")


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call's arguments, in their order, and the results that are right."""

    arguments: tuple[Any, ...]  # Any: literals
    results: tuple[Any, ...]


_Words: TypeAlias = dict[str, frozenset[str]]
_Tasks: TypeAlias = dict[tuple[str, ...], list[str]]


@lru_cache(maxsize=1)
def _book() -> tuple[_Words, _Tasks]:
    """Return the word lists, and the calls of each task as they stand in the file, by the words of its names."""
    data = lists_in("known_tasks.toml")
    tasks: _Tasks = {}
    for lines in data["tasks"].values():
        for line in bare_lines(lines):
            names, _, calls = line.partition(": ")
            for name in names.split(" | "):
                tasks.setdefault(tuple(map(lemma, name.split())), []).append(calls)
    return {key: frozenset(text.split()) for key, text in data["words"].items()}, tasks


def _read(row: str) -> KnownCall:
    arguments, _, results = row.partition(" -> ")
    return KnownCall(
        ast.literal_eval(f"({arguments},)"), tuple(ast.literal_eval(result) for result in results.split(" | "))
    )


def _calls_of(function_name: str, sentence: tuple[str, ...]) -> list[KnownCall]:
    """Return the calls of the task that a function is named for, or that its sentence names: `Find the median`."""
    phrase = [*takewhile(lambda word: word not in OF, sentence)]
    named = [word.lower() for word in _WORDS.findall(function_name)]
    return _calls_named(named) or (_calls_named(phrase) if len(phrase) > 1 else [])


def _calls_named(named: list[str]) -> list[KnownCall]:
    """Return the calls of a task by its name in words; the results of one call are put together."""
    words_of, tasks = _book()
    if "2" in named[1:-1]:  # celsius2fahrenheit
        named.remove("2")
    words = [lemma(word) for word in named if not {word, lemma(word)} & words_of["small"]]
    in_short = [word for word in words if word not in words_of["loose"]]
    names = [
        name for kept in (words, in_short) for name in (kept, [word for word in kept if word not in words_of["kinds"]])
    ]
    lines = next((lines for name in names if (lines := tasks.get(tuple(name)))), [])
    calls: dict[str, KnownCall] = {}
    for call in (_read(row) for line in lines for row in line.split(" ~ ")):
        known = calls.get(repr(call.arguments))
        calls[repr(call.arguments)] = replace(call, results=(*known.results, *call.results)) if known else call
    return [*calls.values()]


def known_calls(case: Case) -> list[tuple[Arguments, KnownCall]]:
    """Return the calls whose results are known, of the task that a function is named for."""
    schema, cases = case.function.parameters, case.memorization.cases if case.memorization else ()
    shown_calls = [shown.arguments for shown in cases]
    shown_results = [plain(shown.value) for shown in cases]
    parameters, least = [*schema["properties"]], max(1, len(schema["required"]))
    known = [
        call
        for call in _calls_of(case.function.name, case.promise.sentence)
        if least <= len(call.arguments) <= len(parameters)
    ]
    calls = []
    for call in known:
        others = {name: [shown[name] for shown in shown_calls if name in shown] for name in parameters}
        arguments = {
            name: _made_like(value, others[name]) for name, value in zip(parameters, call.arguments, strict=False)
        }
        if (
            all(_is_like(value, others[name]) for name, value in arguments.items())
            and (len(arguments) == 1 or all(_is_in_place(value, others[name]) for name, value in arguments.items()))
            and any(_is_like(result, shown_results) for result in call.results)
            and fits(arguments, schema, schema)
            and arguments not in shown_calls
        ):
            calls.append((arguments, call))
    return calls


def _made_like(value: Any, others: Sequence[Any]) -> Any:  # Any: literals, and values that crossed
    """Return a literal as the date, decimal or tuple that the others are."""
    match value, others[0] if others else None:
        case str(), datetime.date() | datetime.time() as other:
            with suppress(ValueError):
                return type(other).fromisoformat(value)
        case bool(), _:
            pass
        case int() | float(), Decimal():
            return Decimal(str(value))
        case list() | tuple(), list() | tuple() as other:
            return type(other)(_made_like(part, other) for part in value)
        case dict(), dict() as other:
            return {key: _made_like(part, [*other.values()]) for key, part in value.items()}
    return value


def _is_like(value: Any, others: Sequence[Any]) -> bool:  # Any: values that crossed
    """Check whether one of the others is of the type of a value, and so in turn what is in it."""
    return any(_is_like_one(value, other) for other in others)


def _is_in_place(value: Any, others: Sequence[Any]) -> bool:  # Any: values that crossed
    """Check whether a value is a year where the others are: the parts of a date come in several orders."""
    return not isinstance(value, int) or any((value in _YEARS) == (other in _YEARS) for other in others)


def _is_like_one(value: Any, other: Any) -> bool:  # Any: values that crossed
    if _kind(other) != _kind(value):
        return False
    match value, other:
        case str(), str():
            return not (value and other) or _reads(value, other)
        case dict(), dict() if value and other:
            return _is_like([*value], [[*other]]) and _is_like([*value.values()], [[*other.values()]])
        case list() | tuple() | set(), list() | tuple() if value and other:
            return all(_is_like(part, other) for part in value)
    return True


def _reads(text: str, other: str) -> bool:
    """Check whether two texts are written alike: with digits in both, in one form, and as short ones in one case."""
    if any(map(str.isdigit, text)) and any(map(str.isdigit, other)):
        return is_written_alike(text, other)
    is_short = len(text) <= _SHORT and len(other) <= _SHORT
    return _has_letters(text) == _has_letters(other) and (not is_short or text.isupper() == other.isupper())


def _kind(value: Any) -> type:  # Any: values that crossed
    kind = type(value)
    return float if kind is int else list if kind in (tuple, set, Bag, Members) else kind


def _letters(text: str) -> str:
    """Return the letters and digits: the marks and spaces between them are a matter of taste."""
    return "".join(filter(str.isalnum, text.casefold()))


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def judge_known_tasks(case: Case) -> Iterator[Suspicion]:
    """Judge the results of calls that are known by everybody."""
    results = {repr(call): known.results for call, known in known_calls(case)}
    odd = [
        (probe, plain(outcome.value) if isinstance(outcome, Returned) else None)
        for probe, outcome in case.behavior.outcomes
        if probe.kind == "known"
        and (
            (isinstance(outcome, Returned) and not _is_among(plain(outcome.value), results[repr(probe.arguments)]))
            or (isinstance(outcome, Raised) and outcome.failure.type in _TABLE_ENDS)
        )
    ]
    if odd:
        name, shown = case.function.name, ", ".join(map(repr, odd[0][0].arguments.values()))
        message = f"`{name}` gives other results than its name lets everybody expect, as for `{name}({shown})`"
        fix = "correct the code for such calls, or name the cases that it is for"
        yield suspicion(case, "doubt-results", message, fix, odd)


def _is_among(value: Any, results: Sequence[Any]) -> bool:  # Any: values that crossed
    is_comparable = value is None or any(_kind(value) == _kind(result) for result in results)
    return not is_comparable or any(_is_same(value, result) for result in results)


def _is_same(value: Any, result: Any) -> bool:  # Any: values that crossed
    if isinstance(value, bool) or isinstance(result, bool):
        return value is result
    if isinstance(value, int | float) and isinstance(result, int | float):
        return math.isclose(value, result, rel_tol=_CLOSE)
    if isinstance(value, str) and isinstance(result, str):
        return _letters(value) == _letters(result) if _has_letters(result) else value.split() == result.split()
    if isinstance(value, list | tuple) and isinstance(result, set | list | tuple):
        if isinstance(result, set) or isinstance(value, Bag):
            value, result = _in_order(value), _in_order(result)
        return len(value) == len(result) and all(map(_is_same, value, result))
    if isinstance(value, dict) and isinstance(result, dict):
        return value.keys() == result.keys() and all(_is_same(value[key], result[key]) for key in value)
    return bool(value == result)


def _in_order(value: Any) -> Any:  # Any: values that crossed
    """Return the members of a row, and of the rows in it, in one order; a set stands for rows in any order."""
    is_row = isinstance(value, list | tuple | set)
    return sorted(map(_in_order, value), key=repr) if is_row else value

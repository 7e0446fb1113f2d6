"""What everybody knows: results of calls of well-known tasks, against those of a function that is named for one.

Pure; the tasks with their calls are data, in `known_tasks.toml`. A body for the easy cases gets some of them wrong, and
a function that means something else by its name does, too: who disagrees is asked, and never refused.
"""

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sandbox import Raised, Returned

from ..arguments.generation import Arguments
from ..arguments.schema_fit import fits
from .answers import plain
from .case import Case, Suspicion
from .lexicon import lemma, lists_in
from .relations import suspicion
from .similarity import is_written_alike

_TABLE_ENDS = frozenset({"KeyError", "IndexError"})
_CLOSE = 1e-2


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call's arguments, in their order, and the results that are right."""

    arguments: tuple[Any, ...]  # Any: literals
    results: tuple[Any, ...]


@lru_cache(maxsize=1)
def _words() -> tuple[frozenset[str], frozenset[str]]:
    words = lists_in("known_tasks.toml")["words"]
    return frozenset(words["small"].split()), frozenset(words["kinds"].split())


@lru_cache(maxsize=1)
def _tasks() -> dict[tuple[str, ...], list[KnownCall]]:
    tasks: dict[tuple[str, ...], list[KnownCall]] = {}
    for section in lists_in("known_tasks.toml")["tasks"].values():
        for names, rows in section.items():
            calls = [_read(row) for row in rows]
            for name in names.split(" | "):
                tasks.setdefault(tuple(map(lemma, name.split())), []).extend(calls)
    return tasks


def _read(row: str) -> KnownCall:
    arguments, _, results = row.partition(" -> ")
    return KnownCall(
        ast.literal_eval(f"({arguments},)"), tuple(ast.literal_eval(result) for result in results.split(" | "))
    )


def known_calls(case: Case) -> list[tuple[Arguments, KnownCall]]:
    """Return the calls whose results are known, of the task that a function is named for."""
    small, kinds = _words()
    words = [lemma(word) for word in case.promise.name if word not in small and lemma(word) not in small]
    names = {tuple(words), tuple(word for word in words if word not in kinds)}
    schema, cases = case.function.parameters, case.memorization.cases if case.memorization else ()
    parameters = [*schema["properties"]][: max(1, len(schema["required"]))]
    known = [call for name in sorted(names) for call in _tasks().get(name, ())]
    calls = [(dict(zip(parameters, call.arguments, strict=True)), call) for call in known if _fits(call, parameters)]
    shown_calls = [shown.arguments for shown in cases]
    return [
        (arguments, call)
        for arguments, call in calls
        if fits(arguments, schema, schema)
        and arguments not in shown_calls
        and all(_is_like(value, [shown.get(name) for shown in shown_calls]) for name, value in arguments.items())
        and any(_is_like(result, [shown.value for shown in cases]) for result in call.results)
    ]


def _fits(call: KnownCall, parameters: Sequence[str]) -> bool:
    return len(call.arguments) == len(parameters)


def _is_like(value: Any, others: Sequence[Any]) -> bool:  # Any: values that crossed
    """Check whether one of the others is of the type of a value, and written alike if they are texts."""
    return any(
        _kind(other) == _kind(value) and (not isinstance(value, str) or not (value and other) or _reads(value, other))
        for other in others
    )


def _reads(text: str, other: str) -> bool:
    """Check whether two texts both have letters or none; with digits, whether they are of one form."""
    if any(map(str.isdigit, text)) and any(map(str.isdigit, other)):
        return is_written_alike(text, other)
    return _has_letters(text) == _has_letters(other)


def _kind(value: Any) -> type:  # Any: values that crossed
    kind = type(value)
    return float if kind is int else list if kind is tuple else kind


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
        message = f"`{case.function.name}` gives other results for some calls than its name lets everybody expect"
        fix = "cover what the name promises, or name the cases that it is for"
        yield suspicion(case, "doubt-examples", message, fix, odd)


def _is_among(value: Any, results: Sequence[Any]) -> bool:  # Any: values that crossed
    return any(_is_same(value, result) for result in results) or all(_kind(value) != _kind(one) for one in results)


def _is_same(value: Any, result: Any) -> bool:  # Any: values that crossed
    if isinstance(value, bool) or isinstance(result, bool):
        return value is result
    if isinstance(value, int | float) and isinstance(result, int | float):
        return math.isclose(value, result, rel_tol=_CLOSE)
    if isinstance(value, str) and isinstance(result, str):
        return _letters(value) == _letters(result) if _has_letters(result) else value.split() == result.split()
    if isinstance(value, list | tuple) and isinstance(result, list | tuple):
        return len(value) == len(result) and all(map(_is_same, value, result))
    return bool(value == result)

"""The amount that is tried: everything in a search (`make soak`), a part of it in the suite."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

T = TypeVar("T")
Case: TypeAlias = str | ParameterSet  # with an id of its own, as `pytest.param(…, id=…)` makes it

STEADY, SEARCHING = "steady", "searching"


def drawn(examples: int) -> int:
    """The number of a property's examples for the profile that runs: a fifth in the suite."""
    return examples if _is_searching() else max(examples // 5, 5)


def sampled(cases: Iterable[T], step: int, at: int = 0) -> Sequence[T]:
    """Each case where one searches; in the suite every `step`th, from a place that `at` moves."""
    cases = list(cases)
    return cases if _is_searching() else cases[at % step :: step] or cases[:1]


def crossed(cases: Iterable[Case], others: Sequence[Case]) -> Sequence[ParameterSet]:
    """Each case with each of the others where one searches; in the suite with one of them, each in its turn."""
    pairs = [
        (case, other)
        for at, case in enumerate(cases)
        for other in (others if _is_searching() else [others[at % len(others)]])
    ]
    return [pytest.param(*_values(case), *_values(other), id=f"{_id(case)}-{_id(other)}") for case, other in pairs]


def _values(case: Case) -> Sequence[object]:
    return [case] if isinstance(case, str) else case.values


def _id(case: Case) -> str:
    return case if isinstance(case, str) else str(case.id)


def _is_searching() -> bool:
    return settings.get_current_profile_name() == SEARCHING

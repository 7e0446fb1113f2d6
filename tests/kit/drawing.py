"""How many cases to run: all of them in a search (`make soak`), a sample in the suite."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

T = TypeVar("T")
Case: TypeAlias = str | ParameterSet  # `pytest.param(…, id=…)` carries its own id

STEADY, SEARCHING = "steady", "searching"


def drawn(examples: int) -> int:
    """Return the number of examples for a property under the active profile: a fifth in the suite."""
    return examples if is_searching() else max(examples // 5, 5)


def sampled(cases: Iterable[T], step: int, at: int = 0) -> Sequence[T]:
    """Return all cases in a search; in the suite every `step`th one, starting at `at`."""
    cases = list(cases)
    return cases if is_searching() else cases[at % step :: step] or cases[:1]


def crossed(cases: Iterable[Case], others: Sequence[Case]) -> Sequence[ParameterSet]:
    """Pair each case with every other one in a search; in the suite with one of the others, in rotation."""
    pairs = [
        (case, other)
        for at, case in enumerate(cases)
        for other in (others if is_searching() else [others[at % len(others)]])
    ]
    return [
        pytest.param(*_values(case), *_values(other), id=f"{_id(case)}-{_id(other)}")
        for case, other in pairs
    ]


def _values(case: Case) -> Sequence[object]:
    return [case] if isinstance(case, str) else case.values


def _id(case: Case) -> str:
    return case if isinstance(case, str) else str(case.id)


def is_searching() -> bool:
    return settings.get_current_profile_name() == SEARCHING

"""How much is tried: everything where one searches (`make soak`), a part of it in the suite."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

STEADY, SEARCHING = "steady", "searching"


def drawn(examples: int) -> int:
    """The number of a property's examples for the profile that runs: a fifth in the suite."""
    return examples if _is_searching() else max(examples // 5, 5)


def sampled(cases: Iterable[T], step: int, at: int = 0) -> Sequence[T]:
    """Each case where one searches; in the suite every `step`th, from a place that `at` moves."""
    cases = list(cases)
    return cases if _is_searching() else cases[at % step :: step] or cases[:1]


def _is_searching() -> bool:
    return settings.get_current_profile_name() == SEARCHING

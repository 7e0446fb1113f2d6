"""A function's standing at every boundary of the rules."""

from dataclasses import replace

import pytest

from agent_core.base.settings import StandingSettings
from agent_core.registry.standing import Standing, is_unused, standing, summed
from agent_core.storage import Stats

RULES = StandingSettings(trial_calls=2, trusted_calls=4, trusted_days=3, quarantine_failures=3, retire_days=10)
DAY = 86_400.0
NONE = Stats("f", "v", 0, 0, 0, 0, 0, 0.0, 0.0, 0.0)


def calls(holding: int = 0, days: float = 0, worst: int = 0) -> Stats:
    """Return the statistics of `holding` successes in a row, over `days` days, with `worst` failures in a row."""
    since, worked = (1000.0, 1000.0 + days * DAY) if holding else (None, None)
    return replace(NONE, calls=holding + worst, holding=holding, worst=worst, since=since, worked=worked)


@pytest.mark.parametrize(
    ("given", "stats", "now"),
    [
        pytest.param("draft", None, "draft", id="a draft nobody called"),
        pytest.param("trial", None, "trial", id="one on trial nobody called"),
        pytest.param("draft", calls(1), "draft", id="one return short of trial"),
        pytest.param("draft", calls(2), "trial", id="a draft that returned often enough"),
        pytest.param("trial", calls(3, 3), "trial", id="one return short of trust"),
        pytest.param("trial", calls(4, 2.99), "trial", id="a moment short of trust"),
        pytest.param("trial", calls(4, 3), "trusted", id="trusted"),
        pytest.param("draft", calls(4, 3), "trusted", id="a draft that earned trust"),
        pytest.param("trial", calls(0, worst=2), "trial", id="one failure short of quarantine"),
        pytest.param("trial", calls(0, worst=3), "quarantined", id="quarantined"),
        pytest.param("draft", calls(0, worst=3), "quarantined", id="a draft in quarantine"),
        pytest.param("trial", calls(9, 9, worst=3), "quarantined", id="only a human releases it"),
        pytest.param("trial", calls(4, 3, worst=2), "trusted", id="failures long made good"),
    ],
)
def test_standing_moves_by_recorded_calls_at_every_boundary(given: Standing, stats: Stats | None, now: str) -> None:
    assert standing(given, stats, RULES) == now


def test_a_rule_of_nought_failures_puts_nothing_in_quarantine() -> None:
    assert standing("trial", calls(worst=99), RULES.model_copy(update={"quarantine_failures": 0})) == "trial"


@pytest.mark.parametrize(
    ("joined", "called", "days", "unused"),
    [
        pytest.param(0, None, 9.99, False, id="joined not so long ago"),
        pytest.param(0, None, 10, True, id="never called since it joined"),
        pytest.param(0, 5, 14.99, False, id="called not so long ago"),
        pytest.param(0, 5, 15, True, id="not called for long"),
        pytest.param(8, 5, 15, False, id="a new version counts from its joining"),
    ],
)
def test_a_function_is_unused_so_many_days_after_its_last_call(
    joined: float, called: float | None, days: float, *, unused: bool
) -> None:
    at = None if called is None else called * DAY
    assert is_unused(joined * DAY, at, days * DAY, RULES) is unused
    assert not is_unused(0, None, 1e12, RULES.model_copy(update={"retire_days": 0}))


def test_versions_are_summed_and_a_row_is_that_of_the_one_called_last() -> None:
    old = replace(NONE, calls=5, failing=4, worst=4, holding=1, first_called=1.0, last_called=7.0, worked=2.0)
    new = replace(NONE, version="w", calls=2, failing=1, worst=1, holding=3, first_called=6.0, last_called=9.0)
    both = summed([new, old])
    assert both is not None
    assert (both.version, both.calls, both.failing, both.worst, both.holding) == ("w", 7, 1, 1, 3)
    assert (both.first_called, both.last_called, both.worked) == (1.0, 9.0, 2.0)
    assert summed([]) is None

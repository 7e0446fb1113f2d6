"""A function's standing at every boundary of the rules."""

from dataclasses import replace

from agent_core.base.settings import StandingSettings
from agent_core.functions.service.call_records import CallTotals
from agent_core.functions.service.function_facts import Standing, is_unused, standing
from agent_core.storage import Stats

RULES = StandingSettings(
    trial_calls=2, trusted_calls=4, trusted_days=3, quarantine_failures=3, retire_days=10
)
DAY = 86_400.0
NONE = Stats("f", "v", 0, 0, 0, 0, 0, 0.0, 0.0, 0.0)


def calls(holding: int = 0, days: float = 0, worst: int = 0) -> Stats:
    """Return the statistics of `holding` successes in a row, over `days` days, with `worst` failures in a row."""
    since, worked = (1000.0, 1000.0 + days * DAY) if holding else (None, None)
    return replace(
        NONE, calls=holding + worst, holding=holding, worst=worst, since=since, worked=worked
    )


def test_standing_moves_by_recorded_calls_at_every_boundary() -> None:
    cases: list[tuple[Standing, Stats | None, str]] = [
        ("draft", None, "draft"),  # a draft nobody called
        ("trial", None, "trial"),  # one on trial nobody called
        ("draft", calls(1), "draft"),  # one return short of trial
        ("draft", calls(2), "trial"),  # a draft that returned often enough
        ("trial", calls(3, 3), "trial"),  # one return short of trust
        ("trial", calls(4, 2.99), "trial"),  # a moment short of trust
        ("trial", calls(4, 3), "trusted"),  # trusted
        ("draft", calls(4, 3), "trusted"),  # a draft that earned trust
        ("trial", calls(0, worst=2), "trial"),  # one failure short of quarantine
        ("trial", calls(0, worst=3), "quarantined"),  # quarantined
        ("draft", calls(0, worst=3), "quarantined"),  # a draft in quarantine
        ("trial", calls(9, 9, worst=3), "quarantined"),  # only a human releases it
        ("trial", calls(4, 3, worst=2), "trusted"),  # failures long made good
    ]
    for given, stats, now in cases:
        assert standing(given, stats, RULES) == now, given


def test_a_rule_of_nought_failures_puts_nothing_in_quarantine() -> None:
    assert (
        standing("trial", calls(worst=99), RULES.model_copy(update={"quarantine_failures": 0}))
        == "trial"
    )


def test_a_function_is_unused_so_many_days_after_its_last_call() -> None:
    cases: list[tuple[float, float | None, float, bool]] = [
        (0, None, 9.99, False),  # joined not so long ago
        (0, None, 10, True),  # never called since it joined
        (0, 5, 14.99, False),  # called not so long ago
        (0, 5, 15, True),  # not called for long
        (8, 5, 15, False),  # a new version counts from its joining
    ]
    for joined, called, days, unused in cases:
        at = None if called is None else called * DAY
        assert is_unused(joined * DAY, at, days * DAY, RULES) is unused, joined
        assert not is_unused(0, None, 1e12, RULES.model_copy(update={"retire_days": 0})), joined


def test_versions_are_summed_and_runs_are_those_of_the_one_called_last() -> None:
    old = replace(
        NONE, calls=5, failing=4, worst=4, holding=1, first_called=1.0, last_called=7.0, worked=2.0
    )
    new = replace(
        NONE, version="w", calls=2, failing=1, worst=1, holding=3, first_called=6.0, last_called=9.0
    )
    both = CallTotals.of([new, old], [])
    assert (both.calls, both.failing, both.holding) == (7, 1, 3)
    assert (both.first_called, both.last_called, both.last_returned) == (1.0, 9.0, 2.0)
    assert CallTotals.of([], []) == CallTotals()

"""Limits are numbers from 0, 0 means 0, and a child's spending counts against all of its ancestors."""

import pytest

from agent_core.base.errors import ConfigError
from agent_core.base.limits import Allowance, SpendingLimits


@pytest.mark.parametrize(
    ("table", "part"),
    [
        pytest.param({"steps": -1}, "`steps` cannot be -1", id="below zero"),
        pytest.param({"tokens": "many"}, "`tokens` cannot be many", id="a text"),
        pytest.param({"cost": float("inf")}, "`cost` cannot be inf", id="without end"),
        pytest.param({"cost": float("nan")}, "`cost` cannot be nan", id="no number"),
        pytest.param({"steps": True}, "`steps` cannot be True", id="a truth value"),
        pytest.param({"hops": 2.5}, "`hops` cannot be 2.5", id="half a hop"),
        pytest.param({"step": 3}, "Did you mean `steps`?", id="a wrong name"),
        pytest.param({"where": "x"}, "`where` is not a limit", id="an inner name"),
        pytest.param([1], "limits are a table", id="a list"),
    ],
)
def test_a_limit_that_is_none_is_an_error_that_names_file_and_key(table: object, part: str) -> None:
    with pytest.raises(ConfigError) as failure:
        SpendingLimits.read(table, "agents/editor.toml: limits")
    assert str(failure.value).startswith("agents/editor.toml: limits: ")
    assert part in str(failure.value)


def test_the_smaller_of_two_limits_holds_and_0_is_a_limit() -> None:
    own, rest = SpendingLimits(steps=0, tokens=500), SpendingLimits(steps=5, seconds=1.5)
    assert own.within(rest) == SpendingLimits(steps=0, tokens=500, seconds=1.5)


def test_0_means_none_at_all() -> None:
    allowance = Allowance(SpendingLimits.read({"steps": 0}, "agents/editor.toml: limits"))
    why = allowance.broken()
    assert why is not None
    assert "limit of 0 steps" in why
    assert "agents/editor.toml" in why


def test_what_a_child_spends_is_spent_by_every_parent() -> None:
    thread = Allowance(SpendingLimits(tokens=1_000))
    child = Allowance(SpendingLimits(tokens=5_000, steps=8), Allowance(SpendingLimits(tokens=800), thread))
    child.spend(tokens=700, steps=1)
    assert thread.left() == SpendingLimits(tokens=300)
    assert child.left() == SpendingLimits(tokens=100, steps=7)
    thread.spend(tokens=300)
    assert "1000 tokens" in (child.broken() or "")


def test_a_limit_that_no_request_needs_is_asked_by_its_name() -> None:
    allowance = Allowance(SpendingLimits(helpers=1))
    allowance.spend(helpers=1)
    assert allowance.broken() is None
    assert allowance.broken("helpers") is not None


def test_nothing_that_is_spent_is_given_back_by_a_negative_amount() -> None:
    allowance = Allowance(SpendingLimits(steps=2))
    allowance.spend(steps=2)
    allowance.spend(steps=-5)
    assert allowance.broken() is not None

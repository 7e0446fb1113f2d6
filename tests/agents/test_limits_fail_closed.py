"""Limits are numbers from 0, 0 means 0, and a child's spending counts against all of its ancestors."""

import re

import pytest

from agent_core.base.errors import ConfigError
from agent_core.base.limits import Allowance, SpendingLimits

NONE: tuple[tuple[object, str], ...] = (
    ({"steps": -1}, "`steps` cannot be -1"),
    ({"tokens": "many"}, "`tokens` cannot be many"),
    ({"cost": float("inf")}, "`cost` cannot be inf"),
    ({"cost": float("nan")}, "`cost` cannot be nan"),
    ({"steps": True}, "`steps` cannot be True"),
    ({"hops": 2.5}, "`hops` cannot be 2.5"),
    ({"step": 3}, "Did you mean `steps`?"),
    ({"where": "x"}, "`where` is not a limit"),
    ([1], "limits are a table"),
)


def test_a_limit_that_is_none_is_an_error_that_names_file_and_key_and_0_is_a_limit() -> None:
    for table, part in NONE:
        with pytest.raises(ConfigError, match=f"^agents/editor.toml: limits: .*{re.escape(part)}"):
            SpendingLimits.read(table, "agents/editor.toml: limits")
    own, rest = SpendingLimits(steps=0, tokens=500), SpendingLimits(steps=5, seconds=1.5)
    assert own.within(rest) == SpendingLimits(steps=0, tokens=500, seconds=1.5), "the smaller of two holds"
    why = Allowance(SpendingLimits.read({"steps": 0}, "agents/editor.toml: limits")).broken() or ""
    assert [part in why for part in ("limit of 0 steps", "agents/editor.toml")] == [True, True]


def test_what_a_child_spends_is_spent_by_every_parent() -> None:
    thread = Allowance(SpendingLimits(tokens=1_000))
    child = Allowance(SpendingLimits(tokens=5_000, steps=8), Allowance(SpendingLimits(tokens=800), thread))
    child.spend(tokens=700, steps=1)
    assert thread.left() == SpendingLimits(tokens=300)
    assert child.left() == SpendingLimits(tokens=100, steps=7)
    thread.spend(tokens=300)
    assert "1000 tokens" in (child.broken() or "")


def test_other_limits_are_asked_by_name_and_nothing_is_given_back_by_a_negative_amount() -> None:
    allowance = Allowance(SpendingLimits(helpers=1))
    allowance.spend(helpers=1)
    assert allowance.broken() is None
    assert allowance.broken("helpers") is not None
    allowance = Allowance(SpendingLimits(steps=2))
    allowance.spend(steps=2)
    allowance.spend(steps=-5)
    assert allowance.broken() is not None

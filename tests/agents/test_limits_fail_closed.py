"""Limits are numbers from 0, and 0 means 0."""

import re

import pytest

from agent_core.base.errors import ConfigError
from agent_core.base.limits import Allowance, SpendingLimits

NONE: tuple[tuple[object, str], ...] = (
    ({"steps": -1}, "`steps` cannot be -1"),
    ({"cost": float("inf")}, "`cost` cannot be inf"),
    ({"cost": float("nan")}, "`cost` cannot be nan"),
    ({"tokens": 10**400}, "`tokens` cannot be 1000"),
    ({"steps": True}, "`steps` cannot be True"),
    ({"hops": 2.5}, "`hops` cannot be 2.5"),
    ({"step": 3}, "Did you mean `steps`?"),
    ([1], "limits are a table"),
)


def test_a_limit_that_is_none_is_an_error_that_names_file_and_key_and_0_is_a_limit() -> None:
    for table, part in NONE:
        with pytest.raises(ConfigError, match=f"^agents/editor.toml: limits: .*{re.escape(part)}"):
            SpendingLimits.read(table, "agents/editor.toml: limits")
    own, rest = SpendingLimits(steps=0, tokens=500), SpendingLimits(steps=5, seconds=1.5)
    assert own.within(rest) == SpendingLimits(steps=0, tokens=500, seconds=1.5), (
        "the smaller of two holds"
    )
    why = Allowance(SpendingLimits.read({"steps": 0}, "agents/editor.toml: limits")).broken() or ""
    assert [part in why for part in ("limit of 0 steps", "agents/editor.toml")] == [True, True]

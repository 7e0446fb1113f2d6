"""The benchmark of exponents runs to its figures; what they are does not matter here."""

from dataclasses import replace

import pytest

from benchmarks import exponents

_SIZES = [10, 100]


@pytest.mark.parametrize("name", ["functions list", "functions pending, n candidates"])
def test_an_operation_is_measured_at_each_of_its_sizes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(exponents.OPERATIONS[name], most=_SIZES[-1])
    monkeypatch.setitem(exponents.OPERATIONS, name, small)
    growth = exponents.grown(name, len(_SIZES))
    assert growth.end == ""
    assert [cost.size for cost in growth.costs] == _SIZES
    assert all(cost.seconds > 0 for cost in growth.costs)
    assert str(growth).startswith(name)

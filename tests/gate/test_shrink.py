"""Shrinking: what comes out still fails, is never longer, and is the shortest there is where that is easy to see."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.functions.gate.arguments.generation import Arguments
from agent_core.functions.gate.arguments.shrink import lesser, measure, shrink, smaller
from tests.kit.drawing import drawn

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=8) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


def asking(fails: Callable[[Arguments], bool], rounds: list[int]) -> Callable[[Sequence[Arguments]], Any]:
    async def ask(tried: Sequence[Arguments]) -> list[bool]:
        rounds.append(len(tried))
        return [fails(one) for one in tried]

    return ask


@settings(max_examples=drawn(40))
@given(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), st.integers(0, 40))
async def test_what_is_shrunk_still_fails_and_is_never_longer(arguments: Arguments, least: int) -> None:
    def fails(one: Arguments) -> bool:
        return len(repr(one)) >= min(least, len(repr(arguments)))

    found = await shrink(arguments, asking(fails, []))
    assert fails(found)
    assert measure(found) <= measure(arguments)
    assert found.keys() == arguments.keys()


@settings(max_examples=drawn(60))
@given(VALUES)
def test_lesser_values_are_of_the_same_kind_and_candidates_are_smaller(value: Any) -> None:
    assert {type(one) for one in lesser(value)} <= {type(value)}
    tried = smaller({"a": value})
    assert len(tried) <= 48
    assert all(measure(one) < measure({"a": value}) for one in tried)
    assert tried == sorted(tried, key=measure)


@pytest.mark.parametrize(
    ("arguments", "fails", "shortest"),
    [
        ({"a": [5, 0, 7, 12]}, lambda one: 0 in one["a"], {"a": [0]}),
        ({"a": [5, 3], "b": "hello"}, lambda one: len(one["a"]) > 1, {"a": [0, 0], "b": ""}),
        ({"a": "quite long é text"}, lambda one: "é" in one["a"], {"a": "é"}),
        ({"a": -712}, lambda one: one["a"] < 0, {"a": -1}),
        ({"a": {"x": [1, 2], "y": [0]}}, lambda one: 2 in one["a"].get("x", ()), {"a": {"x": [2]}}),
        ({"a": 3.75, "b": 70}, lambda _one: True, {"a": 0.0, "b": 0}),
        ({"a": {5, 6, 7}}, lambda one: 6 in one["a"], {"a": {6}}),
        ({"a": [[9, 9], [8, 0]]}, lambda one: any(0 in row for row in one["a"]), {"a": [[0]]}),
        ({"a": None}, lambda _one: True, {"a": None}),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
async def test_the_shortest_that_fails_is_found(arguments: Arguments, fails: Any, shortest: Arguments) -> None:
    assert await shrink(arguments, asking(fails, []), 12) == shortest


async def test_no_more_is_tried_than_there_are_rounds_and_places() -> None:
    rounds: list[int] = []
    await shrink({"a": list(range(500)), "b": "x" * 500}, asking(lambda one: len(one["a"]) > 3, rounds), 4)
    assert len(rounds) <= 4
    assert max(rounds) <= 48


async def test_what_nothing_smaller_shares_stays_as_it_is() -> None:
    arguments = {"a": [3, 1, 2]}
    assert await shrink(arguments, asking(lambda one: one == arguments, [])) == arguments

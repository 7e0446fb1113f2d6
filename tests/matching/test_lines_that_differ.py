"""Differences between two texts agree with `difflib` and never take long, whatever the lines are."""

import difflib
from functools import partial
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.matching import COARSE, compare, diff_lines
from tests.kit.heartbeat import MOST_MS
from tests.kit.pace import least_s, time_of

_lines = st.lists(st.sampled_from("abcdefgh"), max_size=40)
RISING = [f"#{n % 128}" for n in range(16_000)]
HOSTILE = {
    "cycles": (RISING, RISING[::-1]),
    "two-lines": (["a", "b"] * 60_000, ["b", "a", "a"] * 40_000),
    "one-line": (["a"] * 100_000, ["a"] * 99_999 + ["b"]),
    "blank": ([""] * 100_000, ["", "x"] * 50_000),
    "small-blocks": ([f"{n}" if n % 64 == 0 else "ab"[n % 2] for n in range(60_000)],
                     [f"{n}" if n % 64 == 0 else "ba"[n % 3 == 0] for n in range(60_000)]),
    "one-anchor-a-level": ([f"{n // 2}" for n in range(60_000)], [f"{n // 2}" for n in range(60_000, 0, -1)]),
    "shuffled": ([f"{n * 7919 % 30_011}" for n in range(30_011)], [f"{n * 104_729 % 30_011}" for n in range(30_011)]),
    "squares": ([f"{n * n % 251}" for n in range(20_000)], [f"{n * n % 257}" for n in range(20_000)]),
}  # fmt: skip


def test_no_lines_take_longer_than_the_event_loop_may_be_held_up() -> None:
    most_s = MOST_MS / 1000
    for name, (old, new) in HOSTILE.items():
        compared = partial(diff_lines, old, new, ("old", "new"))
        assert least_s(most_s, partial(time_of, compared)) <= most_s, name


@given(_lines, _lines)
def test_short_texts_are_compared_as_difflib_does(old: list[str], new: list[str]) -> None:
    told = difflib.unified_diff(old, new, "old", "new", lineterm="")
    assert diff_lines(old, new, ("old", "new")) == [*told]


@given(_lines, _lines, st.integers(0, 12))
def test_the_new_text_is_what_a_comparison_makes_of_the_old_one(
    old: list[str], new: list[str], times: int
) -> None:
    old, new = (
        old * 3**times if times < 4 else [*map(str, range(times * 500)), *old],
        new * 2 ** min(times, 6),
    )
    made: list[str] = []
    for kind, i1, i2, j1, j2 in compare(old, new).opcodes:
        made += old[i1:i2] if kind == "equal" else new[j1:j2]
        assert kind != "equal" or old[i1:i2] == new[j1:j2]
    assert made == new


def test_one_changed_line_of_a_very_long_text_is_told_alone() -> None:
    old = [f"line {n % 40}" for n in range(20_000)]
    new = [*old[:9_000], "another", *old[9_001:]]
    told = diff_lines(old, new, ("old", "new"), 0)
    assert told == ["--- old", "+++ new", "@@ -9001 +9001 @@", "-line 0", "+another"]


def test_functions_that_moved_in_a_long_text_are_found_by_their_unique_lines() -> None:
    functions = [[f"def f{n}():", "    x = 1", "    return x", "", ""] for n in range(600)]
    old = [*chain(*functions)]
    new = [*chain(*functions[:100], *functions[101:], ["def new():", "    x = 1", "    return x"])]
    comparison = compare(old, new)
    assert comparison.is_exact
    assert comparison.counts == (3, 5)


def test_what_is_too_costly_is_said_to_be_shown_whole() -> None:
    told = diff_lines(RISING, RISING[::-1], ("old", "new"))
    assert told[2] == COARSE
    assert not compare(RISING, RISING[::-1]).is_exact
    assert len(told) == 4 + 2 * len(RISING)

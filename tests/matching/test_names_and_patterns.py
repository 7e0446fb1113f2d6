"""The nearest names and the names that match a pattern: as Python's own tools find them, in bounded time."""

import difflib
import fnmatch
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.matching import Wildcard, nearest
from tests.kit.heartbeat import MOST_MS
from tests.kit.pace import least_s, time_of

SOON_S = MOST_MS / 1000
_names = st.text("abc_", min_size=1, max_size=12)
_patterns = st.text("ab*?[]!-^z", max_size=10)


@given(_names, st.lists(_names, max_size=12, unique=True))
def test_the_nearest_name_is_as_near_as_the_one_that_difflib_finds(
    name: str, names: list[str]
) -> None:
    def ratio(other: str) -> float:
        return difflib.SequenceMatcher(None, other, name).ratio()

    expected = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    assert [*map(ratio, nearest(name, names))] == [*map(ratio, expected)]


def test_no_name_is_looked_for_longer_than_the_loop_may_be_held_up() -> None:
    costly = [
        ("ab" * 500_000, ["ab" * 32] * 3_000),
        ("a" * 64, [f"{'a' * 59}{n:05}" for n in range(20_000)]),
        ("ab" * 50, ["ba" * 50] * 20_000),
        ("a", ["a" * 1_000_000] * 200),
    ]
    for name, names in costly:
        looked_for = partial(nearest, name, names, 3)
        assert least_s(SOON_S, partial(time_of, looked_for)) <= SOON_S, name[:80]


@given(_patterns, st.text("ab[]!-^z", max_size=8))
def test_a_pattern_fits_what_fnmatch_says_that_it_fits(pattern: str, text: str) -> None:
    assert Wildcard(pattern).fits(text) == fnmatch.fnmatchcase(text, pattern)


def test_no_pattern_takes_longer_than_the_loop_may_be_held_up() -> None:
    def fit(pattern: str) -> None:
        wildcard = Wildcard(pattern)
        for n in range(1_000):
            wildcard.fits(f"{'ab' * 29}{n:05}")

    for pattern in (
        "[" * 20_000,
        "*a" * 100,
        "*" * 1_000_000,
        "[a-z]*" * 33,
        "?*" * 100,
        "[!" * 99,
    ):
        assert least_s(SOON_S, partial(time_of, partial(fit, pattern))) <= SOON_S, pattern[:80]

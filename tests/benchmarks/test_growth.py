"""The growth benchmark shows a gain for an optimal player."""

from operator import itemgetter
from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.growth_requests import DOMAINS, requests


async def _played(
    folder: Path, player: str, arms: str, limit: int = 4
) -> list[growth.GrowthRecord]:
    given = [
        *("--arm", arms, "--domain", "shop", "--seed", "3"),
        *("--limit", str(limit), "--out", str(folder)),
    ]
    return await growth.run(growth.options([*given, "--player", player]))


def _last_tokens(records: list[growth.GrowthRecord], arm: str) -> int:
    return sum(one.fresh + one.cached for one in records if one.arm == arm and one.quarter == 4)


@pytest.mark.slow
async def test_a_player_that_calls_what_it_made_answers_for_less(tmp_path: Path) -> None:
    records = await _played(tmp_path, "best", "none,cold,maker", limit=8)
    assert all(one.is_right for one in records)
    assert _last_tokens(records, "cold") < 0.6 * _last_tokens(records, "none")
    whole = {row["arm"]: row for row in growth.figures(records) if row["quarter"] == "all"}
    cold = whole["cold"]
    assert (cold["made"], cold["kept"]) == (2, 2)
    assert (cold["calls to earlier ones"], cold["of these in a right answer"]) == (6, 6)
    own = [one for one in records if one.arm == "cold"]
    assert [one.family in one.shown for one in own] == [False, False, *[True] * 6]
    assert all({*DOMAINS["shop"].functions} <= {*one.shown} for one in own)
    assert (cold["never used again"], whole["maker"]["calls to earlier ones"]) == (0, 8)


def test_requests_come_back_with_other_values() -> None:
    for domain in DOMAINS.values():
        every = [*requests(domain, 1, 2)]
        assert len({one.text for one in every}) == 8 * len(domain.families(1)) == 40
        assert all(len({*map(itemgetter(0), one.calls[0])}) >= 3 for one in every)
        assert [one.text for one in requests(domain, 1, 2)] == [one.text for one in every]

"""The growth benchmark shows a gain for an optimal player, and none for a player that never calls its functions."""

import re
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import growth
from benchmarks.growth_requests import DOMAINS, PHRASINGS, Domain, is_answer, requests
from tests.kit import Ask, Repeat, Say, Wanted, scripted


async def _played(folder: Path, player: str, arms: str, limit: int = 4) -> list[growth.GrowthRecord]:
    given = [*("--arm", arms, "--domain", "shop", "--seed", "3"), *("--limit", str(limit), "--out", str(folder))]
    return await growth.run(growth.options([*given, "--player", player]))


def _last_tokens(records: list[growth.GrowthRecord], arm: str) -> int:
    return sum(one.fresh + one.cached for one in records if one.arm == arm and one.quarter == 4)


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


async def test_a_player_that_calls_nothing_again_gains_nothing(tmp_path: Path) -> None:
    records = await _played(tmp_path, "forgetful", "none,cold")
    assert all(one.is_right for one in records)
    assert _last_tokens(records, "cold") >= _last_tokens(records, "none")
    cold = next(row for row in growth.figures(records) if (row["arm"], row["quarter"]) == ("cold", "all"))
    assert (cold["made"], cold["calls to earlier ones"], cold["never used again"]) == (1, 0, 1)


async def test_a_run_goes_on_with_the_library_that_it_had(tmp_path: Path) -> None:
    first = await _played(tmp_path, "best", "yesterday")
    again = await _played(tmp_path, "best", "yesterday", limit=8)
    assert again[: len(first)] == first
    assert [one.day for one in again].count(2) == 8
    assert all(one.called for one in again if one.day == 2 and one.family == first[0].family)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("seed", [1, 2])
def test_requests_come_back_with_other_values(domain: Domain, seed: int) -> None:
    every = [*requests(domain, seed, 2)]
    assert len({one.text for one in every}) == 8 * len(domain.families(seed)) == 40
    assert [len(one.rows) for one in every[:5]] == [3, 3, 8, 16, 40]
    assert all(len({*map(itemgetter(0), one.calls[0])}) >= 3 for one in every)
    assert all(len({len(calls) for calls in one.calls}) == 1 for one in every)
    assert [one.text for one in requests(domain, seed, 2)] == [one.text for one in every]


def test_an_answer_is_checked_by_its_value() -> None:
    cases: list[tuple[str, bool]] = [
        ("{expected}", True),  # alone
        ("For order {row} and the others: {expected} in all", True),  # beside the request's
        ("{expected}, or 12345.67", False),  # another one
        ("I cannot say.", False),  # none
        ("{row}", False),  # of the request
    ]
    for reply, is_right in cases:
        requested = next(requests(DOMAINS["shop"], 1, 2))
        assert (
            is_answer(requested, reply.format(expected=f"{requested.expected:,}", row=requested.rows[0])) is is_right
        ), reply


async def test_what_a_model_noted_for_one_request_is_gone_at_the_next(tmp_path: Path) -> None:
    noted = Ask(Wanted("core_memory_append", {"name": "human", "content": "Every total is 12."}))
    with scripted([noted, Say("12"), Repeat(Say("12"))]) as model:
        given = ["--arm", "none", "--domain", "shop", "--seed", "3", "--limit", "4", "--out", str(tmp_path)]
        await growth.run(growth.options([*given, "--base-url", model.base_url, "--model", "scripted"]))
        told = ["Every total is 12." in seen.messages[0]["content"] for seen in model.requests]
    assert [*told[-3:]] == [False] * 3


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_a_function_that_is_asked_for_something_unknown_says_what_it_takes(domain: Domain) -> None:
    names: dict[str, Any] = {}
    exec(domain.module(1), names)
    for name, function in domain.functions.items():
        with pytest.raises(ValueError, match=re.escape(function.form)):
            names[name](5_000 if "int" in function.parameter else "guest")


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_each_seed_draws_rules_of_its_own_and_words_them_in_several_ways(domain: Domain) -> None:
    rules = [[family.rule() for family in domain.families(seed)] for seed in range(1, 6)]
    assert len({rule for rows in rules for rule in rows}) >= 15
    texts, families = [one.text for one in requests(domain, 1, 2)], domain.families(1)
    used = {way for way in PHRASINGS for text in texts if any(family.rule(way) in text for family in families)}
    assert used == {*PHRASINGS}

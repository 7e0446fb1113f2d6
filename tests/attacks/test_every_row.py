"""Every row at both levels, as root and as an ordinary user: in calls, in programs, at import time, without layers."""

import os
from collections import Counter

import pytest

from tests.attacks.control import in_jail
from tests.attacks.rows import APART, HOST, KINDS, SANDBOX, rows
from tests.attacks.settings import CARRIERS, WHOEVER, Setting, Unable, leaks, results, rows_of
from tests.attacks.table import counts_in_the_page, counts_of_the_rows
from tests.kit.levels import NO_LEVEL, require_landlock, require_namespaces

PROVABLE = [row for row in rows() if not row.is_apart]
SAMPLE = [row.label for row in PROVABLE[:: len(PROVABLE) // 10]]


# A plain run starts one sandbox for each level and tries one of this many rows there, from a different offset each.
TRIED = [
    ("full", WHOEVER, 12),
    ("apart", "ordinary user", 40),
    ("core", WHOEVER, 40),
    ("portable", WHOEVER, 60),
]
SETTINGS = [
    pytest.param(Setting(*each), how, id=f"{'-'.join(each)}{how}")
    for how in CARRIERS
    for each in CARRIERS[how]
]
_NOT_THERE = {
    "channel.forge_ones_own_result"
}  # at level `portable`, where the channel is not a descriptor


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("level", "user", "step"), TRIED)
def test_nothing_gets_out_but_what_is_named(level: str, user: str, step: int) -> None:
    setting, at = Setting(level, user), TRIED.index((level, user, step))
    steps = {"": step, "ahead": 60, "programs": 60}
    how = [carrier for carrier in CARRIERS if setting in CARRIERS[carrier]]
    _assert_contained(
        setting, {one: [row.label for row in rows_of(one)[at * 7 :: steps[one]]] for one in how}
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("setting", "carrier"), SETTINGS)
def test_nothing_gets_out_in_any_setting_but_what_is_named(setting: Setting, carrier: str) -> None:
    _assert_contained(setting, {carrier: []})


def _assert_contained(setting: Setting, wanted: dict[str, list[str]]) -> None:
    try:
        found = results(setting, wanted)
    except Unable as reason:
        pytest.skip(f"{NO_LEVEL}{setting.level} for {setting.user} here: {reason}")
    assert found.keys() == wanted.keys()
    for carrier, reached_by in found.items():
        assert reached_by.keys() == set(wanted[carrier] or (row.label for row in rows_of(carrier)))
        assert {
            row.label
            for row in rows()
            if row.seen == "inherent" and reached_by.get(row.label) == {}
        } <= _NOT_THERE
        got_out = {row.label if row else "": reached for row, reached in leaks(reached_by)}
        known = {row.label for row in rows() if row.leaks(setting.level, ahead=carrier == "ahead")}
        assert {label: reached for label, reached in got_out.items() if label not in known} == {}, (
            carrier
        )


@pytest.mark.timeout(300)
def test_a_sample_of_rows_works_where_its_layers_are_taken_away() -> None:
    assert _unproved(*SAMPLE) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_row_works_where_its_layers_are_taken_away() -> None:
    assert _unproved() == {}


def _unproved(*labels: str) -> dict[str, object]:
    require_namespaces("the jail of the control runs is made of them")
    require_landlock("a control run has all layers but those that it takes away")
    if os.geteuid() != 0:
        pytest.skip("the jail of the control runs needs root")
    found = in_jail(*labels)
    wanted = [row for row in PROVABLE if not labels or row.label in labels]
    return {
        row.label: found.get(row.label)
        for row in wanted
        if row.seen not in found.get(row.label, {})
    }


def test_there_are_enough_rows_in_enough_families() -> None:
    assert len(PROVABLE) >= 130
    assert len({row.family for row in PROVABLE}) >= 12
    assert [
        label for label, count in Counter(row.label for row in rows()).items() if count > 1
    ] == []


def test_a_row_says_what_would_be_seen_and_what_contains_it() -> None:
    for row in rows():
        assert row.about, row.label
        assert row.seen in (*KINDS, *APART), row.label
        assert row.remark or row.seen not in (*APART, "said", "worker", "amount"), row.label
        assert row.is_apart != bool(row.layers), row.label
        assert set(row.layers) <= set(SANDBOX) or row.layers[0] in HOST, row.label


def test_the_page_on_security_counts_the_rows_that_there_are() -> None:
    assert counts_in_the_page() == counts_of_the_rows()

"""Every row at both levels, as root and as an ordinary user: in calls, in programs, at import time, without layers."""

import os
from collections import Counter

import pytest

from tests.attacks.control import in_jail
from tests.attacks.rows import APART, HOST, KINDS, SANDBOX, rows
from tests.attacks.settings import AHEAD, CALLS, PROGRAMS, Setting, Unable, leaks, results
from tests.attacks.table import counts_in_the_page, counts_of_the_rows
from tests.kit.levels import NO_LEVEL, require_landlock, require_namespaces

PROVABLE = [row for row in rows() if not row.is_apart]
SAMPLE = [row.label for row in PROVABLE[:: len(PROVABLE) // 24]]


def _named(setting: Setting) -> str:
    carrier = "-at-import-time" if setting.ahead else "-in-programs" if setting.programs else ""
    return f"{setting.level}-{setting.user}{carrier}"


WHOEVER = "root" if os.geteuid() == 0 else "ordinary user"
USUAL = 10  # A plain run tries one of this many rows in the usual setting, and fewer in other
SPARSE = 36  # settings, each from a different offset.
SPARSE_AHEAD = 72

_NOT_THERE = {"channel.forge_ones_own_result"}  # at level `portable`, where the channel is not a descriptor


@pytest.mark.timeout(300)
@pytest.mark.parametrize("setting", [*CALLS, *AHEAD, *PROGRAMS], ids=_named)
def test_nothing_gets_out_but_what_is_named(setting: Setting) -> None:
    calls = [*CALLS, *PROGRAMS]
    at, step = (AHEAD.index(setting), SPARSE_AHEAD) if setting.ahead else (calls.index(setting), SPARSE)
    step = USUAL if setting == Setting("full", WHOEVER) else step
    _assert_contained(setting, [row.label for row in setting.rows()[at::step]])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("setting", [*CALLS, *AHEAD, *PROGRAMS], ids=_named)
def test_nothing_gets_out_in_any_setting_but_what_is_named(setting: Setting) -> None:
    _assert_contained(setting, [])


def _assert_contained(setting: Setting, labels: list[str]) -> None:
    try:
        found = results(setting, *labels)
    except Unable as reason:
        pytest.skip(f"{NO_LEVEL}{setting.level} for {setting.user} here: {reason}")
    assert found.keys() == set(labels or (row.label for row in setting.rows()))
    assert {row.label for row in rows() if row.seen == "inherent" and found.get(row.label) == {}} <= _NOT_THERE
    got_out = {row.label if row else "": reached for row, reached in leaks(found)}
    known = {row.label for row in rows() if row.leaks(setting.level, ahead=setting.ahead)}
    assert {label: reached for label, reached in got_out.items() if label not in known} == {}


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
    return {row.label: found.get(row.label) for row in wanted if row.seen not in found.get(row.label, {})}


def test_there_are_enough_rows_in_enough_families() -> None:
    assert len(PROVABLE) >= 130
    assert len({row.family for row in PROVABLE}) >= 12
    assert [label for label, count in Counter(row.label for row in rows()).items() if count > 1] == []


def test_a_row_says_what_would_be_seen_and_what_contains_it() -> None:
    for row in rows():
        assert row.about, row.label
        assert row.seen in (*KINDS, *APART), row.label
        assert row.remark or row.seen not in (*APART, "said", "worker", "amount"), row.label
        assert row.is_apart != bool(row.layers), row.label
        assert set(row.layers) <= set(SANDBOX) or row.layers[0] in HOST, row.label


def test_the_page_on_security_counts_the_rows_that_there_are() -> None:
    assert counts_in_the_page() == counts_of_the_rows()

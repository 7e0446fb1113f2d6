"""Every row at both levels, as root and as an ordinary user; and without its layers, where it must work."""

import os
from collections import Counter

import pytest

from tests.attacks.control import in_jail
from tests.attacks.rows import APART, HOST, KINDS, SANDBOX, Row, rows
from tests.attacks.settings import SETTINGS, Unable, leaks, results
from tests.attacks.table import counts_in_the_page, counts_of_the_rows

PROVABLE = [row for row in rows() if not row.is_apart]
SAMPLE = [row.label for row in PROVABLE[:: len(PROVABLE) // 24]]


WHOEVER = "root" if os.geteuid() == 0 else "ordinary user"
SPARSE = 6  # of the settings that a plain run only samples, each in another place


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("level", "user"), SETTINGS)
def test_nothing_gets_out_but_what_is_named(level: str, user: str) -> None:
    at = SETTINGS.index((level, user))
    is_whole = (level, user) == ("full", WHOEVER)
    _assert_contained(level, user, [] if is_whole else [row.label for row in rows()[at::SPARSE]])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("level", "user"), SETTINGS)
def test_nothing_gets_out_in_any_setting_but_what_is_named(level: str, user: str) -> None:
    _assert_contained(level, user, [])


def _assert_contained(level: str, user: str, labels: list[str]) -> None:
    try:
        found = results(level, user, *labels)
    except Unable as reason:
        pytest.skip(str(reason))
    assert found.keys() == set(labels or (row.label for row in rows()))
    assert {row.label for row in rows() if row.seen == "inherent" and found.get(row.label) == {}} == set()
    got_out = {row.label if row else "": reached for row, reached in leaks(found)}
    assert {label: reached for label, reached in got_out.items() if label not in _known(level)} == {}


def _known(level: str) -> set[str]:
    return {row.label for row in rows() if row.leaks(level)}


@pytest.mark.timeout(300)
def test_a_sample_of_rows_works_where_its_layers_are_taken_away() -> None:
    assert _unproved(*SAMPLE) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_row_works_where_its_layers_are_taken_away() -> None:
    assert _unproved() == {}


def _unproved(*labels: str) -> dict[str, object]:
    if os.geteuid() != 0:
        pytest.skip("the jail of the control runs needs root")
    found = in_jail(*labels)
    wanted = [row for row in PROVABLE if not labels or row.label in labels]
    return {row.label: found.get(row.label) for row in wanted if row.seen not in found.get(row.label, {})}


def test_there_are_enough_rows_in_enough_families() -> None:
    assert len(PROVABLE) >= 130
    assert len({row.family for row in PROVABLE}) >= 12
    assert [label for label, count in Counter(row.label for row in rows()).items() if count > 1] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.label)
def test_a_row_says_what_would_be_seen_and_what_contains_it(row: Row) -> None:
    assert row.about
    assert row.seen in (*KINDS, *APART)
    assert row.remark or row.seen not in (*APART, "said", "worker", "amount")
    assert row.is_apart != bool(row.layers)
    assert set(row.layers) <= set(SANDBOX) or row.layers[0] in HOST


def test_the_page_on_security_counts_the_rows_that_there_are() -> None:
    assert counts_in_the_page() == counts_of_the_rows()

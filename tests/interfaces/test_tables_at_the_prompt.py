"""A value that is a table is aligned at the prompt, and printed as JSON in the shell."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.functions.answers import CallReport
from agent_core.views.styled_lines import plain
from agent_core.views.verdicts import value_lines
from sandbox import Returned

ROWS: list[dict[str, Any]] = [
    {"city": "Bonn", "people": 330_000},
    {"city": "Köln", "people": 1_087_353, "river": "Rhein"},
    {"city": "東京", "people": None},
]
SHOWN = """\
city   people  river
Bonn   330000
Köln  1087353  Rhein
東京     null
"""


def lines(value: object, *, as_it_is: bool = False) -> str:
    """Return what is shown of a value."""
    report = CallReport.of(Returned(value, "", "", 0.0))
    return plain(value_lines(report, as_it_is=as_it_is))


def test_a_table_is_aligned_at_the_prompt_and_json_for_programs() -> None:
    rows = [*ROWS[:2], {**ROWS[2], "people": 0}]
    assert lines(rows) == SHOWN.replace("     null", "        0")
    assert json.loads(lines(rows, as_it_is=True)) == rows


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([], id="empty"),
        pytest.param([1, 2], id="numbers"),
        pytest.param([{"a": [1]}], id="nested"),
        pytest.param([{str(number): 1 for number in range(13)}], id="many-columns"),
        pytest.param([{}], id="no-columns"),
    ],
)
def test_what_is_no_table_is_shown_as_before(value: object, tmp_path: Path) -> None:
    assert json.loads(lines(value)) == value

"""Times as people write them."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.errors import UsageError
from agent_core.memory import dates

NOW = datetime(2026, 5, 20, 15, 30)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        pytest.param("2026-02-03", "2026-02-03", "2026-02-04", id="iso day"),
        pytest.param("2026-02-03T10:30", "2026-02-03 10:30", "2026-02-03 10:31", id="iso minute"),
        pytest.param("2024-02", "2024-02-01", "2024-03-01", id="iso month"),
        pytest.param("7 May 2023", "2023-05-07", "2023-05-08", id="day month year"),
        pytest.param("May 7th, 2023", "2023-05-07", "2023-05-08", id="month day year"),
        pytest.param("december 24", "2025-12-24", "2025-12-25", id="a day that has been"),
        pytest.param("March 2023", "2023-03-01", "2023-04-01", id="month year"),
        pytest.param("march", "2026-03-01", "2026-04-01", id="this year's month"),
        pytest.param("August", "2025-08-01", "2025-09-01", id="last year's month"),
        pytest.param("2019", "2019-01-01", "2020-01-01", id="year"),
        pytest.param("yesterday", "2026-05-19", "2026-05-20", id="yesterday"),
        pytest.param("the day before yesterday", "2026-05-18", "2026-05-19", id="before yesterday"),
        pytest.param("last tuesday", "2026-05-19", "2026-05-20", id="last weekday"),
        pytest.param("wednesday", "2026-05-13", "2026-05-14", id="today's weekday"),
        pytest.param("next friday", "2026-05-22", "2026-05-23", id="next weekday"),
        pytest.param("two weeks ago", "2026-05-04", "2026-05-11", id="weeks ago"),
        pytest.param("a couple of days ago", "2026-05-18", "2026-05-19", id="a couple"),
        pytest.param("6 months ago", "2025-11-01", "2025-12-01", id="months over the year"),
        pytest.param("last month", "2026-04-01", "2026-05-01", id="last month"),
        pytest.param("last weekend", "2026-05-16", "2026-05-18", id="last weekend"),
        pytest.param("the past 3 days", "2026-05-17", "2026-05-20 15:30", id="until now"),
    ],
)
def test_a_time_in_words_means_a_span(text: str, start: str, end: str) -> None:
    spans = dates.read(text, NOW.timestamp())
    assert spans == (datetime.fromisoformat(start).timestamp(), datetime.fromisoformat(end).timestamp())


@pytest.mark.parametrize("text", ["", "soon", "31 June", "2026-13-01", "0000-01-01"])
def test_what_is_no_time_is_refused_with_the_forms_that_are_read(text: str) -> None:
    with pytest.raises(UsageError, match="two weeks ago"):
        dates.read(text, NOW.timestamp())


def test_a_modal_verb_and_a_walk_in_step_are_no_months() -> None:
    found = dates.mentions("you may march on, but in May we rest", NOW.timestamp())
    assert [(mention.text, mention.month) for mention in found] == [("May", 5)]


@given(st.text(), st.floats(0, 4e9))
def test_any_text_has_spans_that_end_after_they_begin(text: str, now: float) -> None:
    assert all(mention.start < mention.end for mention in dates.mentions(text, now))

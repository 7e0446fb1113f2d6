"""Times as people write them."""

from datetime import datetime

import pytest
from hypothesis import given, settings
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
        pytest.param("6 months ago", "2025-11-01", "2025-12-01", id="months over the year"),
        pytest.param("März 2023", "2023-03-01", "2023-04-01", id="German month"),
        pytest.param("vor zwei Wochen", "2026-05-04", "2026-05-11", id="German weeks"),
        pytest.param("hier", "2026-05-19", "2026-05-20", id="French"),
        pytest.param("hace 2 semanas", "2026-05-04", "2026-05-11", id="Spanish"),
        pytest.param("昨天", "2026-05-19", "2026-05-20", id="Chinese"),
        pytest.param("last month", "2026-04-01", "2026-05-01", id="last month"),
    ],
)
def test_a_time_in_words_means_a_span(text: str, start: str, end: str) -> None:
    spans = dates.read(text, NOW.timestamp())
    assert spans == (datetime.fromisoformat(start).timestamp(), datetime.fromisoformat(end).timestamp())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("I saw her last week.", True, id="English"),
        pytest.param("Im Januar waren wir in Rom.", True, id="German"),
        pytest.param("Elle est partie hier.", True, id="French"),
        pytest.param("Lo compré el martes.", True, id="Spanish"),
        pytest.param("It was built in 1931.", True, id="a number"),
        pytest.param("I like green tea.", False, id="none"),
    ],
)
def test_a_message_that_names_a_time_is_known_in_each_language_that_is_stemmed(text: str, names: bool) -> None:
    assert dates.are_named(text) is names


@pytest.mark.parametrize("text", ["", "soon", "31 June", "2026-13-01", "0000-01-01"])
def test_what_is_no_time_is_refused_with_the_forms_that_are_read(text: str) -> None:
    with pytest.raises(UsageError, match="two weeks ago"):
        dates.read(text, NOW.timestamp())


@pytest.mark.parametrize(
    ("question", "text", "month"),
    [
        pytest.param("What did she paint in June?", "in June", 6, id="a month of any year"),
        pytest.param("What happened on 3 May 2023?", "on 3 May 2023", 0, id="a day"),
        pytest.param("我昨天去了哪里", "昨天", 0, id="another script"),
    ],
)
def test_a_question_names_a_time(question: str, text: str, month: int) -> None:
    assert [(mention.text, mention.month) for mention in dates.mentions(question, NOW.timestamp())] == [(text, month)]


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=80), st.floats(0, 4e9))
def test_any_text_has_spans_that_end_after_they_begin(text: str, now: float) -> None:
    assert all(mention.start < mention.end for mention in dates.mentions(text, now))

"""Times as people write them."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.base.errors import UsageError
from agent_core.memory import dates

NOW = datetime(2026, 5, 20, 15, 30)  # a Wednesday


def test_a_time_in_words_means_a_span() -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("iso day", "2026-02-03", "2026-02-03", "2026-02-04"),
        ("iso minute", "2026-02-03T10:30", "2026-02-03 10:30", "2026-02-03 10:31"),
        ("month day year", "May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("a day that has been", "december 24", "2025-12-24", "2025-12-25"),
        ("last year's month", "August", "2025-08-01", "2025-09-01"),
        ("year", "2019", "2019-01-01", "2020-01-01"),
        ("yesterday", "yesterday", "2026-05-19", "2026-05-20"),
        ("last weekday", "last tuesday", "2026-05-19", "2026-05-20"),
        ("next weekday", "next friday", "2026-05-22", "2026-05-23"),
        ("weeks ago", "two weeks ago", "2026-05-04", "2026-05-11"),
        ("German weeks", "vor zwei Wochen", "2026-05-04", "2026-05-11"),
        ("Spanish", "hace 2 semanas", "2026-05-04", "2026-05-11"),
        ("Chinese", "昨天", "2026-05-19", "2026-05-20"),
    ]
    for case, text, start, end in rows:
        spans = dates.read(text, NOW.timestamp())
        assert spans == (
            datetime.fromisoformat(start).timestamp(),
            datetime.fromisoformat(end).timestamp(),
        ), case


def test_a_message_that_names_a_time_is_known_in_each_language_that_is_stemmed() -> None:
    rows: list[tuple[str, str, bool]] = [
        ("English", "I saw her last week.", True),
        ("German", "Im Januar waren wir in Rom.", True),
        ("French", "Elle est partie hier.", True),
        ("Spanish", "Lo compré el martes.", True),
        ("a number", "It was built in 1931.", True),
        ("none", "I like green tea.", False),
    ]
    for case, text, names in rows:
        assert dates.are_named(text) is names, case


def test_what_is_no_time_is_refused_with_the_forms_that_are_read() -> None:
    for text in ["", "soon", "31 June", "2026-13-01", "0000-01-01"]:
        with pytest.raises(UsageError, match="two weeks ago"):
            dates.read(text, NOW.timestamp())


def test_a_question_names_a_time() -> None:
    rows: list[tuple[str, str, str, int]] = [
        ("a month of any year", "What did she paint in June?", "in June", 6),
        ("a day", "What happened on 3 May 2023?", "on 3 May 2023", 0),
        ("another script", "我昨天去了哪里", "昨天", 0),
    ]
    for case, question, text, month in rows:
        assert [
            (mention.text, mention.month) for mention in dates.mentions(question, NOW.timestamp())
        ] == [(text, month)], case


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=80), st.floats(0, 4e9))
def test_any_text_has_spans_that_end_after_they_begin(text: str, now: float) -> None:
    assert all(mention.start < mention.end for mention in dates.mentions(text, now))

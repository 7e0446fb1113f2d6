"""Times as people write them, in the languages that dateparser reads: "last tuesday", "März 2023", "昨天", 2023-05-07.

Local time, pure values. dateparser is imported when the first time is parsed.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias

from agent_core.base.clock import local
from agent_core.base.errors import UsageError
from agent_core.base.language import OTHERS, language_of
from agent_core.base.records import dataclass

from .words import content, split

Days: TypeAlias = tuple[datetime, datetime]

_ISO: Final = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2})(?:[T ](\d{1,2}):(\d\d)(?::\d\d)?)?)?")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_LETTERS: Final = 60  # characters of a single time
_MOST: Final = 5  # times per question
_HINT: Final = 'Write it as 2023-05-07, "May 2023", "last tuesday", "two weeks ago" or "yesterday".'


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time in a text: from `start` until before `end`, in seconds since the epoch; `month` if no year was given."""

    start: float
    end: float
    text: str
    month: int = 0

    def holds(self, at: float) -> bool:
        """Check whether this contains a moment. A month without a year matches any year."""
        moment = local(at) if self.month else None
        return (
            moment.month == self.month if moment else not self.month and self.start <= at < self.end
        )


def _day(day: datetime) -> Days:
    return day, day + timedelta(days=1)


def _month(day: datetime) -> Days:
    start = day.replace(day=1)
    return start, (start + timedelta(days=32)).replace(day=1)


_MONTHS: Final = (
    "january february march april may june july august september october november december"
)
_TIMES: Final = f"monday tuesday wednesday thursday friday saturday sunday {_MONTHS} year month week ago".split()


@cache
def _time_words() -> frozenset[str]:
    """Return dateparser's words for times in the languages that have stems here: "März", "last", "hier"."""
    found = set[str]()
    for language in ("en", *OTHERS):
        known = import_module(f"dateparser.data.date_translation_data.{language}").info
        lists = [*(known.get(name, ()) for name in _TIMES), *known["relative-type"].values()]
        found.update(
            word
            for phrases in lists
            for phrase in phrases
            for word in content(phrase)
            if len(word) > 2
        )
    return frozenset(found)


def are_named(text: str) -> bool:
    """Check whether a text may name a time: by a word for one, or by a number."""
    return any(word.isdigit() or word in _time_words() for word in split(text))


_SPANS: Final[dict[str, Callable[[datetime], Days]]] = {
    "year": lambda day: (datetime(day.year, 1, 1), datetime(day.year + 1, 1, 1)),
    "month": _month,
    "week": lambda day: (day - timedelta(day.weekday()), day + timedelta(7 - day.weekday())),
}


def mentions(text: str, now: float) -> list[TimeMention]:
    """Return the times that a question names, in order."""
    search_dates = import_module("dateparser.search").search_dates
    language = language_of(text) or ("en" if text.isascii() else "")
    found = (
        search_dates(text, languages=[language] if language else None, settings=_settings(now))
        or []
    )
    spans = (_span(phrase, now, language) for phrase, _ in found[:_MOST])
    return [mention for mention in spans if mention is not None]


def read(text: str, now: float) -> tuple[float, float]:
    """Return the range that a text means, end exclusive, in seconds since the epoch.

    Raises:
        UsageError: it names no time; the message describes the accepted forms.
    """
    mention = _span(text, now, "") if 0 < len(text.strip()) <= _LETTERS else None
    if mention is None:
        raise UsageError(f"`{text}` is not a date that can be read.", fix=_HINT)
    return mention.start, mention.end


def _span(phrase: str, now: float, language: str) -> TimeMention | None:
    """Return the whole day, week, month or year that a phrase means, or the minute if it names one."""
    try:
        if match := _ISO.fullmatch(phrase.strip()):
            year, month, day, hour, minute = (int(part or 0) for part in match.groups())
            if day:
                start = datetime(year, month, day, hour, minute)
                end = start + (timedelta(minutes=1) if hour or minute else timedelta(days=1))
            else:
                start, end = _month(datetime(year, month, 1))
            return TimeMention(start.timestamp(), end.timestamp(), phrase)
        parser = import_module("dateparser.date").DateDataParser
        data = parser([language] if language else None, settings=_settings(now)).get_date_data(
            phrase
        )
        if data.date_obj is None:
            return None
        start_of_day = data.date_obj.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        start, end = _SPANS.get(data.period, _day)(start_of_day)
        any_year = (
            data.period == "month"
            and not _YEAR.search(phrase)
            and not any(map(str.isdigit, phrase))
        )
        return TimeMention(
            start.timestamp(), end.timestamp(), phrase, start.month if any_year else 0
        )
    except (ValueError, OverflowError, OSError):  # the year 0
        return None


def _settings(now: float) -> dict[str, Any]:  # Any: dateparser's settings
    return {
        "RELATIVE_BASE": datetime.fromtimestamp(now),
        "PREFER_DATES_FROM": "past",
        "RETURN_AS_TIMEZONE_AWARE": False,
    }

"""Times as people write them: "last tuesday", "March 2023", "two weeks ago", 2023-05-07. Local time, pure values.

Every form is a pattern and what it means from a given now; a form without a year is the latest such that has begun.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from agent_core.base.clock import local
from agent_core.base.errors import UsageError

MONTHS: Final = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = dict(
    zip("a an one two three four five six seven eight nine ten few couple".split(), (1, 1, *range(1, 11), 3, 2))  # noqa: SIM905, B905
)

Match: TypeAlias = re.Match[str]
Days: TypeAlias = tuple[datetime, datetime]


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
        return moment.month == self.month if moment else not self.month and self.start <= at < self.end

    def meets(self, mention: "TimeMention") -> bool:
        """Check whether this and the other mention have a moment in common."""
        return self.holds(mention.start) if self.month else self.start < mention.end and mention.start < self.end


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(day: datetime) -> Days:
    return day, day + timedelta(days=1)


def _month(year: int, month: int) -> Days:
    years, month_index = divmod(month - 1, 12)
    start = datetime(year + years, month_index + 1, 1)
    return start, (start + timedelta(days=32)).replace(day=1)


def _year(year: int) -> Days:
    return datetime(year, 1, 1), datetime(year + 1, 1, 1)


def _week(day: datetime) -> Days:
    start = day - timedelta(days=day.weekday())
    return start, start + timedelta(days=7)


def _which(name: str, names: tuple[str, ...] | list[str]) -> int:
    return next(place for place, full_name in enumerate(names) if full_name.startswith(name.lower()[:3]))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower().removesuffix(" of").split()[-1]]


def _iso(match: Match, now: datetime) -> Days:
    day = datetime(int(match["iy"]), int(match["im"]), int(match["id"]))
    if not match["ih"]:
        return _day(day)
    start = day.replace(hour=int(match["ih"]), minute=int(match["imin"]))
    return start, start + timedelta(minutes=1)


def _iso_month(match: Match, now: datetime) -> Days:
    return _month(int(match["my"]), int(match["mm"]))


def _date(match: Match, now: datetime) -> Days:
    month = _which(match["dm"] or match["em"], MONTHS) + 1
    day, year = int(match["dd"] or match["ed"]), match["dy"] or match["ey"]
    start = datetime(int(year or now.year), month, day)
    return _day(start if year or start <= now else start.replace(year=now.year - 1))


def _named_month(match: Match, now: datetime) -> Days:
    month = _which(match["nm"], MONTHS) + 1
    return _month(int(match["ny"] or now.year - (month > now.month)), month)


def _whole_year(match: Match, now: datetime) -> Days:
    return _year(int(match["year"]))


def _near_day(match: Match, now: datetime) -> Days:
    apart = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
    phrase = " ".join(match["near"].lower().split())
    return _day(_midnight(now) + timedelta(days=apart.get(phrase, -2)))


def _back(now: datetime, count: int, unit: str) -> Days:
    today = _midnight(now)
    if unit == "day":
        return _day(today - timedelta(days=count))
    if unit == "week":
        return _week(today - timedelta(weeks=count))
    if unit == "weekend":
        start = _week(today - timedelta(weeks=count))[0] + timedelta(days=5)
        return start, start + timedelta(days=2)
    return _month(now.year, now.month - count) if unit == "month" else _year(now.year - count)


def _ago(match: Match, now: datetime) -> Days:
    return _back(now, _number(match["count"]), match["unit"].lower())


def _past(match: Match, now: datetime) -> Days:
    start = _back(now, _number(match["pcount"]), match["punit"].lower())[0]
    return start, now


def _relative(match: Match, now: datetime) -> Days:
    shift = {"last": 1, "past": 1, "previous": 1, "this": 0, "next": -1}
    return _back(now, shift[match["which"].lower()], match["runit"].lower())


def _weekday(match: Match, now: datetime) -> Days:
    today, day = _midnight(now), _which(match["weekday"], DAYS)
    if (match["wwhich"] or "").lower() in ("next", "this"):
        return _day(today + timedelta(days=(day - today.weekday()) % 7))
    return _day(today - timedelta(days=(today.weekday() - day) % 7 or 7))


_M: Final = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_COUNT: Final = r"\d{1,3}|a few|a couple of|a couple|" + "|".join(_NUMBERS)
_FORMS: Final[tuple[tuple[str, Callable[[Match, datetime], Days]], ...]] = (
    (r"(?P<iy>\d{4})[-/](?P<im>\d{1,2})[-/](?P<id>\d{1,2})(?:[T ](?P<ih>\d{1,2}):(?P<imin>\d\d)(?::\d\d)?)?", _iso),
    (r"(?P<my>\d{4})-(?P<mm>\d\d)", _iso_month),
    (
        rf"(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<dm>{_M})\b\.?(?:,? (?P<dy>\d{{4}}))?"
        rf"|(?P<em>{_M})\b\.? (?P<ed>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<ey>\d{{4}}))?",
        _date,
    ),
    (rf"(?P<nm>{_M})\b\.?,?(?: of)?(?: (?P<ny>\d{{4}}))?", _named_month),
    (r"(?P<year>(?:19|20)\d\d)", _whole_year),
    (r"(?P<near>(?:the )?day before yesterday|yesterday|today|tonight|tomorrow)", _near_day),
    (rf"(?P<count>{_COUNT}) (?P<unit>day|weekend|week|month|year)s? ago", _ago),
    (rf"(?:the )?(?:last|past|previous) (?P<pcount>{_COUNT}) (?P<punit>day|week|month|year)s?", _past),
    (r"(?P<which>last|past|previous|this|next) (?P<runit>weekend|week|month|year)", _relative),
    (
        r"(?:(?P<wwhich>last|this|next|on) )?(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?",
        _weekday,
    ),
)
_ANY: Final = re.compile(
    r"\b(?:" + "|".join(f"(?P<form{place}>{form})" for place, (form, _) in enumerate(_FORMS)) + r")\b", re.IGNORECASE
)
_HINT: Final = 'Write it as 2023-05-07, "May 2023", "last tuesday", "two weeks ago" or "yesterday".'
_MODAL: Final = frozenset({"may", "march", "mar", "sun"})


def mentions(text: str, now: float) -> list[TimeMention]:
    """Return every time that a text names, in order. A bare lower-case "may" or "march" is not one."""
    matches = [match for match in _ANY.finditer(text) if match[0] not in _MODAL]
    return [mention for match in matches if (mention := _mention(match, now))]


def read(text: str, now: float) -> tuple[float, float]:
    """Return the range that a text means, end exclusive, in seconds since the epoch.

    Raises:
        UsageError: it names no time; says which forms are read.
    """
    match = _ANY.search(text)
    mention = _mention(match, now) if match else None
    if mention is None:
        raise UsageError(f"`{text}` is not a date that can be read.", fix=_HINT)
    return mention.start, mention.end


def _mention(match: Match, now: float) -> TimeMention | None:
    form = next(place for place in range(len(_FORMS)) if match[f"form{place}"] is not None)
    try:
        start, end = _FORMS[form][1](match, datetime.fromtimestamp(now))
        month = start.month if form == _BARE and not match["ny"] else 0
        return TimeMention(start.timestamp(), end.timestamp(), match[0], month)
    except (ValueError, OverflowError, OSError):  # the 31st of June, the year 0
        return None


_BARE: Final = next(place for place, (_, meaning) in enumerate(_FORMS) if meaning is _named_month)

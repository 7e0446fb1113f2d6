"""Times and dates: the time in a zone, conversions between zones, and arithmetic with dates."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def current_time(zone: str = "UTC") -> str:
    """Tell date and time. That is, of this moment, in a time zone.

    Args:
        zone: Name of the time zone, such as "Europe/Berlin" or "UTC".

    Returns:
        The moment in ISO 8601 with its offset, to the second.

    Raises:
        ValueError: The zone is not known.

    Examples:
        >>> current_time("UTC")  # doctest: +ELLIPSIS
        '2...T...+00:00'
        >>> current_time("Nowhere/Land")
        Traceback (most recent call last):
        ValueError: 'Nowhere/Land' is not a known time zone
    """
    return datetime.now(_zone(zone)).isoformat(timespec="seconds")


def convert_time(moment: datetime, to_zone: str, from_zone: str = "UTC") -> datetime:
    """Give the same moment as the clocks of another time zone show it.

    Args:
        moment: The moment to convert.
        to_zone: Name of the time zone wanted, such as "Asia/Tokyo".
        from_zone: Name of the time zone that the moment is in, where it has no offset of its own.

    Returns:
        The moment in the wanted zone, with its offset.

    Examples:
        >>> convert_time(datetime(2024, 7, 1, 12, 0), "Europe/Berlin").isoformat()
        '2024-07-01T14:00:00+02:00'
        >>> convert_time(datetime(2024, 1, 1, 9, 30), "UTC", from_zone="America/New_York").isoformat()
        '2024-01-01T14:30:00+00:00'
    """
    known = moment if moment.tzinfo else moment.replace(tzinfo=_zone(from_zone))
    return known.astimezone(_zone(to_zone))


def days_between(start: date, end: date) -> int:
    """Count the days from one date to another.

    Args:
        start: The date to count from.
        end: The date to count to; before the start, the count is negative.

    Returns:
        The number of days.

    Examples:
        >>> days_between(date(2024, 2, 28), date(2024, 3, 1))
        2
        >>> days_between(date(2024, 1, 1), date(2023, 12, 25))
        -7
    """
    return (end - start).days


def add_to_date(start: date, days: int = 0, weeks: int = 0, months: int = 0) -> date:
    """Add to a date. Find the one that lies some days, weeks and months after it.

    Args:
        start: The date to count from.
        days: Days to add; negative ones go back.
        weeks: Weeks to add; negative ones go back.
        months: Months to add, before the days; the day is cut to the last one of a shorter month.

    Returns:
        The date that was found.

    Examples:
        >>> add_to_date(date(2024, 1, 31), months=1)
        datetime.date(2024, 2, 29)
        >>> add_to_date(date(2024, 12, 30), days=3, weeks=-1)
        datetime.date(2024, 12, 26)
    """
    years, month = divmod(start.month - 1 + months, 12)
    first = date(start.year + years, month + 1, 1)
    following = (first + timedelta(days=31)).replace(day=1)
    last_day = (following - timedelta(days=1)).day
    return first.replace(day=min(start.day, last_day)) + timedelta(days=days, weeks=weeks)


def describe_date(day: date) -> str:
    """Say a date's weekday, calendar week and day of the year.

    Args:
        day: The date to describe.

    Returns:
        One line in English.

    Examples:
        >>> describe_date(date(2024, 12, 30))
        'Monday, 30 December 2024, week 1 of 2025, day 365 of the year'
        >>> describe_date(date(2023, 3, 5))
        'Sunday, 5 March 2023, week 9 of 2023, day 64 of the year'
    """
    year, week, _ = day.isocalendar()
    ordinal = day.timetuple().tm_yday
    return f"{day:%A}, {day.day} {day:%B %Y}, week {week} of {year}, day {ordinal} of the year"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is not a known time zone") from None

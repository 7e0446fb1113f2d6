"""Time, ids and randomness, passed in so that tests control them."""

import os
import time
from collections.abc import Callable
from datetime import datetime
from random import Random
from uuid import UUID
from zoneinfo import ZoneInfo

from .records import dataclass, field


def shown_time(at: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a time in local time, formatted for people; a stored time may be missing."""
    moment = local(at)
    return moment.strftime(form) if moment else "at no known time"


def local(at: float) -> datetime | None:
    """Return a time in this machine's time zone; None if it is outside the calendar's range."""
    try:
        return datetime.fromtimestamp(at).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def zone_named(name: str) -> ZoneInfo | None:
    """Return a time zone by its name, such as `Europe/Berlin`; None if this machine knows none of that name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # a path, an unreadable file, no such zone
        return None


def midnight(at: float, zone: str | None = None) -> float:
    """Return when the day of a moment began, in a time zone or else in this machine's."""
    place = zone_named(zone) if zone else None
    begun = datetime.fromtimestamp(at, place).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0
    )
    return begun.timestamp()


def day_of(at: float, zone: str | None = None) -> str:
    """Return the date of a moment, in a time zone or else in this machine's."""
    return datetime.fromtimestamp(at, zone_named(zone) if zone else None).date().isoformat()


def time_of_id(identifier: str) -> float | None:
    """Return when an id of `Clock.new_id` was made; None if it is none, such as one from elsewhere."""
    try:
        value = UUID(identifier)
    except ValueError:
        return None
    return (value.int >> 80) / 1000 if value.version == 7 else None


@dataclass(frozen=True, slots=True)
class Clock:
    """The sources of everything that differs between runs: wall time in seconds, ids, randomness."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    entropy: Callable[[int], bytes] = os.urandom
    random: Random = field(default_factory=Random)

    def new_id(self) -> str:
        """Return a new UUIDv7 (RFC 9562). It sorts by time, but nothing relies on that order."""
        stamp = int(self.now() * 1000) & (1 << 48) - 1
        noise = int.from_bytes(self.entropy(10), "big")
        value = (
            stamp << 80
            | 0x7 << 76
            | (noise >> 62 & 0xFFF) << 64
            | 0b10 << 62
            | noise & (1 << 62) - 1
        )
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

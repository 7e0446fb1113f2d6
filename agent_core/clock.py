"""Time, ids and randomness, handed in so that tests own them."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random


def shown_time(at: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a time as people here read it; a stored one may be none."""
    moment = local(at)
    return moment.strftime(form) if moment else "at no known time"


def local(at: float) -> datetime | None:
    """Return a time in the zone of this machine; None if it is none that a calendar has."""
    try:
        return datetime.fromtimestamp(at).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class Clock:
    """The sources of what differs from run to run: wall time in seconds, ids, randomness."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    entropy: Callable[[int], bytes] = os.urandom
    random: Random = field(default_factory=Random)

    def new_id(self) -> str:
        """A fresh uuid7 (RFC 9562): a name that sorts by time, never used to order by."""
        stamp = int(self.now() * 1000) & (1 << 48) - 1
        noise = int.from_bytes(self.entropy(10), "big")
        value = stamp << 80 | 0x7 << 76 | (noise >> 62 & 0xFFF) << 64 | 0b10 << 62 | noise & (1 << 62) - 1
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

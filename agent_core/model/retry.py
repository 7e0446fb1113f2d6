"""The wait before an endpoint is asked again. Pure: time and randomness are passed in."""

import random
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class Backoff:
    """A policy of doubling waits with jitter, never longer than `longest_s`, whatever the endpoint asks for."""

    first_s: float = 0.5
    longest_s: float = 60.0

    def wait_s(self, tries: int, chance: random.Random, asked_s: float | None = None) -> float:
        """Return the seconds to wait after so many failed tries; a wait that the endpoint asked for takes
        precedence.
        """
        if asked_s is not None:
            return min(max(asked_s, 0.0), self.longest_s)
        doubled = self.first_s * 2.0 ** min(tries - 1, 30)
        return min(doubled, self.longest_s) * chance.uniform(0.5, 1.0)


def read_retry_after(text: str, now: float) -> float | None:
    """Return the seconds from a `Retry-After` header, which holds seconds or an HTTP date; None if it holds neither."""
    try:
        seconds = float(text)
    except ValueError:
        return _seconds_until(text, now)
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_until(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError):  # a year, an hour or a zone that no calendar has
        return None

"""Download progress with rate and time left: a bar on a terminal, an occasional line elsewhere.

All of it goes to standard error. Time is handed in, so that a test owns it.
"""

import time
from collections import deque
from collections.abc import Callable

from .question import say
from .spans import line
from .status_line import CELLS, StatusLine

_WINDOW_S = 10.0
_EVERY_S = 30.0
_LINES = 10


class Rate:
    """The download rate over the last seconds, not counting what was there before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, done: int) -> float | None:
        """Return the current rate, or None while it is unknown."""
        now = self._clock()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()  # another source began anew
        self._seen.append((now, done))
        while now - self._seen[0][0] > _WINDOW_S and len(self._seen) > 2:
            self._seen.popleft()
        began, before = self._seen[0]
        return (done - before) / (now - began) if now > began and done > before else None


class Download:
    """The progress display of one download; leaving the block removes the bar."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._line = StatusLine()
        self._clock = clock
        self._rate = Rate(clock)
        self._told: tuple[float, float] | None = None

    def __enter__(self) -> "Download":
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(*error)

    def hear(self, done: int, total: int | None, note: str) -> None:
        """Take the number of bytes downloaded so far; a note is printed as a line that stays."""
        rate = self._rate.add(done)
        share = done / total if total else 0.0
        if note:
            self._line.show("")
            say([line(("dim", note))])
        if self._line.shown:
            self._line.show(f"{_bar(share)} {progress_text(done, total, rate)}")
        elif self._is_time(share):
            self._told = (self._clock(), share)
            say([line(progress_text(done, total, rate))])

    def _is_time(self, share: float) -> bool:
        if self._told is None:
            return True
        when, before = self._told
        return int(share * _LINES) > int(before * _LINES) or self._clock() - when >= _EVERY_S


def progress_text(done: int, total: int | None, rate: float | None) -> str:
    """Return `412 of 1117 MB, 37%, 8.1 MB/s, 1 min 27 s left`, without the parts that are not known."""
    parts = (
        [f"{done / 1e6:.0f} of {total / 1e6:.0f} MB", f"{int(done / total * 100)}%"]
        if total
        else [f"{done / 1e6:.0f} MB"]
    )
    if rate:
        parts.append(f"{rate / 1e6:.1f} MB/s")
        parts += [f"{_time_text((total - done) / rate)} left"] if total and done < total else []
    return ", ".join(parts)


def _time_text(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def _bar(share: float) -> str:
    filled = round(min(max(share, 0), 1) * CELLS)
    return f"{'█' * filled}{'░' * (CELLS - filled)}"

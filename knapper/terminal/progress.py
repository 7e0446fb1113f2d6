"""Progress of downloads and long lists of items: a bar on a terminal, occasional lines elsewhere.

All output goes to standard error. The time is passed in, so that tests control it.
"""

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Self

from agent_core.base import events
from agent_core.base.untrusted import one_line
from agent_core.views.styled_lines import cut, duration, line, meter, screen_columns, takes_colour

from .dialog import say

CELLS = 20


class StatusLine:
    """The status line; leaving the block removes it."""

    def __init__(self) -> None:
        self.shown = takes_colour(sys.stderr)
        """True if the line is drawn, because standard error is a terminal that supports it."""
        self._used = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._used:
            self._draw("")

    def count(self, done: float, total: float | None, note: str) -> None:
        """Show the progress that a running function reports."""
        bar = (
            f"{meter(done, total, CELLS)} {done / total:.0%} "
            if total and total > 0
            else f"{done:g} "
        )
        self._draw(bar + one_line(note, 40))

    def show(self, text: str) -> None:
        """Draw a text, cut to the width of the screen."""
        self._draw(cut(text, screen_columns()))

    def _draw(self, text: str) -> None:
        if self.shown:
            self._used = True
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def clear_status() -> None:
    """Remove a status line that may be there, before something else is shown."""
    if takes_colour(sys.stderr):
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


WAITING = "thinking…"


def status_text(event: events.Event) -> str:
    """Return one line about what the model is doing, if the event shows that."""
    match event:
        case events.Reading():
            return reading_text(event)
        case events.Waiting():
            return waiting_text(event)
        case events.Writing():
            return f"the model is writing a call of `{one_line(event.name, 80)}`…"
        case _:
            return ""


def waiting_text(event: events.Waiting) -> str:
    """Return one line about what the turn waits for; empty when the wait is over."""
    return f"{one_line(event.what, 80)}…" if event.what else ""


def reading_text(event: events.Reading) -> str:
    """Return one line about how much of the prompt a server has read, with the time left if known."""
    if event.done is None:
        return f"the model is reading about {event.total:,} tokens…"
    if event.done >= event.total:
        return WAITING
    left = f", about {_time_text(event.left_s)} left" if event.left_s else ""
    return f"the model is reading: {event.done:,} of {event.total:,} tokens{left}…"


_WINDOW_S = 10.0
_EVERY_S = 30.0
_LINES = 10


class Download(StatusLine):
    """The progress display of one download; leaving the block removes the bar."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._told_at, self._told_share = float("-inf"), 0.0

    def hear(self, done: int, total: int | None, note: str) -> None:
        """Update the number of bytes downloaded so far. A note is printed as a permanent line."""
        rate = self._rate(done)
        share = done / total if total else 0.0
        if note:
            self.show("")
            say([line(("dim", note))])
        if self.shown:
            self.show(f"{meter(share, 1, CELLS)} {progress_text(done, total, rate)}")
        elif (
            int(share * _LINES) > int(self._told_share * _LINES)
            or self._clock() - self._told_at >= _EVERY_S
        ):
            self._told_at, self._told_share = self._clock(), share
            say([line(progress_text(done, total, rate))])

    def _rate(self, done: int) -> float | None:
        """Return the rate over the last few seconds, without data from an earlier download, or None if unknown."""
        now = self._clock()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()  # another source started from the beginning
        self._seen.append((now, done))
        while now - self._seen[0][0] > _WINDOW_S and len(self._seen) > 2:
            self._seen.popleft()
        began, before = self._seen[0]
        return (done - before) / (now - began) if now > began and done > before else None


def progress_text(done: int, total: int | None, rate: float | None) -> str:
    """Return `412 of 1117 MB, 37%, 8.1 MB/s, 1 min 27 s left`, without the unknown parts."""
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
    return (
        f"{whole // 60} min {whole % 60} s"
        if whole < 3600
        else f"{whole // 3600} h {whole % 3600 // 60} min"
    )


_EVERY_ITEM_S = 20.0


class ProgressBar(StatusLine):
    """A counter of judged functions toward a total that may be unknown; leaving the block removes the bar."""

    def __init__(self, total: int | None) -> None:
        super().__init__()
        self.done = self.refused = 0
        self._total = total
        self._began = self._told = time.monotonic()

    def __enter__(self) -> Self:
        self.draw()
        return self

    def take(self, *, refused: bool) -> None:
        """Count one more item as done."""
        self.done += 1
        self.refused += refused
        self.draw()

    def expect(self, total: int) -> None:
        """Set the total."""
        self._total = total
        self.draw()

    def clear(self) -> None:
        """Remove the bar so that something can be printed."""
        self.show("")

    def draw(self) -> None:
        """Draw the progress."""
        now = time.monotonic()
        if self.shown:
            self.show(
                f"{meter(self.done, self._total, CELLS)} {self.text(now)}"
                if self._total
                else self.text(now)
            )
        elif now - self._told >= _EVERY_ITEM_S:
            self._told = now
            say([line(self.text(now))])

    def text(self, now: float) -> str:
        """Return `210 of 565 judged, 4 refused, 12.3 s left`."""
        of = f" of {self._total}" if self._total else ""
        parts = [f"{self.done}{of} judged", f"{self.refused} refused"]
        if self._total and self.done >= 5:
            seconds_left = (now - self._began) / self.done * (self._total - self.done)
            parts.append(f"{duration(max(seconds_left, 1))} left")
        return ", ".join(parts)

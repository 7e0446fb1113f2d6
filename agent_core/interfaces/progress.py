"""Progress of many items: a bar on a terminal, an occasional line elsewhere; all on standard error."""

import time
from collections.abc import Callable

from .question import say
from .render.verdicts import duration
from .spans import line
from .status_line import CELLS, StatusLine

_EVERY_S = 20.0


class ProgressBar:
    """A counter toward a total that may be unknown; leaving the block removes the bar."""

    def __init__(self, total: int | None, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.done = self.refused = 0
        self._total, self._what, self._clock = total, label, clock
        self._line = StatusLine()
        self._began = self._told = clock()

    def __enter__(self) -> "ProgressBar":
        self._line.__enter__()
        self.draw()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(*error)

    def count(self, *, refused: bool) -> None:
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
        self._line.show("")

    def draw(self) -> None:
        """Draw the progress."""
        now = self._clock()
        if self._line.shown:
            self._line.show(f"{self._bar()}{self.text(now)}")
        elif now - self._told >= _EVERY_S:
            self._told = now
            say([line(self.text(now))])

    def text(self, now: float) -> str:
        """Return `210 of 565 judged, 4 refused, 12.3 s left`."""
        of = f" of {self._total}" if self._total else ""
        parts = [f"{self.done}{of} {self._what}", f"{self.refused} refused"]
        if self._total and self.done >= 5:
            seconds_left = (now - self._began) / self.done * (self._total - self.done)
            parts.append(f"{duration(max(seconds_left, 1))} left")
        return ", ".join(parts)

    def _bar(self) -> str:
        filled = round(min(self.done / self._total, 1) * CELLS) if self._total else 0
        return f"{'█' * filled}{'░' * (CELLS - filled)} " if self._total else ""

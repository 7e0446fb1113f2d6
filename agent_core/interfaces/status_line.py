"""A line on standard error that is redrawn with the progress. It is shown on a terminal only."""

import sys

from agent_core.base.untrusted import one_line

from .columns import cut, meter
from .spans import takes_colour
from .wrap import screen_columns

CELLS = 20


class StatusLine:
    """The status line; leaving the block removes it."""

    def __init__(self) -> None:
        self._shown = takes_colour(sys.stderr)
        self._used = False

    def __enter__(self) -> "StatusLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._used:
            self._draw("")

    def count(self, done: float, total: float | None, note: str) -> None:
        """Show the progress that a running function reports."""
        bar = f"{meter(done, total, CELLS)} {done / total:.0%} " if total and total > 0 else f"{done:g} "
        self._draw(bar + one_line(note, 40))

    @property
    def shown(self) -> bool:
        """True if the line is drawn at all: standard error is a terminal that supports it."""
        return self._shown

    def show(self, text: str) -> None:
        """Draw this text, cut to the width of the screen."""
        self._draw(cut(text, screen_columns()))

    def _draw(self, text: str) -> None:
        if self._shown:
            self._used = True
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

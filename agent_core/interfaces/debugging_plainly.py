"""The user at a `(debug)` prompt without a screen: plain lines on standard error, without colors."""

from collections.abc import Awaitable, Callable, Iterable

from agent_core.base.errors import UsageError
from agent_core.functions.debug import Command, DebugStop

from .spans import Line
from .stopped import explained, stop_parts, typed_command
from .views import row_lines

MARK = "(debug) "
Answers = Callable[[str], Awaitable[str | None]]


class PlainHuman:
    """A plain debugger front end: `fresh` reads a line that was not typed ahead; `answers` reads within a stop."""

    def __init__(self, show: Callable[[Iterable[Line]], None], answers: Answers, fresh: Answers) -> None:
        self._show = show
        self._answers = answers
        self._fresh = fresh
        self._is_on = False  # in the middle of a session: what is typed ahead is for it
        self._typed = ""
        self._last = Command("")

    async def stopped(self, stop: DebugStop) -> Command:
        """Return the user's command; the end of input, or Ctrl-C, ends the call."""
        above, source, below = stop_parts(stop, self._last)
        self._show([*above, *row_lines(source), *below])
        while True:
            typed = await (self._answers if self._is_on else self._fresh)(MARK)
            self._is_on = True
            self._typed = self._typed if typed is not None and not typed.strip() else (typed or "quit").strip()
            if not self._typed:
                continue
            try:
                self._last = typed_command(self._typed)
            except UsageError as error:
                self._show(explained(error))
                continue
            self._is_on = self._last.do not in ("quit", "continue")
            return self._last

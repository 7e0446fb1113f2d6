"""The printed output of a running call, reported as it arrives: masked, and at a limited rate.

Masking needs secrets whole, so the end of a text that may be the beginning of one waits for what follows.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from .session import CallSecrets

EVERY_S: Final = 0.05  # at most 20 pieces a second, each with all that came meanwhile


class Printing:
    """The printed output of one call, from its start to its end."""

    def __init__(self, tell: Callable[[str], None], secrets: CallSecrets) -> None:
        self._tell = tell
        self._secrets = secrets
        self._loop = asyncio.get_running_loop()
        self._held = ""
        self._next = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    def hear(self, text: str) -> None:
        """Take a piece, of any size."""
        self._held += text
        if self._waiting is None:
            self._waiting = self._loop.call_at(max(self._next, self._loop.time()), self._pass_on)

    def close(self) -> None:
        """Report the rest, as nothing more will arrive."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._say(len(self._held))

    def _pass_on(self) -> None:
        self._waiting = None
        self._next = self._loop.time() + EVERY_S
        self._say(self._secrets.settled(self._held))

    def _say(self, size: int) -> None:
        text, self._held = self._held[:size], self._held[size:]
        if text:
            self._tell(self._secrets.words(text))

"""What was shown of a reply that is still coming, kept in case the program is killed.

Nothing is written for a reply that is there within a second, no piece waits for the disk, and the disk is not waited
for: what the system was given outlives the program, if not a power cut.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import StorageError

if TYPE_CHECKING:
    from .turn import Turn

_EVERY_S: Final = 1.0


class ReplyKeeper:
    """The text of one reply as far as it was shown; a block on it ends before the reply is appended."""

    def __init__(self, turn: "Turn") -> None:
        self._turn = turn
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(self, text: str) -> None:
        """Add a piece, to be kept within a second."""
        self._pieces.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._begin)

    def _begin(self) -> None:
        self._work = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        turn, count = self._turn, len(self._pieces)
        with suppress(StorageError):  # the append that comes next says so
            await turn.store.keep_streamed(turn.id, turn.attempt, turn.journal.n, self.text)
        if len(self._pieces) > count:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._begin)
        else:
            self._timer = None

    async def __aenter__(self) -> "ReplyKeeper":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._work is not None:
            await asyncio.wait({self._work})
            if self._timer is not None:
                self._timer.cancel()  # it was set again meanwhile

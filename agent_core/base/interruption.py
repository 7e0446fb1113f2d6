"""Interruption of a running turn from outside.

`Interruption` works as `asyncio.timeout` does: what runs inside the block is canceled when `request` is called and the
block is left with `Interrupted`, while a cancellation by anybody else stays a cancellation.
"""

import asyncio
from types import TracebackType


class Interrupted(Exception):
    """Raised if the user asked for the turn to end."""


class Interruption:
    """One turn's stop switch. The block can be entered repeatedly, and stays closed once a stop is requested."""

    def __init__(self) -> None:
        self.requested = False
        self._inside: set[asyncio.Task[object]] = set()

    def request(self) -> None:
        """End the turn: cancel what is inside the block, and let nobody enter it any more."""
        self.requested = True
        for task in self._inside:
            task.cancel()

    async def __aenter__(self) -> None:
        if self.requested:
            raise Interrupted
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._inside.discard(task)
        if self.requested and kind is asyncio.CancelledError and task.uncancel() == 0:
            raise Interrupted from error

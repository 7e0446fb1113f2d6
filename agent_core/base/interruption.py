"""Interruption of a running turn from outside.

`Interruption` works like `asyncio.timeout`: `request` cancels the code inside the block, and the block raises
`Interrupted`. A cancellation from anywhere else stays a cancellation.
"""

import asyncio
from types import TracebackType


class Interrupted(Exception):
    """Raised if the user asked to end the turn."""


class Interruption:
    """The stop switch of one turn. The block can be entered repeatedly until a stop is requested."""

    def __init__(self) -> None:
        self.requested = False
        self._inside: set[asyncio.Task[object]] = set()

    def request(self) -> None:
        """End the turn: cancel the code inside the block, and refuse further entries."""
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

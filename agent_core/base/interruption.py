"""Interruption of a running turn from outside, and work that must not hold up the event loop meanwhile.

`Interruption` works as `asyncio.timeout` does: what runs inside the block is canceled when `request` is called and the
block is left with `Interrupted`, while a cancellation by anybody else stays a cancellation.

What runs aside, on possibly large values, has to be Python all through, which shares the interpreter every few
milliseconds: one long step in C (a regular expression, a sort, a parse) would hold the event loop up from a thread,
too, and is bounded by itself.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from sandbox.wire.values import is_large


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


P = ParamSpec("P")
T = TypeVar("T")
LARGE: Final = 4_000
"""Characters of a text: what is done with a shorter one takes no longer than the event loop can wait."""


def bulk(value: Any) -> int:  # Any: what `sandbox.wire.values` carries
    """Return the size by which a value is processed: that of a large text if it has many parts."""
    return LARGE + 1 if is_large(value) else 0


async def aside(size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of the work, which runs in a thread if its input is large."""
    return await asyncio.to_thread(work, *args, **named) if size > LARGE else work(*args, **named)

"""Helpers that run work on possibly large values outside the event loop.

It has to be Python all through, which shares the interpreter every few milliseconds: one long step in C (a regular
expression, a sort, a parse) would hold the event loop up from a thread, too, and is bounded by itself.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from sandbox.wire.values import is_large

P = ParamSpec("P")
T = TypeVar("T")
LARGE: Final = 4_000
"""Characters of a text: what is done with a shorter one takes no longer than the event loop can wait."""
_HEAVY: Final = 64 << 10
# One after another: several threads would only take turns with each other, and the event loop would wait for all.
_lane: Final = ThreadPoolExecutor(1, "heavy")


def bulk(value: Any) -> int:  # Any: what `sandbox.wire.values` carries
    """Return the size by which a value is processed: that of a large text if it has many parts."""
    return LARGE + 1 if is_large(value) else 0


async def aside(size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of the work, which runs in a thread if its input is large."""
    if size <= LARGE:
        return work(*args, **named)
    return await (one_at_a_time if size > _HEAVY else asyncio.to_thread)(work, *args, **named)


async def one_at_a_time(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of heavy work, which waits for a thread that all such work shares."""
    run = partial(copy_context().run, work, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(_lane, run)

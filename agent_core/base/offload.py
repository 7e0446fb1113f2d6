"""Runs work on possibly large values outside the event loop.

The work must be pure Python, which yields the interpreter every few milliseconds. A single long step in C (a regular
expression, a sort, a parse) would block the event loop even from a thread, so such a step must be bounded by itself.
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
"""Characters: processing a shorter text is fast enough for the event loop."""
PER_ENTRY: Final = 40
"""The cost of reading one journal entry, in characters."""
_HEAVY: Final = 64 << 10
# One at a time: several threads would only compete with each other and delay the event loop.
_lane: Final = ThreadPoolExecutor(1, "heavy")


def bulk(value: Any) -> int:  # Any: what `sandbox.wire.values` carries
    """Return the size to use for a value in `aside`: more than `LARGE` if it has many parts, else 0."""
    return LARGE + 1 if is_large(value) else 0


async def aside(size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of the work; it runs in a thread if its input is large."""
    if size <= LARGE:
        return work(*args, **named)
    return await (one_at_a_time if size > _HEAVY else asyncio.to_thread)(work, *args, **named)


async def one_at_a_time(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of heavy work, which runs in the one thread shared by all such work."""
    run = partial(copy_context().run, work, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(_lane, run)

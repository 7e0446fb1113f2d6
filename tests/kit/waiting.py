"""Waiting for what another process or thread does: for ten seconds, and then it is said what came instead."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 10.0
MAX_PATIENCE_S = 60.0
_LOOK_S = 0.02


def patience_s() -> float:
    """Return ten seconds; more where the machine has more work than processors, as when others test on it, too."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(MAX_PATIENCE_S, PATIENCE_S * max(1.0, waiting))


async def until(
    look: Callable[[], Awaitable[T]],
    is_so: Callable[[T], object] = bool,
    most_s: float | None = None,
) -> T:
    """Look again and again until the condition holds; return what was seen. Work that takes long gets `most_s`.

    Raises:
        AssertionError: it did not hold in time; the message has what was seen last.
    """
    most_s = patience_s() if most_s is None else most_s
    end = time.monotonic() + most_s
    while not is_so(seen := await look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {most_s:.0f} s; what is there instead: {seen!r}")
        await asyncio.sleep(_LOOK_S)
    return seen


async def until_it_is(look: Callable[[], T], is_so: Callable[[T], object] = bool) -> T:
    """Do as `until` does, with something that need not be awaited."""

    async def seen() -> T:
        return look()

    return await until(seen, is_so)

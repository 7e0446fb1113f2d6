"""CPU time that can be compared with a limit on any machine, however slow it is at the moment."""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

_TRIES = 5
_KNOWN_S = 0.008
"""The seconds of `_known` on the reference machine, at its slower hours."""


def time_of(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this thread that the work takes."""
    with uncollected():
        began = time.thread_time()
        work()
        return time.thread_time() - began


def least_s(most_s: float, measure: Callable[[], float]) -> float:
    """Return the least measured time, scaled to the reference machine; stop at the first within `most_s`.

    Slow code is slow each time; a busy neighbor on the machine is not.
    """
    found: list[float] = []
    while len(found) < _TRIES and not any(seconds <= most_s for seconds in found):
        found.append(measure() / slowness())
    return min(found)


async def least_s_of(most_s: float, measure: Callable[[], Awaitable[float]]) -> float:
    """Do as `least_s` does, with something to await."""
    found: list[float] = []
    while len(found) < _TRIES and not any(seconds <= most_s for seconds in found):
        found.append(await measure() / slowness())
    return min(found)


def slowness() -> float:
    """Return how many times longer a known piece of work takes now than on the reference machine; at least 1."""
    return max(1.0, max(_known(), _known()) / _KNOWN_S)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection in the block: a scan of all objects of a test run would distort the measurement."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _known() -> float:
    with uncollected():
        began, total = time.thread_time(), 0
        for number in range(100_000):
            total += number * number % 7
        return time.thread_time() - began

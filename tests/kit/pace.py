"""Processor time that can be held to a bound on every machine, however slow it is at the moment."""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

_TRIES = 5
_KNOWN_S = 0.008
"""What `_known` takes on the machine for which the bounds were written, at its slower hours."""


def time_of(work: Callable[[], object]) -> float:
    """Return the seconds of this thread's processor time that the work takes."""
    with uncollected():
        began = time.thread_time()
        work()
        return time.thread_time() - began


def least_s(most_s: float, measure: Callable[[], float]) -> float:
    """Measure once, and again where it took longer than it may: the least, in seconds of the noted machine.

    What is slow in itself is slow each time; a neighbor on the machine is not.
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
    """Return how many times longer a known piece of work takes now than on the noted machine; at least 1."""
    return max(1.0, max(_known(), _known()) / _KNOWN_S)


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage within: a walk over all that a test run holds would be taken for the work's own time."""
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

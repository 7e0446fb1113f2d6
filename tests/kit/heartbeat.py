"""The longest time that the event loop was blocked, measured by a heartbeat every millisecond."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.kit.pace import least_s_of

MOST_MS = 100.0
"""The longest time for which untrusted input may block the event loop."""
_BEAT_S = 0.001


@dataclass
class Stall:
    """The longest pause: CPU time of the loop's thread, which load hardly affects, and wall-clock time."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Stall]:
    """Measure the longest pause of the event loop within the block."""
    stall = Stall()
    gc.collect()
    gc.freeze()  # objects that existed before are exempt from garbage collection in this block and in later ones
    heart = asyncio.create_task(_beat(stall))
    await asyncio.sleep(0)  # the first beat
    try:
        yield stall
        await asyncio.sleep(
            2 * _BEAT_S
        )  # one more beat: the block may have ended in its longest pause
    finally:
        heart.cancel()


async def stall_of(work: Callable[[], Awaitable[object]], within_s: float = 60) -> Stall:
    """Return the stall of repeatable work: the shortest of several runs if the first is too long for this machine.

    Raises:
        TimeoutError: the work took longer than `within_s`.
    """
    stalls: list[Stall] = []

    async def stall_s() -> float:
        async with asyncio.timeout(within_s), heartbeat() as stall:
            await work()
        stalls.append(stall)
        return stall.cpu_ms / 1000

    cpu_s = await least_s_of(MOST_MS / 1000, stall_s)
    return Stall(cpu_s * 1000, min(stall.wall_ms for stall in stalls))


async def _beat(stall: Stall) -> None:
    clock, processor = time.perf_counter(), time.thread_time()
    while True:
        await asyncio.sleep(_BEAT_S)
        clock_now, processor_now = time.perf_counter(), time.thread_time()
        stall.wall_ms = max(stall.wall_ms, (clock_now - clock - _BEAT_S) * 1000)
        stall.cpu_ms = max(stall.cpu_ms, (processor_now - processor) * 1000)
        clock, processor = clock_now, processor_now

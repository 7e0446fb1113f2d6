"""Work in threads, so that the event loop never waits: on possibly large values, and on the connections of a store.

Work on values must be pure Python, which yields the interpreter every few milliseconds. A single long step in C (a
regular expression, a sort, a parse) would block the event loop even from a thread, so it must be bounded by itself.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar

from sandbox.wire.values import is_large

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
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


async def to_its_end(
    work: Coroutine[Any, Any, T],  # Any: nothing is sent to it
) -> tuple[T, asyncio.CancelledError | None]:
    """Return the result of work that no cancellation cuts off, and the one that came meanwhile, to be raised then.

    Raises:
        CancelledError: the work failed, and its caller was canceled.
    """
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None and (task.cancelled() or task.exception() is not None):
        raise cancellation
    return task.result(), cancellation


async def results_of(
    work: Callable[[Item], Awaitable[T]], items: Sequence[Item], at_once: int
) -> list[T]:
    """Return the result of the work on each item, at most so many of them at once.

    The event loop goes on after each one. A task for each item, as with a semaphore, would begin thousands in one step
    of the loop, and end them in it where the work needs no thread.
    """
    results: dict[int, T] = {}
    waiting = iter(enumerate(items))

    async def take_turns() -> None:
        for number, item in waiting:
            results[number] = await work(item)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(take_turns()) for _ in range(min(at_once, len(items)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return list(map(results.__getitem__, range(len(items))))


@asynccontextmanager
async def in_background(
    *work: Coroutine[Any, Any, None],
) -> AsyncIterator[None]:  # Any: nothing is sent to it
    """Run work while the block runs, and cancel it at the end."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


GRACE_S: Final = 2.0


class WorkThreads:
    """The threads that use connections. One thread runs work in the order of submission, always to its end."""

    def __init__(self, count: int = 1) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="knapper-storage")

    async def run(self, work: Callable[[], T], interrupt: Callable[[], None] = lambda: None) -> T:
        """Return the result of the work. A canceled caller leaves when the work is done, so nothing runs unobserved.

        Work that takes long after a cancellation is interrupted.
        """
        waiter = _Waiter[T](asyncio.get_running_loop())
        # Every step of a turn runs this: a future of the executor, and one around it, would double the cost.
        self._executor.submit(waiter.carry_out, work)
        try:
            return await waiter.result
        except asyncio.CancelledError:
            await waiter.leave(interrupt)
            raise

    def close(self) -> None:
        """End the threads when their work is done."""
        self._executor.shutdown(wait=False)


class _Waiter(Generic[T]):
    """A caller in the loop that waits for work in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.result: asyncio.Future[T] = loop.create_future()
        self._over: asyncio.Future[None] | None = None
        self._is_over = False
        self._loop = loop

    def carry_out(self, work: Callable[[], T]) -> None:
        """Do the work, in the thread."""
        try:
            told = partial(asyncio.Future.set_result, self.result, work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            told = partial(asyncio.Future.set_exception, self.result, error)
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(self._end, told)

    def _end(self, told: Callable[[], None]) -> None:
        self._is_over = True
        if not self.result.done():
            told()
        elif self._over is not None and not self._over.done():
            self._over.set_result(None)

    async def leave(self, interrupt: Callable[[], None]) -> None:
        """Wait until the work is over, without its result."""
        if not self._is_over:
            self._over = self._loop.create_future()
            if not (await asyncio.wait([self._over], timeout=GRACE_S))[0]:
                interrupt()
                await asyncio.wait([self._over])

"""The threads in which a store works, so that the event loop never waits for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, Generic, TypeVar

T = TypeVar("T")
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

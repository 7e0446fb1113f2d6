"""The threads in which a store works, so that nobody waits on the loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
GRACE_S: Final = 2.0


class WorkThreads:
    """The threads that touch connections. In one, work runs in the order of submission; it always runs to its end."""

    def __init__(self, count: int = 1) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="toolwright-storage")

    async def run(self, work: Callable[[], T], interrupt: Callable[[], None] = lambda: None) -> T:
        """Return the result of the work. A cancelled waiter leaves when the work is done, so nothing runs unobserved.

        Work that takes long then is interrupted.
        """
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not (await asyncio.wait([future], timeout=GRACE_S))[0]:
                interrupt()
                await asyncio.wait([future])
            raise

    def close(self) -> None:
        """End the threads when their work is done."""
        self._executor.shutdown(wait=False)

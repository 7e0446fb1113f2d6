"""The one thread that touches the connection. Work that was begun is finished, even if its waiter is cancelled."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
GRACE_S = 2.0


class WriterThread:
    """Worker thread that runs work in the order of submission."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="toolwright-storage")

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
        """End the thread when its work is done."""
        self._executor.shutdown(wait=False)

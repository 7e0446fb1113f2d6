"""The one thread that touches the connection. What was begun is finished, even if its waiter is cancelled."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
GRACE_S = 2.0


class Writer:
    """Runs work one after another, in the order of asking."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="toolwright-storage")

    async def run(self, work: Callable[[], T], interrupt: Callable[[], None] = lambda: None) -> T:
        """Return what the work returns. A cancelled waiter leaves when the work is done: nothing happens behind it.

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

"""The one thread that touches the connection. What was begun is finished, even if its waiter is cancelled."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Writer:
    """Runs work one after another, in the order of asking."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="toolwright-storage")

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns. A cancelled waiter leaves when the work is done, so that nothing happens behind it."""
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise

    def close(self) -> None:
        """End the thread when its work is done."""
        self._executor.shutdown(wait=False)

"""The lock for changing files of a workspace, held by one process at a time.

Between the look at a file and the rename over it, and from there to the rows, nobody else may write:
otherwise the one who comes second takes back what the first has told as done.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.base.errors import WorkspaceError
from agent_core.storage import open_lock


class NoTurn(WorkspaceError):
    """Another process holds the lock, or it cannot be created. Nothing was changed."""

    code = "no-turn"


_NAME = "write.lock"
_PATIENCE_S = 10.0
_PAUSE_S = 0.01


@asynccontextmanager
async def only_writer(state: Path) -> AsyncIterator[None]:
    """Hold the lock. The kernel releases it when the process ends, however it ends.

    Raises:
        NoTurn: another process keeps it.
    """
    try:
        descriptor = open_lock(state / _NAME)
    except OSError as error:
        raise NoTurn(f"The lock `{state / _NAME}` cannot be made: {error.strerror}.") from error
    try:
        await _take(descriptor)
        yield
    finally:
        os.close(descriptor)


async def _take(descriptor: int) -> None:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not _has(descriptor):  # noqa: ASYNC110 - the kernel tells no event of another process
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError as error:
        raise NoTurn("Another process is changing functions and does not finish.", fix="Try again.") from error


def _has(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

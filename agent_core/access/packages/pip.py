"""pip of this interpreter, as a process: without keys in its environment, with its own group, a time limit and a size
limit.

It alone talks to the user's package index, as the user configured it. It never builds: wheels only.
"""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from agent_core.base import pip_process
from agent_core.base.own_environment import environment as own_environment
from agent_core.base.pip_process import environment
from agent_core.base.untrusted import one_line

from .failures import PackagesError, meaning

Tell: TypeAlias = Callable[[str], None]
ALWAYS: Final = ("--only-binary=:all:", "--no-input", "--no-color", "--progress-bar=off", "--retries=2")
_LOOK_S: Final = 0.25
_LINES: Final = 200
_TOLD: Final = ("Collecting ", "Downloading ", "Installing ", "Processing ")


class Pip:
    """A runner of commands in a folder, one after another; it reports the progress that pip prints."""

    def __init__(self, folder: Path, tell: Tell, most_bytes: int) -> None:
        self._folder = folder
        self._tell = tell
        self._most_bytes = most_bytes
        self._said: deque[str] = deque(maxlen=_LINES)

    async def run(self, *arguments: str, within_s: float) -> Sequence[str]:
        """Run a command and return what it printed.

        Raises:
            PackagesError: it failed, took too long, or wrote more than it may.
        """
        self._said.clear()
        scratch = self._folder / "tmp"
        scratch.mkdir(exist_ok=True)
        process = await pip_process.start(
            *arguments,
            cwd=self._folder,
            env=environment(own_environment(), scratch),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            umask=0o022,
        )
        try:
            async with asyncio.timeout(within_s):
                await self._watched(process)
        except TimeoutError as error:
            message = f"pip did not finish within {within_s:g} s, so it was ended and nothing was installed."
            raise PackagesError(message, fix="Try again when the network is faster.") from error
        finally:
            await _end(process)
        if process.returncode:
            raise meaning(self._said)
        return tuple(self._said)

    async def _watched(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        reading = asyncio.ensure_future(self._read(process.stdout))
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=_LOOK_S)
                if await asyncio.to_thread(size_of, self._folder) > self._most_bytes:
                    raise too_large(self._most_bytes)
        finally:
            reading.cancel()
        await process.wait()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        tail = b""
        while chunk := await stream.read(1 << 14):
            *lines, tail = (tail + chunk).split(b"\n")
            tail = tail[-4096:]
            for line in lines:
                self._hear(line.decode("utf-8", "replace").strip())
        self._hear(tail.decode("utf-8", "replace").strip())

    def _hear(self, line: str) -> None:
        self._said.append(line)
        if line.startswith(_TOLD):
            self._tell(one_line(line.partition(" from ")[0], 100))


def too_large(most_bytes: int) -> PackagesError:
    """Return the error for more than may be installed."""
    message = f"What would be installed is larger than {most_bytes >> 20} MiB, so nothing was."
    return PackagesError(message, fix="A human can raise the setting `grants.packages_mib`.")


def size_of(folder: Path) -> int:
    """Return the size in bytes of all files below a folder, as far as they stay during the count."""
    total, waiting = 0, [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        total += entry.stat(follow_symlinks=False).st_size
    return total


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and its whole group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()

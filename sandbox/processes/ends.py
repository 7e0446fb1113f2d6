"""The host's end of a worker: the protocols of its handle and of its pools, and its resource usage.

A worker is a separate process, or an instance in a child process. Its usage is what the kernel reports; the worker's
own claims do not count. A reply does not wait for the reaping: usage is measured after the reply, before the worker is
killed. The files for that are opened when the worker is created, before anyone waits for it.
"""

import contextlib
import os
import sys
import time
from asyncio import Future
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ..access import NOTHING, Access
from ..policy import Limits

if TYPE_CHECKING:
    from .compilation import Compiled


OnOutput: TypeAlias = Callable[[str], None]
"""Gets printed output, piece by piece, up to the cap."""
Death: TypeAlias = Future[tuple[dict[str, Any], Any]]
"""The end of a worker, as JSON: the exit `status`, `cpu_s`, `memory`, and perhaps the `cause` as text."""

_CLOCK_OF_A_PROCESS: Final = 2  # the kernel's clock id of a process: ~pid << 3 | 2
_MAX_TEXT: Final = 1 << 14  # bytes to read; all files of the kernel here are smaller
_ASK: Final = 0xC040FF0B  # PIDFD_GET_INFO: 64 bytes that begin with a mask of requested fields; since Linux 6.13
_ASKED: Final = (1).to_bytes(8, sys.byteorder).ljust(64, b"\0")
_NUMBER: Final = slice(16, 20)
_OFTEN_S: Final = 0.02  # between two measurements, each of which takes 0.01 ms


@dataclass(frozen=True, slots=True)
class Used:
    """The CPU seconds of all threads together, and the peak of resident memory in bytes. None means unknown."""

    cpu_s: float | None = None
    memory: int | None = None


class Sight(Protocol):
    """The resource usage of a worker that the host can see without asking it."""

    @property
    def pid(self) -> int:
        """The id of its process, or of the one that it is in; 0 if unknown."""

    def processor_time(self) -> float:
        """Return the CPU seconds that it has used; 0 if unknown."""

    def waited(self) -> float:
        """Return the seconds that it waited for a processor; 0 if unknown."""

    def used(self, since: float = 0.0) -> Used:
        """Return the usage so far; `since` is subtracted from the CPU time."""


class WorkerEnd(Protocol):
    """The host's handle on one worker. Only `receive` waits for function code."""

    @property
    def sight(self) -> Sight:
        """The resource usage of the worker."""

    async def receive(self) -> bytes:
        """Return data from the worker, or b"" if it has ended the conversation."""

    async def send(self, data: bytes) -> None:
        """Send one packed frame. Raise ConnectionError if the worker has died."""

    def read_output(self) -> bytes | None:
        """Return some printed output, b"" at its end, or None if there is none now."""

    def listen(self, heard: Callable[[], None] | None) -> None:
        """Call `heard` whenever there is output; None removes the callback."""

    def kill(self) -> None:
        """Kill the worker."""

    def interrupt(self) -> bool:
        """Stop the worker at its next line of function code. Return False if it has ended."""

    def end_program(self) -> bool:
        """End the program that the worker runs, so that it replies with its variables. Return False if it cannot."""


class WorkerPool(Protocol):
    """A pool that lends workers for certain limits and a certain access."""

    async def take(self, limits: Any) -> WorkerEnd:  # Rlimits
        """Return a worker for exclusive use. The caller must give it back in any case."""

    def give_back(self, worker: Any) -> Death:  # WorkerEnd of this pool
        """End the worker."""


class PoolChoice(Protocol):
    """The pools of one sandbox."""

    @property
    def lean(self) -> WorkerPool:
        """The pool for calls without special needs."""

    async def get(
        self, ahead: tuple[str, ...], limits: Limits, access: Access = NOTHING
    ) -> WorkerPool:
        """Return the pool for a call."""

    def ahead_for(self, closure: "Mapping[str, Compiled]", text: str) -> tuple[str, ...]:
        """Return the names to preload for this code."""

    def resources(self) -> dict[str, str]:
        """Return the limits for all workers together."""

    def __len__(self) -> int: ...
    async def aclose(self) -> None:
        """End all pools."""


@dataclass(frozen=True, slots=True)
class WorkerUsage:
    """The resource usage of a worker: its process id and open `/proc` status file, or 0 and -1 if it is not visible."""

    pid: int = 0
    status: int = -1

    @classmethod
    def of(cls, pid: int) -> "WorkerUsage":
        """Open the status of a process, which must not be reaped before this is closed."""
        with contextlib.suppress(OSError):
            return cls(pid, os.open(f"/proc/{pid}/status", os.O_RDONLY)) if pid > 0 else cls()
        return cls(pid)

    def close(self) -> None:
        """Close the descriptor."""
        if self.status >= 0:
            os.close(self.status)

    def processor_time(self) -> float:
        """Return the CPU seconds of the process, also if it has ended but is not reaped yet; 0 if unknown."""
        return _processor_time(self.pid) or 0.0

    def waited(self) -> float:
        """Return the seconds that its first thread waited for a processor; 0 if unknown."""
        return _wait_seconds(f"/proc/{self.pid}/schedstat") if self.pid > 0 else 0.0

    def used(self, since: float = 0.0) -> Used:
        """Return the usage so far; `since` is subtracted from the CPU time.

        The memory is the peak resident one of a living process, including pages shared with the zygote.
        """
        now = _processor_time(self.pid)
        status = b""
        if sys.platform == "linux" and self.status >= 0:
            with contextlib.suppress(OSError):
                status = os.pread(self.status, _MAX_TEXT, 0)
        words = status.partition(b"\nVmHWM:")[2].split(maxsplit=1)
        return Used(
            None if now is None else max(0.0, now - since), int(words[0]) << 10 if words else None
        )


NOT_SEEN: Final = WorkerUsage()


class ProcessorWait:
    """The time since its creation that a worker and this thread waited for a processor."""

    def __init__(self, sight: Sight) -> None:
        self._worker = sight
        self._before_s, self._seconds, self._looked = self._now(), 0.0, time.monotonic()

    def _now(self) -> float:
        return self._worker.waited() + _wait_seconds("/proc/thread-self/schedstat")

    def seconds(self) -> float:
        """Return the seconds so far; the value never decreases, even after the worker has gone."""
        now = time.monotonic()
        if now - self._looked > _OFTEN_S:
            self._looked, self._seconds = now, max(self._seconds, self._now() - self._before_s)
        return self._seconds


def _processor_time(pid: int) -> float | None:
    if sys.platform == "linux" and pid:
        with contextlib.suppress(OSError):
            return time.clock_gettime(~pid << 3 | _CLOCK_OF_A_PROCESS)
    return None


def _wait_seconds(path: str) -> float:
    try:
        return int(_read(path).split()[1]) / 1e9
    except (OSError, IndexError):  # the kernel does not report it, or the process was reaped
        return 0.0


def number_of(pidfd: int) -> int:
    """Return the same as `pid_of`, but faster. The descriptor must be a pidfd: others may misinterpret the ioctl."""
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415 - Windows does not have it, and imports this module too

    buffer = bytearray(_ASKED)
    try:
        fcntl.ioctl(pidfd, _ASK, buffer)
    except OSError:  # an older kernel, or a process that is not visible or was reaped
        return pid_of(pidfd)
    return int.from_bytes(buffer[_NUMBER], sys.byteorder)


def pid_of(pidfd: int) -> int:
    """Return the process id in our namespace; 0 if it was reaped or is not visible, -1 if this is not a pidfd."""
    _before, is_process, after = _read(f"/proc/self/fdinfo/{pidfd}").partition(b"\nPid:\t")
    return max(0, int(after.split(b"\n", 1)[0])) if is_process else -1


def descends(pid: int, ancestor: int) -> bool:
    """Return whether a process is a child or grandchild of another; also True if it has ended or is not visible."""
    for _generation in range(2 if pid >= 0 else 0):
        try:
            pid = (
                int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1]) if pid else ancestor
            )
        except OSError:
            return True
        if pid == ancestor:
            return True
    return False


def threads_of(pid: int) -> int:
    """Return the number of threads of a process, 1 if it is not visible or has ended."""
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[17])
    except OSError:
        return 1


def _read(path: str) -> bytes:
    """Return the content of a file in `/proc`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _MAX_TEXT)
    finally:
        os.close(descriptor)

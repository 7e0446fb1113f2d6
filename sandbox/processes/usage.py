"""Resource usage of a worker, reported by the kernel while the worker runs. Nothing that the worker says counts.

A reply does not wait for the reaping: whoever has been heard is looked at before it is killed. What that look needs is
found and opened when the worker is made, which is before anybody waits for it.
"""

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .ends import Sight

_CLOCK_OF_A_PROCESS: Final = 2  # as the kernel spells it: ~pid << 3 | 2
_MAX_TEXT: Final = 1 << 14  # of a file of the kernel's, all of which are smaller
_ASK: Final = 0xC040FF0B  # PIDFD_GET_INFO: 64 bytes that begin with what is asked for; not before Linux 6.13
_ASKED: Final = (1).to_bytes(8, sys.byteorder).ljust(64, b"\0")
_NUMBER: Final = slice(16, 20)
_OFTEN_S: Final = 0.02  # a look at what was waited for costs a hundredth of a millisecond


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of processor time of all threads together, and the peak of resident bytes. None means unknown."""

    cpu_s: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerUsage:
    """A worker as the host sees it: its number and its open kernel status, or 0 and -1 if it is not visible."""

    pid: int = 0
    status: int = -1

    @classmethod
    def of(cls, pid: int) -> "WorkerUsage":
        """Open the view of a process that is not reaped before this is closed."""
        with contextlib.suppress(OSError):
            return cls(pid, os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)) if pid > 0 else cls()
        return cls(pid)

    def close(self) -> None:
        """Close the descriptor."""
        if self.status >= 0:
            os.close(self.status)

    def processor_time(self) -> float:
        """Return the seconds since the process was forked, also if it ended and is not reaped yet; 0 if unknown."""
        return _processor_time(self.pid) or 0.0

    def waited(self) -> float:
        """Return the seconds in which its first thread was ready and had no processor; 0 if unknown."""
        return _wait_seconds(f"/proc/{self.pid}/schedstat") if self.pid > 0 else 0.0

    def used(self, since: float = 0.0) -> Used:
        """Return the usage until now, with processor time counted from `since` on."""
        now = _processor_time(self.pid)
        return Used(None if now is None else max(0.0, now - since), self._peak())

    def _peak(self) -> int | None:
        """Return the peak of resident bytes of a living process, including what it shares with the zygote."""
        try:
            status = os.pread(self.status, _MAX_TEXT, 0) if self.status >= 0 else b""
        except OSError:
            return None
        words = status.partition(b"\nVmHWM:")[2].split(maxsplit=1)
        return int(words[0]) << 10 if words else None


NOT_SEEN: Final = WorkerUsage()


class ProcessorWait:
    """The time, from its making on, in which a worker or this thread was ready and had no processor."""

    def __init__(self, sight: "Sight") -> None:
        self._worker = sight
        self._before_s, self._seconds, self._looked = self._now(), 0.0, time.monotonic()

    def _now(self) -> float:
        return self._worker.waited() + _wait_seconds("/proc/thread-self/schedstat")

    def seconds(self) -> float:
        """Return the seconds until now; they never become fewer, also when the worker is gone."""
        now = time.monotonic()
        if now - self._looked > _OFTEN_S:
            self._looked, self._seconds = now, max(self._seconds, self._now() - self._before_s)
        return self._seconds


def _processor_time(pid: int) -> float | None:
    try:
        return time.clock_gettime(~pid << 3 | _CLOCK_OF_A_PROCESS) if pid else None
    except (OSError, AttributeError):  # Windows has no such clocks
        return None


def _wait_seconds(path: str) -> float:
    try:
        return int(_read(path).split()[1]) / 1e9
    except (OSError, IndexError):  # a kernel that does not tell, or a process that was reaped
        return 0.0


def number_of(pidfd: int) -> int:
    """Return the same as `pid_of`, for a descriptor that is certainly a process's: others would misread the order."""
    import fcntl  # noqa: PLC0415 - Windows does not have it, and imports this module too

    buffer = bytearray(_ASKED)
    try:
        fcntl.ioctl(pidfd, _ASK, buffer)
    except OSError:  # an older kernel; one that is not seen or reaped
        return pid_of(pidfd)
    return int.from_bytes(buffer[_NUMBER], sys.byteorder)


def pid_of(pidfd: int) -> int:
    """Return the process's number as seen from here; 0 if it has been reaped or is not visible; -1 for no process."""
    _before, is_process, after = _read(f"/proc/self/fdinfo/{pidfd}").partition(b"\nPid:\t")
    return max(0, int(after.split(b"\n", 1)[0])) if is_process else -1


def descends(pid: int, ancestor: int) -> bool:
    """Return whether a process was forked by another or by its child, or has ended or is not visible from here."""
    for _generation in range(2 if pid >= 0 else 0):
        try:
            pid = int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1]) if pid else ancestor
        except OSError:
            return True
        if pid == ancestor:
            return True
    return False


def threads_of(pid: int) -> int:
    """Return the number of a process's threads, 1 if it is not visible from here or has ended."""
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[17])
    except OSError:
        return 1


def reaped(pid: int) -> tuple[int, Used]:
    """Wait for a child's end. Return its exit status, and its total usage."""
    _pid, status, spent = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), Used(spent.ru_utime + spent.ru_stime, spent.ru_maxrss << 10)


def _read(path: str) -> bytes:
    """Return the content of a kernel file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_TEXT)
    finally:
        os.close(descriptor)

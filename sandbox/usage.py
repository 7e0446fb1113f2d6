"""What a worker has used, as the kernel tells the host while the worker stands: nothing that the worker says counts.

A reply does not wait for the reaping: whoever has been heard is looked at before it is killed.
"""

import os
import time
from dataclasses import dataclass
from typing import Final

_CLOCK_OF_A_PROCESS: Final = 2  # as the kernel spells it: ~pid << 3 | 2


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of processor time, all threads together, and the peak of resident bytes; None where nobody can tell."""

    cpu_s: float | None = None
    memory: int | None = None


def pid_of(pidfd: int) -> int:
    """The process's number as it is seen from here; 0 where it has been reaped, or is not seen; -1 for no process."""
    _before, is_process, after = _read(f"/proc/self/fdinfo/{pidfd}").partition(b"\nPid:\t")
    return max(0, int(after.split(b"\n", 1)[0])) if is_process else -1


def descends(pid: int, ancestor: int) -> bool:
    """Whether a process was forked by another, or by its child; also where it has gone, or is not seen from here."""
    for _generation in range(2 if pid >= 0 else 0):
        try:
            pid = int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1]) if pid else ancestor
        except OSError:
            return True
        if pid == ancestor:
            return True
    return False


def processor_time(pid: int) -> float | None:
    """Seconds since the process was forked; also of one that ended and is not reaped yet."""
    try:
        return time.clock_gettime(~pid << 3 | _CLOCK_OF_A_PROCESS) if pid else None
    except OSError:
        return None


def peak(pid: int) -> int | None:
    """The most bytes that were resident at once, what it shares with the zygote counted; of a living process."""
    try:
        status = _read(f"/proc/{pid}/status")
    except OSError:
        return None
    said = status.partition(b"\nVmHWM:")[2].split(maxsplit=1)
    return int(said[0]) << 10 if pid and said else None


def measured(pid: int, since: float = 0.0) -> Used:
    """What a worker has used until now, its processor time counted from `since` on."""
    now = processor_time(pid)
    return Used(None if now is None else max(0.0, now - since), peak(pid))


def reaped(pid: int) -> tuple[int, Used]:
    """Wait for a child's end: its exit status, and what it used in all."""
    _pid, status, spent = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), Used(spent.ru_utime + spent.ru_stime, spent.ru_maxrss << 10)


def _read(path: str) -> bytes:
    """A file of the kernel's, which is smaller than this; without a file object, as every call reads four."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 14)
    finally:
        os.close(descriptor)

"""The system seen from outside: processes, and a worker's entry in /proc."""

import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


def stands(name: str) -> bool:
    """Check whether a process of this name exists."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if path.read_text().strip() == name:
                return True
    return False


def looked(at: str, has: str) -> bool:
    """Check from outside whether a worker of this process shows it; if /proc is hidden, its word counts."""
    if at.startswith("ns/"):
        return len({text for pid in zygotes_of(os.getpid()) if (text := _shows(pid, at))}) > 1
    texts = [text for pid in zygotes_of(os.getpid()) if (text := _shows(pid, at))]
    return not texts or any(re.search(has, text, re.MULTILINE) for text in texts)


def _shows(pid: int, at: str) -> str:
    there = Path(f"/proc/{pid}/{'cwd' if at == 'size' else at}")
    with suppress(OSError):
        if at == "cwd":
            return "\n".join(os.listdir(there))  # noqa: PTH208
        if at == "size":
            return "\n".join(f"{each.name} {each.stat().st_size}" for each in os.scandir(there))
        if at == "fd":
            return "\n".join(_link(path) for path in there.iterdir()) + "\n"
        return os.readlink(there) if at == "root" or at.startswith("ns/") else there.read_text()  # noqa: PTH115
    return ""


def _link(path: Path) -> str:
    with suppress(OSError):
        return os.readlink(path)  # noqa: PTH115
    return ""


def zygotes_of(host: int) -> set[int]:
    """Return the sandbox's processes among the descendants of this one."""
    return {pid for pid in descendants(host) if is_zygote(pid)}


def descendants(host: int) -> set[int]:
    """Return the descendants of this process: gVisor has no list of a process's children."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, rest = path.read_text().split(" (", 1)
            parents[int(pid)] = int(rest.rsplit(") ", 1)[1].split()[1])
    found = {host}
    while fresh := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= fresh
    return found - {host}


@contextmanager
def standing_still(processes: Iterable[int]) -> Iterator[None]:
    """Pause these processes within the block; skip any that have ended."""
    with ExitStack() as stack:
        for pid in processes:
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                stack.callback(os.close, descriptor)
                signal.pidfd_send_signal(descriptor, signal.SIGSTOP)
                stack.callback(_go_on, descriptor)
        yield


def _go_on(descriptor: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, signal.SIGCONT)


def is_zygote(pid: int) -> bool:
    """Check whether it is a zygote that has not ended: a zombie has no command line."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"sandbox.processes.zygote" in command or b"knapper_ext.portable.runner" in command
    return False

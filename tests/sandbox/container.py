"""Runs a command as an ordinary container would: `python -m tests.sandbox.container COMMAND …`.

It drops what Docker drops by default: capabilities beyond its list, writes to control groups, and the calls that its
filter rejects. A caller that is not root has only the calls to drop.
"""

import os
import struct
import sys
from contextlib import suppress
from pathlib import Path

from sandbox.confine.kernel import PR_CAPBSET_DROP, prctl, syscall
from tests.sandbox.lacking import lack

_EPERM, _ENOSYS = 1, 38
_REFUSED = {
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "unshare": 272,
    "setns": 308,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "bpf": 321,
    "perf_event_open": 298,
    "keyctl": 250,
    "add_key": 248,
    "request_key": 249,
    "userfaultfd": 323,
    "open_by_handle_at": 304,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "syslog": 103,
}
_CLONE3 = 435  # Docker reports that it does not exist
_KEPT = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}  # capabilities of a container by default
_NEW_MOUNTS, _PRIVATE, _READ_ONLY, _BIND, _REMOUNT = 0x20000, 16384 | 1 << 18, 1, 4096, 32


def enter() -> None:
    """Restrict this process and its children like an unprivileged container."""
    if os.geteuid() == 0:
        with suppress(PermissionError):  # already in a container
            _close_groups()
        _drop()
    lack([*[f"{number}:{_EPERM}" for number in _REFUSED.values()], f"{_CLONE3}:{_ENOSYS}"])


def _close_groups() -> None:
    syscall("unshare", 272, _NEW_MOUNTS)
    _mount("/", _PRIVATE)
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in points:
        if point.startswith("/sys/fs/cgroup"):
            _mount(point, _REMOUNT | _BIND | _READ_ONLY)


def _mount(point: str, flags: int) -> None:
    syscall(f"mount {point}", 165, b"none", point.encode(), b"", flags, b"")


def _drop() -> None:
    for capability in set(range(41)) - _KEPT:
        prctl("bounding set", PR_CAPBSET_DROP, capability)
    kept = sum(1 << capability for capability in _KEPT)
    header, sets = (
        struct.pack("=Ii", 0x20080522, 0),
        struct.pack("=6I", *[kept & 0xFFFFFFFF] * 3, 0, 0, 0),
    )
    syscall("capset", 126, header, sets)


if __name__ == "__main__":
    enter()
    os.execv(sys.argv[1], sys.argv[1:])

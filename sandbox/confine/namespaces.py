"""Namespaces and the small root: what a zygote enters once, before it holds anything of a call.

The new root is a tmpfs that holds the readable folders at their own paths (an interpreter bound
elsewhere finds another libpython), nothing of site-packages but what is listed, /dev/null, and one
capped tmpfs per scratch slot, which cannot be executed from.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .kernel import syscall

_MOUNT, _UMOUNT, _PIVOT_ROOT, _UNSHARE, _MOUNT_SETATTR = 165, 166, 155, 272, 442
_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_NOSUID, _NODEV, _NOEXEC, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_DETACH: Final = 2
_AT_RECURSIVE: Final = 0x8000
_AT_FDCWD: Final = (1 << 64) - 100
_ATTR_READ_ONLY_NOSUID: Final = 3
_SCRATCH_INODES: Final = 4096
SCRATCH: Final = "/scratch"
_OLD: Final = "/.old"


def unshare() -> None:
    """Leave the host's users (unless root), mounts, processes, network, ipc and names.

    The process namespace begins with the next fork.
    """
    user, group = os.geteuid(), os.getegid()
    flags = _NEW_MOUNTS | _NEW_UTS | _NEW_IPC | _NEW_PIDS | _NEW_NET
    syscall("unshare", _UNSHARE, flags if user == 0 else flags | _NEW_USER)
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def enter_root(readable: Sequence[str], hidden: Sequence[str], slots: int, scratch: int) -> None:
    """Make the small root and stand in it; the host's tree is gone from this process."""
    places = sorted({place for path in readable for place in (path, os.path.realpath(path))})
    real = {place: os.path.realpath(place) for place in places}
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    base = next(path for path in ("/tmp", "/var", "/proc") if Path(path).is_dir())  # noqa: S108 - a place to mount on
    _mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=0755")
    os.chdir(base)
    Path(_OLD[1:]).mkdir()
    syscall("pivot_root", _PIVOT_ROOT, b".", _OLD[1:].encode())
    os.chdir("/")
    for place in places:
        _show(real[place], place)
    for path in hidden:
        _hide(path)
    syscall("umount", _UMOUNT, _OLD.encode(), _DETACH)
    Path(_OLD).rmdir()
    for slot in range(slots):
        _add_scratch(slot, scratch)
    _freeze("/", recursive=False)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    syscall(f"mount {target}", _MOUNT, source.encode(), target.encode(), kind.encode(), flags, options.encode())


def _freeze(path: str, *, recursive: bool) -> None:
    attributes = struct.pack("=QQQQ", _ATTR_READ_ONLY_NOSUID, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    syscall(f"read-only {path}", _MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes))


def _show(real: str, place: str) -> None:
    source, target = Path(_OLD + real), Path(place)
    if target.exists():  # below a folder that is already shown
        return
    if source.is_dir():
        target.mkdir(parents=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(str(source), place, "", _BIND | _RECURSIVE)
    if real != "/dev/null":  # a device on a read-only mount still takes writes, but a locked flag may not change
        _freeze(place, recursive=True)


def _hide(path: str) -> None:
    if Path(path).is_dir():
        _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=4k,nr_inodes=1,mode=0755")
        _freeze(path, recursive=False)


def _add_scratch(slot: int, size: int) -> None:
    path = Path(SCRATCH, str(slot))
    path.mkdir(parents=True)
    options = f"size={size},nr_inodes={_SCRATCH_INODES},mode=0777"
    _mount("tmpfs", str(path), "tmpfs", _NOSUID | _NODEV | _NOEXEC, options)

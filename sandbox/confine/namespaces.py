"""Namespaces and the small root, which a zygote enters once, before its first call.

The new root is a tmpfs with the readable folders at their real paths (an interpreter that is mounted elsewhere finds
another libpython), only the listed parts of site-packages, /dev/null, the granted files, and one tmpfs of limited size
per scratch slot. Nothing in granted files or scratch can be executed.
"""

import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .calls import number
from .kernel import syscall
from .opened_grants import OpenedGrant, walk
from .plan import ZygotePlan

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same on every machine
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
_AT_EMPTY_PATH: Final = 0x1000
_CLONE_TREE: Final = 1 | os.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE
_BY_DESCRIPTORS: Final = 0x4 | 0x40  # move_mount: both ends are descriptors
_ATTR_READ_ONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8
_ATTR_DATA: Final = _ATTR_NOSUID | _ATTR_NODEV | _ATTR_NOEXEC
_SCRATCH_INODES: Final = 4096
SCRATCH: Final = "/scratch"
_OLD: Final = "/.old"
_NAME: Final = "sandbox"


def unshare() -> None:
    """Enter new namespaces for users (unless root), mounts, processes, network, IPC and host name.

    The process namespace takes effect at the next fork.
    """
    user, group = os.geteuid(), os.getegid()
    flags = _NEW_MOUNTS | _NEW_UTS | _NEW_IPC | _NEW_PIDS | _NEW_NET
    syscall("unshare", number("unshare"), flags if user == 0 else flags | _NEW_USER)
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    socket.sethostname(_NAME)  # the new namespace starts with the host's name


def cover_scratch(own: Path) -> None:
    """Mount one scratch folder over `SCRATCH` for this process, which hides all other scratch folders.

    This creates user and mount namespaces with all capabilities in them, which must be given up next.
    """
    syscall("unshare", number("unshare"), _NEW_USER | _NEW_MOUNTS)
    _mount(str(own), SCRATCH, "", _BIND)


def enter_root(plan: ZygotePlan, granted: Sequence[OpenedGrant]) -> None:
    """Build the small root and enter it. Afterwards this process can no longer access the host's files."""
    real = {
        place: os.path.realpath(path)
        for path in plan.readable
        for place in (path, os.path.realpath(path))
    }
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    base = next(path for path in ("/tmp", "/var", "/proc") if Path(path).is_dir())  # noqa: S108 - a place to mount on
    _mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=0755")
    os.chdir(base)
    Path(_OLD[1:]).mkdir()
    syscall("pivot_root", number("pivot_root"), b".", _OLD[1:].encode())
    os.chdir("/")
    for entry in granted:
        _graft(entry)
    for place in sorted(real):
        if not _is_below(place, [shown for shown in real if shown != place]):
            _show(real[place], place)
    for path in plan.hidden:  # covered first; what is listed inside of them is shown on top
        if Path(path).is_dir():
            _mount(
                "tmpfs",
                path,
                "tmpfs",
                _NOSUID | _NODEV | _NOEXEC,
                "size=4k,nr_inodes=4096,mode=0755",
            )
    for place in sorted(real):
        if _is_below(place, plan.hidden):
            _show(real[place], place)
    for path in filter(os.path.isdir, plan.hidden):
        _freeze(path, recursive=False)
    syscall("umount", number("umount2"), _OLD.encode(), _DETACH)
    Path(_OLD).rmdir()
    for slot in range(plan.slots):
        folder = Path(SCRATCH, str(slot))
        folder.mkdir(parents=True)
        options = f"size={plan.scratch},nr_inodes={_SCRATCH_INODES},mode=0777"
        _mount("tmpfs", str(folder), "tmpfs", _NOSUID | _NODEV | _NOEXEC, options)
    _freeze("/", recursive=False)


def _is_below(place: str, folders: Sequence[str]) -> bool:
    return place.startswith(tuple(f"{folder}/" for folder in folders))


def _graft(opened: OpenedGrant) -> None:
    """Mount an opened grant at its real path, by descriptors, so that neither end can be swapped meanwhile."""
    target = Path(opened.path)
    if not target.exists():
        _make_place(target, is_folder=opened.is_folder)
    tree = syscall(f"open_tree {opened.path}", _OPEN_TREE, opened.descriptor, b"", _CLONE_TREE)
    place, _chain = walk(opened.path)
    try:
        packed = struct.pack(
            "=QQQQ", (_ATTR_DATA if opened.writable else _ATTR_DATA | _ATTR_READ_ONLY), 0, 0, 0
        )
        syscall(
            "mount attributes",
            _MOUNT_SETATTR,
            tree,
            b"",
            _AT_EMPTY_PATH | _AT_RECURSIVE,
            packed,
            len(packed),
        )
        syscall(f"move_mount {opened.path}", _MOVE_MOUNT, tree, b"", place, b"", _BY_DESCRIPTORS)
    finally:
        os.close(place)
        os.close(tree)


def _make_place(target: Path, *, is_folder: bool) -> None:
    if is_folder:
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = source.encode(), target.encode(), kind.encode()
    syscall(f"mount {target}", number("mount"), *words, flags, options.encode())


def _freeze(path: str, *, recursive: bool) -> None:
    attributes = struct.pack("=QQQQ", _ATTR_READ_ONLY | _ATTR_NOSUID, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    syscall(
        f"read-only {path}",
        _MOUNT_SETATTR,
        _AT_FDCWD,
        path.encode(),
        flags,
        attributes,
        len(attributes),
    )


def _show(real: str, place: str) -> None:
    source, target = Path(_OLD + real), Path(place)
    if not target.exists():
        _make_place(target, is_folder=source.is_dir())
    _mount(str(source), place, "", _BIND | _RECURSIVE)
    if (
        real != "/dev/null"
    ):  # its mount has locked flags; a device is writable on a read-only mount anyway
        _freeze(place, recursive=True)

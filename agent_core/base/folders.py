"""Folders held open by descriptor, so that replacing a folder on the path has no effect on access to its entries.

Where the system cannot open files relative to a folder, as on Windows, a descriptor of the null device represents the
folder, and its path is resolved again at each access. A link that is placed there at that moment would be followed.
"""

import errno
import os
from pathlib import Path
from typing import Final

from . import machine

_HELD: Final = os.open in os.supports_dir_fd
_places: Final[dict[int, str]] = {}  # number → path, where a folder cannot be held open


def hold(folder: Path, *, follows: bool = True) -> int:
    """Return a descriptor of a folder, for `os.close`. Raise OSError if it is none, or a link and not `follows`."""
    if _HELD and follows:
        return os.open(folder, os.O_RDONLY | machine.DIRECTORY | machine.CLOEXEC)
    if _HELD:
        return _hold_unlinked(str(folder), None)
    if not follows and folder.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
    return _hold(str(folder))


def hold_below(name: str, folder_fd: int, *, lists: bool = True) -> int:
    """Return a descriptor of a folder in another. Raise OSError if it is a link.

    Without `lists` it is only for access to entries, which needs no permission to read the folder.
    """
    return _hold_unlinked(name, folder_fd, lists=lists) if _HELD else _hold(_place(name, folder_fd))


def _hold_unlinked(name: str, folder_fd: int | None, *, lists: bool = True) -> int:
    access = os.O_RDONLY if lists else getattr(os, "O_PATH", os.O_RDONLY)
    flags = access | machine.DIRECTORY | machine.NOFOLLOW | machine.CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder_fd)
    is_entry = False
    try:
        # Some kernels (gVisor's of 2022) follow a link that takes the folder's place while it is opened.
        is_entry = os.path.samestat(
            os.fstat(descriptor), os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        )
    finally:
        if not is_entry:
            os.close(descriptor)
    if not is_entry:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return descriptor


def _hold(path: str) -> int:
    os.scandir(path).close()  # raises the reason why it is no folder
    number = os.open(os.devnull, os.O_RDONLY | machine.CLOEXEC)
    _places[number] = path
    return number


def _place(name: str, folder_fd: int) -> str:
    path = os.path.join(_places[folder_fd], name)  # noqa: PTH118 - a string, as the calls below take it
    if os.path.islink(path):  # noqa: PTH114
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return path


def status(folder_fd: int) -> os.stat_result:
    """Return the status of a folder that is held open."""
    return os.fstat(folder_fd) if _HELD else os.lstat(_places[folder_fd])


def open_in(name: str, folder_fd: int, flags: int, mode: int = 0o666) -> int:
    """Return a descriptor of a file in the folder."""
    if _HELD:
        return os.open(name, flags, mode, dir_fd=folder_fd)
    return os.open(_place(name, folder_fd), flags, mode)


def make(name: str, folder_fd: int, mode: int = 0o777) -> None:
    """Create a folder in the folder."""
    if _HELD:
        os.mkdir(name, mode, dir_fd=folder_fd)
    else:
        os.mkdir(_place(name, folder_fd), mode)  # noqa: PTH102


def remove(name: str, folder_fd: int) -> None:
    """Remove a file of the folder."""
    if _HELD:
        os.unlink(name, dir_fd=folder_fd)
    else:
        os.unlink(os.path.join(_places[folder_fd], name))  # noqa: PTH108, PTH118 - a link itself is removed


def replace(old: str, new: str, folder_fd: int) -> None:
    """Rename an entry of the folder; an existing entry with the new name is replaced."""
    if _HELD:
        os.replace(old, new, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    else:
        os.replace(_place(old, folder_fd), os.path.join(_places[folder_fd], new))  # noqa: PTH105, PTH118


def link(old: str, new: str, folder_fd: int) -> None:
    """Create a hard link in the folder. Raise FileExistsError if the new name exists."""
    if _HELD:
        os.link(old, new, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    else:
        os.link(_place(old, folder_fd), _place(new, folder_fd))


def mode_of(name: str, folder_fd: int) -> int:
    """Return the permissions of an entry of the folder; links are not followed."""
    if _HELD:
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode & 0o777
    return os.lstat(os.path.join(_places[folder_fd], name)).st_mode & 0o777  # noqa: PTH118


def save(folder_fd: int) -> None:
    """Flush the folder's entries to disk, where the system supports it."""
    if _HELD:
        os.fsync(folder_fd)

"""The entries of a folder that the kernel did not list: the host did, or a file system in memory."""

import os
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self


class FolderEntry:
    """One name in a folder, with the interface of `os.DirEntry`."""

    def __init__(self, folder: Any, name: Any, mode: int) -> None:  # both text, or both bytes
        self.name = name
        self.path = os.path.join(folder, name)
        self._mode = mode

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a folder."""
        return stat.S_ISDIR(self._mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a regular file."""
        return stat.S_ISREG(self._mode)

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return stat.S_ISLNK(self._mode)

    def is_junction(self) -> bool:
        """Return False: only Windows has them."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return its `os.stat` result."""
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        """Return its inode."""
        return self.stat().st_ino


class FolderListing:
    """The entries of a folder, with the interface of `os.scandir`'s result."""

    def __init__(self, entries: list[FolderEntry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[FolderEntry]:
        return self

    def __next__(self) -> FolderEntry:
        return next(self._entries)

    def close(self) -> None:
        """Do nothing: all entries are already loaded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        return None

"""Files that the host has opened for a call, as `io.RawIOBase` and `os.scandir` entries; each access is a request."""

import errno
import io
import os
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

from .channel import Channel

PIECE: Final = 512 << 10  # bytes per read request
WRITTEN: Final = 32 << 10  # bytes per write request, which fits into any frame
CREATES: Final = frozenset("wax")  # the modes that may create a file

_dropped: list[int] = []  # streams to close; a destructor may run in the middle of a request, so it makes none


class NotGranted(PermissionError):
    """A file that the user did not grant. The function sees it as a PermissionError."""


NotGranted.__name__ = NotGranted.__qualname__ = PermissionError.__name__
NotGranted.__module__ = PermissionError.__module__


class HostFile(io.RawIOBase):
    """One file that the host has opened for this call."""

    def __init__(self, channel: Channel, path: str, mode: str, stream: int) -> None:
        self._channel = channel
        self._stream = stream
        self._at = 0
        self._reads, self._writes = "r" in mode or "+" in mode, bool(CREATES & {*mode}) or "+" in mode
        self._appends = "a" in mode
        self.name, self.mode = path, mode

    def readable(self) -> bool:
        """Return whether it was opened for reading."""
        return self._reads

    def writable(self) -> bool:
        """Return whether it was opened for writing."""
        return self._writes

    def seekable(self) -> bool:
        """Return True, because it is a regular file."""
        return True

    def readinto(self, buffer: Any) -> int:  # anything that holds bytes
        """Read into a buffer."""
        if not self._reads:
            raise io.UnsupportedOperation("not readable")
        view = memoryview(buffer).cast("B")
        data: bytes = self._ask("file_read", at=self._at, size=min(len(view), PIECE))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data: Any) -> int:  # anything that holds bytes
        """Write the first piece of the data, and return its size."""
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        piece = bytes(memoryview(data).cast("B")[:WRITTEN])
        self._at = self._ask("file_write", at=None if self._appends else self._at, data=piece)
        return len(piece)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        at = offset + (self._ask("file_size") if start is None else start)
        if at < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = at
        return at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def truncate(self, size: int | None = None) -> int:
        """Truncate or extend the file."""
        wanted = self._at if size is None else size
        self._ask("file_truncate", size=wanted)
        return wanted

    def close(self) -> None:
        """Close the file. The host is notified with the next request, because a destructor may call this."""
        if not self.closed:
            super().close()
            _dropped.append(self._stream)

    def _ask(self, name: str, **arguments: Any) -> Any:  # values that cross
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return value_of(request(self._channel, name, {"stream": self._stream, **arguments}), self.name)


def request(channel: Channel, name: str, arguments: dict[str, Any]) -> Any:  # values that can be sent
    """Return the host's answer. Raise NotGranted with the host's message if it refuses."""
    dropped, _dropped[:] = _dropped[:64], _dropped[64:]
    try:
        return channel.request(name, {**arguments, "dropped": dropped})
    except PermissionError as refusal:
        raise NotGranted(str(refusal)) from None


def value_of(answer: Any, path: str) -> Any:  # values that cross
    """Return the value of the host's answer, or raise the OSError that the host got."""
    if "errno" in answer:
        number = getattr(errno, answer["errno"], errno.EIO)  # sent by name: the host may have other numbers
        raise OSError(number, os.strerror(number), path)
    return answer["value"]


class HostEntry:
    """One name in a folder that the host listed, with the interface of `os.DirEntry`."""

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


class HostListing:
    """The entries of a folder, with the interface of `os.scandir`'s result."""

    def __init__(self, entries: list[HostEntry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[HostEntry]:
        return self

    def __next__(self) -> HostEntry:
        return next(self._entries)

    def close(self) -> None:
        """Do nothing: all entries are already loaded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        return None

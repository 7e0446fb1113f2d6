"""The file system of a component: a scratch folder of limited size in memory, and the time zones.

It replaces `open` and the functions of `os` below `inside.files`, in the role of the kernel. Nothing exists outside
these two trees except the folders of granted packages, which the real functions read.
"""

import builtins
import errno
import functools
import importlib
import io
import itertools
import os
import posixpath
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sandbox.inside.entries import FolderEntry, FolderListing

SCRATCH: Final = "/scratch"
SCRATCH_PATH: Final = Path(SCRATCH)
ZONES: Final = "/usr/share/zoneinfo"
_FIRST_NUMBER: Final = 1 << 16  # of our descriptors; the real ones are lower
_MOST_FILES: Final = 4_000
_MOST_OPEN: Final = 256
_LONGEST_NAME: Final = 255  # bytes

real_open = io.open
_real: dict[str, Callable[..., Any]] = {}


class _Node:
    """A file with data, or a folder with names."""

    def __init__(self, kind: int, mode: int) -> None:
        self.kind, self.mode = kind, mode
        self.data = bytearray()
        self.names: dict[str, _Node] = {}
        self.is_gone = False  # removed, and perhaps still open
        self.number = next(_numbers)
        self.accessed = self.changed = time.time()

    def facts(self) -> os.stat_result:
        size = len(self.data)
        times = (self.accessed, self.changed, self.changed)
        whole = [int(moment) for moment in times]
        fine = {
            f"st_{name}time_ns": int(moment * 1e9)
            for name, moment in zip("amc", times, strict=True)
        }
        return os.stat_result((self.kind | self.mode, self.number, 1, 1, 0, 0, size, *whole), fine)


_numbers = itertools.count(1)


class _Tree:
    """All folders, files and open descriptors."""

    def __init__(self) -> None:
        self.root = _Node(stat.S_IFDIR, 0o755)
        self.here = SCRATCH
        self.most = 64 << 20
        self.size = self.files = 0
        self.open: dict[int, tuple[_Node, MemoryFile]] = {}
        self.unowned: set[MemoryFile] = set()  # from `os.open`; no other reference keeps them alive
        self.outside: tuple[str, ...] | None = (
            None  # folders for the real functions; None: all, at build time
        )

    def whole(self, path: Any) -> str:
        """Return a path as absolute, normalized text."""
        text = os.fsdecode(path)
        if "\0" in text:
            raise ValueError("embedded null byte")
        if not text:
            raise _error(errno.ENOENT, text)
        return posixpath.normpath(posixpath.join(self.here, text))

    def is_outside(self, path: Any) -> bool:
        """Return whether the real functions handle a path or descriptor."""
        if isinstance(path, int):
            return path < _FIRST_NUMBER
        whole = self.whole(path)
        if any(_below(whole, tree) for tree in (SCRATCH, ZONES)):
            return False
        return self.outside is None or any(_below(whole, folder) for folder in self.outside)

    def find(self, path: Any) -> _Node:
        """Return the node at a path."""
        self.whole(path)
        way = [self.root]
        for name in posixpath.join(self.here, os.fsdecode(path)).split("/")[1:]:
            if way[-1].kind != stat.S_IFDIR:
                raise _error(errno.ENOTDIR, path)
            if name == "..":
                way = way[:-1] or way
            elif name not in {"", "."}:
                if name not in way[-1].names:
                    raise _error(errno.ENOENT, path)
                way.append(way[-1].names[name])
        return way[-1]

    def place(self, path: Any) -> tuple[_Node, str]:
        """Return the parent folder of a path below scratch, and the name in it."""
        above, _, name = self.whole(path).rpartition("/")
        self.find(posixpath.dirname(os.fsdecode(path).rstrip("/")) or ".")
        folder = self.find(above or "/")
        if folder.kind != stat.S_IFDIR:
            raise _error(errno.ENOTDIR, path)
        if not _below(above, SCRATCH):
            raise _error(errno.EACCES, path)
        if len(os.fsencode(name)) > _LONGEST_NAME:
            raise _error(errno.ENAMETOOLONG, path)
        return folder, name

    def add(self, path: Any, node: _Node) -> _Node:
        """Add a new node at a path."""
        folder, name = self.place(path)
        if name in folder.names:
            raise _error(errno.EEXIST, path)
        if self.files >= _MOST_FILES:
            raise _error(errno.ENOSPC, path)
        self.files += 1
        folder.names[name] = node
        folder.changed = time.time()
        return node

    def take(self, path: Any) -> _Node:
        """Remove the node at a path from its folder."""
        self.find(path)
        folder, name = self.place(path)
        node = folder.names.pop(name)
        folder.changed = time.time()
        return node

    def drop(self, node: _Node) -> None:
        """Mark a node as removed, and free its data unless it is still open."""
        node.is_gone = True
        self.files -= 1
        self.free(node)

    def free(self, node: _Node) -> None:
        """Free the data of a removed file if it is no longer open."""
        if node.is_gone and not any(node is other for other, _file in self.open.values()):
            self.grow(node, 0)

    def grow(self, node: _Node, size: int) -> None:
        """Resize a file. Raise OSError (ENOSPC) if scratch is full."""
        if size < 0:
            raise _error(errno.EINVAL)
        more = size - len(node.data)
        if more > 0 and self.size + more > self.most:
            raise _error(errno.ENOSPC)
        self.size += more
        if more > 0:
            node.data.extend(bytes(more))
        else:
            del node.data[size:]


def _error(number: int, path: Any = None) -> OSError:
    """Return the error of the kernel with this number, of the class that Python has for it."""
    named = (path,) if path is None or isinstance(path, int) else (os.fsdecode(path),)
    return OSError(number, os.strerror(number), *named)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


class MemoryFile(io.RawIOBase):
    """An open file, or an open folder."""

    def __init__(self, node: _Node, name: Any, flags: int) -> None:
        self._node, self._flags, self._at = node, flags, 0
        self.name = name
        self._number = next(
            number for number in range(_FIRST_NUMBER, 1 << 20) if number not in _tree.open
        )
        if len(_tree.open) >= _MOST_OPEN:
            raise _error(errno.EMFILE, name)
        way = _way(flags)
        self.mode = {os.O_WRONLY: "wb", os.O_RDWR: "rb+"}.get(way, "rb")
        _tree.open[self._number] = node, self

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._number

    @property
    def is_folder(self) -> bool:
        """True if a folder was opened."""
        return self._node.kind == stat.S_IFDIR

    def readable(self) -> bool:
        """Return whether it was opened for reading."""
        return self.mode != "wb"

    def writable(self) -> bool:
        """Return whether it was opened for writing."""
        return self.mode != "rb"

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read from the current position."""
        self._check(reads=True)
        piece = bytes(self._node.data[self._at : self._at + len(buffer)])
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def write(self, data: Any) -> int:
        """Write at the current position, or at the end in append mode."""
        self._check(reads=False)
        plain = bytes(memoryview(data).cast("B"))
        start = len(self._node.data) if self._flags & os.O_APPEND else self._at
        if start + len(plain) > len(self._node.data):
            _tree.grow(self._node, start + len(plain))
        self._node.data[start : start + len(plain)] = plain
        self._node.changed = time.time()
        self._at = start + len(plain)
        return len(plain)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, len(self._node.data))
        if start + offset < 0:
            raise _error(errno.EINVAL)
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def truncate(self, size: int | None = None) -> int:
        """Truncate or extend the file."""
        self._check(reads=False)
        wanted = self._at if size is None else size
        _tree.grow(self._node, wanted)
        return wanted

    def close(self) -> None:
        """Close the file, and free its data if it was removed meanwhile."""
        if not self.closed:
            super().close()
            _tree.open.pop(self._number, None)
            _tree.free(self._node)

    def _check(self, *, reads: bool) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if not (self.readable() if reads else self.writable()):
            raise io.UnsupportedOperation(errno.EBADF, "not readable" if reads else "not writable")


_tree = _Tree()


def _way(flags: int) -> int:
    """Return the access mode of flags. In the component, read-write is the sum of the two other modes."""
    return flags & (os.O_WRONLY | os.O_RDWR)


def _open_node(path: Any, flags: int, mode: int = 0o777) -> MemoryFile:
    """Open a path of the tree in memory."""
    try:
        node = _tree.find(path)
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        node = _tree.add(path, _Node(stat.S_IFREG, mode & 0o666 or 0o600))
    changes = _way(flags) in (os.O_WRONLY, os.O_RDWR) or flags & os.O_TRUNC
    if node.kind == stat.S_IFDIR and changes:
        raise _error(errno.EISDIR, path)
    if node.kind != stat.S_IFDIR and flags & os.O_DIRECTORY:
        raise _error(errno.ENOTDIR, path)
    if changes and not _below(_tree.whole(path), SCRATCH):
        raise _error(errno.EACCES, path)
    if flags & os.O_TRUNC:
        _tree.grow(node, 0)
    return MemoryFile(node, path, flags)


_FLAGS: Final = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


def _open(  # noqa: PLR0913, PLR0917 - the signature of `open`
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,  # noqa: FBT001, FBT002 - the signature of `open`
    opener: Callable[[Any, int], int] | None = None,
) -> Any:  # any file object
    if opener is None and _tree.is_outside(file):
        return real_open(file, mode, buffering, encoding, errors, newline, closefd)
    kinds = set(mode) & set(_FLAGS)
    if len(kinds) != 1 or set(mode) - set("rwaxbt+"):
        raise ValueError(f"invalid mode: {mode!r}")
    is_text = "b" not in mode
    if is_text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if not is_text and (encoding or errors or newline):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    flags = _FLAGS[kinds.pop()]
    if "+" in mode:
        flags = flags & ~(os.O_RDONLY | os.O_WRONLY) | os.O_RDWR
    if opener is not None:
        file = opener(file, flags)
    raw = _file(file) if isinstance(file, int) else _open_node(file, flags)
    if raw.is_folder:
        raise _error(errno.EISDIR, file)
    if "a" in mode:
        raw.seek(0, os.SEEK_END)
    if buffering == 0:
        return raw
    kind: Any = (
        io.BufferedRandom
        if "+" in mode
        else io.BufferedReader
        if "r" in mode
        else io.BufferedWriter
    )
    buffered = kind(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
    if not is_text:
        return buffered
    text = io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline, buffering == 1)
    text.__dict__["mode"] = mode
    return text


def _file(number: int) -> MemoryFile:
    if number not in _tree.open:
        raise _error(errno.EBADF)
    return _tree.open[number][1]


def _node(path: Any) -> _Node:
    return _tree.open[_file(path).fileno()][0] if isinstance(path, int) else _tree.find(path)


def _os_open(path: Any, flags: int, mode: int = 0o777) -> int:
    file = _open_node(path, flags, mode)
    _tree.unowned.add(file)
    return file.fileno()


def _close(number: int) -> None:
    _tree.unowned.discard(file := _file(number))
    file.close()


def _read(number: int, size: int) -> bytes:
    return _file(number).read(size) or b""


def _pread(number: int, size: int, at: int) -> bytes:
    return bytes(_node(number).data[at : at + size])


def _pwrite(number: int, data: Any, at: int) -> int:
    file = _file(number)
    before = file.tell()
    file.seek(at)
    size = file.write(data)
    file.seek(before)
    return size


def _stat(path: Any, **_options: Any) -> os.stat_result:
    return _node(path).facts()


def _listdir(path: Any = ".") -> list[Any]:
    node = _node("." if path is None else path)
    if node.kind != stat.S_IFDIR:
        raise _error(errno.ENOTDIR, path)
    return [os.fsencode(name) for name in node.names] if isinstance(path, bytes) else [*node.names]


def _scandir(path: Any = ".") -> FolderListing:
    folder = os.fspath("." if path is None else path)
    kinds = [node.kind for node in _node(folder).names.values()]
    return FolderListing(
        [
            FolderEntry(folder, name, kind)
            for name, kind in zip(_listdir(folder), kinds, strict=True)
        ]
    )


def _mkdir(path: Any, mode: int = 0o777) -> None:
    if _below(SCRATCH, _tree.whole(path)) or _tree.whole(path) == ZONES:
        raise _error(errno.EEXIST, path)
    _tree.add(path, _Node(stat.S_IFDIR, mode & 0o755))


def _rmdir(path: Any) -> None:
    node = _tree.find(path)
    if node.kind != stat.S_IFDIR:
        raise _error(errno.ENOTDIR, path)
    if node.names:
        raise _error(errno.ENOTEMPTY, path)
    _tree.drop(_tree.take(path))


def _unlink(path: Any) -> None:
    if _tree.find(path).kind == stat.S_IFDIR:
        raise _error(errno.EISDIR, path)
    _tree.drop(_tree.take(path))


def _rename(src: Any, dst: Any) -> None:
    node = _tree.find(src)
    _tree.place(src)  # refuses before something is removed
    folder, name = _tree.place(dst)
    if _tree.whole(dst).startswith(f"{_tree.whole(src)}/"):
        raise _error(errno.EINVAL, src)
    there = folder.names.get(name)
    if there is node:
        return
    if there is not None:
        (_rmdir if node.kind == stat.S_IFDIR else _unlink)(dst)
    _tree.take(src)
    folder.names[name] = node


def _readlink(path: Any) -> str:
    _node(path)
    raise _error(errno.EINVAL, path)  # there are no links


def _listxattr(path: Any = ".", **_options: Any) -> list[str]:
    _node(path)
    return []


def _refuse(path: Any, *_arguments: Any, **_options: Any) -> Any:  # never anything
    """Refuse what the seccomp filter refuses at other levels: links and changes of the mode."""
    raise _error(errno.EPERM, path)


def _utime(path: Any, times: Any = None, *, ns: Any = None, **_options: Any) -> None:
    now = time.time()
    given = [moment / 1e9 for moment in ns] if ns else times or (now, now)
    node = _node(path)
    if not isinstance(path, int) and not _below(_tree.whole(path), SCRATCH):
        raise _error(errno.EACCES, path)
    node.accessed, node.changed = map(float, given)


def _truncate(path: Any, length: int) -> None:
    if isinstance(path, int):
        _file(path).truncate(length)
    else:
        with _open_node(path, os.O_WRONLY) as file:
            file.truncate(length)


def _access(path: Any, mode: int, **_options: Any) -> bool:
    try:
        node = _node(path)
    except OSError:
        return False
    is_ours = _below(_tree.whole(path), SCRATCH)
    return not (mode & os.W_OK and not is_ours) and (node.mode >> 6 & mode & 7) == mode & 7


def _getcwd() -> str:
    return _tree.here


def _chdir(path: Any) -> None:
    if _node(path).kind != stat.S_IFDIR:
        raise _error(errno.ENOTDIR, path)
    _tree.here = _tree.whole(path)


def _nothing(*_arguments: Any, **_options: Any) -> None:
    return


def _refuse_unsupported(*_arguments: Any, **_options: Any) -> Any:
    raise _error(errno.ENOTSUP)


_OF_PATHS: Final[dict[str, Callable[..., Any]]] = {
    "open": _os_open, "stat": _stat, "listdir": _listdir, "scandir": _scandir, "mkdir": _mkdir, "rmdir": _rmdir,
    "unlink": _unlink, "remove": _unlink, "rename": _rename, "replace": _rename, "link": _refuse, "symlink": _refuse,
    "readlink": _readlink, "chmod": _refuse, "utime": _utime, "truncate": _truncate, "access": _access,
    "chdir": _chdir,
    "listxattr": _listxattr,
}  # fmt: skip
_OF_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    "close": _close, "read": _read, "pread": _pread, "pwrite": _pwrite, "fstat": _stat,
    "write": lambda number, data: _file(number).write(data),
    "lseek": lambda number, at, whence: _file(number).seek(at, whence),
    "ftruncate": lambda number, size: _file(number).truncate(size),
    "fsync": _nothing, "fdatasync": _nothing, "isatty": lambda _number: False,
}  # fmt: skip
_ABSENT: Final = ("mkfifo", "mknod", "chown", "lchown", "fchmod", "fchown", "statvfs", "getxattr", "setxattr",
                  "removexattr", "chroot", "sendfile", "posix_fallocate", "lockf")  # fmt: skip


def _route(name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the real one for paths outside of the trees in memory, else ours."""
    real = _real[name] = getattr(os, name, _refuse_unsupported)

    @functools.wraps(ours)
    def routed(*arguments: Any, **options: Any) -> Any:
        path = arguments[0] if arguments else options.get("path", options.get("src", "."))
        if _tree.is_outside("." if path is None else path):
            return real(*arguments, **options)
        for unused in [key for key in options if key.endswith("dir_fd")]:
            if options.pop(unused) is not None:
                return _refuse_unsupported()
        return ours(*arguments, **options)

    routed.__name__ = routed.__qualname__ = name
    return routed


def install() -> None:
    """Install all replacements. Until `close_outside`, the real functions still handle paths that are not in memory."""
    for path in (SCRATCH, ZONES):
        node = _tree.root
        for name in path.split("/")[1:]:
            node = node.names.setdefault(name, _Node(stat.S_IFDIR, 0o755))
    for name, ours in (_OF_PATHS | _OF_NUMBERS).items():
        setattr(os, name, _route(name, ours))
    os.lstat = functools.wraps(os.stat)(functools.partial(os.stat, follow_symlinks=False))
    os.lstat.__name__ = "lstat"
    os.getcwd = _getcwd
    os.getcwdb = lambda: os.fsencode(_getcwd())
    for name in _ABSENT:
        if not hasattr(os, name):
            setattr(os, name, _refuse_unsupported)
    os.supports_dir_fd.clear()
    os.supports_fd.clear()
    if not hasattr(time, "tzset"):
        time.tzset = lambda: None  # the clock shows UTC
    io.open = builtins.open = _open
    for module in [*sys.modules.values()]:
        for name in ("_builtin_open", "bltn_open"):
            if vars(module).get(name) is real_open:
                setattr(module, name, _open)


def show_zones() -> None:
    """Store the time zones of the package `tzdata`, which is available at build time."""
    import zoneinfo  # noqa: PLC0415

    tzdata = importlib.import_module("tzdata")
    _copy(f"{tzdata.__path__[0]}/zoneinfo", ZONES)
    zoneinfo.reset_tzpath([ZONES])


def _copy(folder: str, path: str) -> None:
    node = _tree.find(path)
    with _real["scandir"](folder) as entries:
        for entry in entries:
            if entry.is_dir():
                node.names[entry.name] = _Node(stat.S_IFDIR, 0o755)
                _copy(entry.path, f"{path}/{entry.name}")
            elif not entry.name.endswith((".py", ".pyc")):
                node.names[entry.name] = file = _Node(stat.S_IFREG, 0o444)
                with real_open(entry.path, "rb") as source:
                    file.data += source.read()


def close_outside() -> None:
    """Stop using the real functions for any path."""
    _tree.outside = ()
    _tree.size = _tree.files = 0


def open_outside(folders: list[str]) -> None:
    """Let the real functions read these folders."""
    _tree.outside = tuple(folders)


def bound(size: int) -> None:
    """Set the size limit of scratch in bytes."""
    _tree.most = size

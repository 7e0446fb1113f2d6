"""Files without a grant: if the kernel does not open a file, the worker requests it from the host.

The host asks the user and sends the bytes of exactly that file, never a descriptor. Code that bypasses this sees only
what the kernel shows. `open`, `Path`, `csv` and the like get a stream; `os.open` and `sqlite3.connect` get a copy in
scratch to read. The host can create a folder; removing, renaming and linking require a grant of the folder beforehand,
which the error names. A function appears to run in the workspace, although its worker runs in scratch:
`os.path.abspath("data/a.csv")` and `Path.cwd()` refer to the user's files, `~/` to the user's home. A file that the
host has opened is an `io.RawIOBase`, a folder that it has listed has entries as of `os.scandir`; each access to a file
is a request.
"""

import builtins
import errno
import functools
import gc
import io
import os
import stat
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias

from . import finder
from .channel import Channel
from .entries import FolderEntry, FolderListing

_PIECE: Final = 512 << 10  # bytes per read request
_WRITTEN: Final = 32 << 10  # bytes per write request, which fits into any frame
_CREATES: Final = frozenset("wax")  # the modes that may create a file
_SHUT: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EROFS})
"""The kernel's errors that may mean that a file was not granted."""
_Kind: TypeAlias = Literal["folder", "names", "marks"]
_KINDS: Final[dict[Callable[..., None], _Kind]] = {
    os.mkdir: "folder",
    **dict.fromkeys(
        (os.remove, os.unlink, os.rmdir, os.rename, os.replace, os.link, os.symlink), "names"
    ),
    **dict.fromkeys((os.chmod, os.utime, os.truncate), "marks"),
}
_MADE: Final = frozenset(
    {"rename", "replace", "truncate"}
)  # changes for which the host needs more than the path
_MOVES: Final = frozenset(
    {"rename", "replace", "link", "symlink"}
)  # their second argument is a path, too
_READS: Final = frozenset("rbt")
_CHANGES: Final = os.O_CREAT | os.O_TRUNC | os.O_APPEND

_OWN: Final = f"{Path(__file__).parents[1]}/"
"""The folder of the sandbox's sources, which tracebacks look for."""
_FOREIGN_SCRATCH: Final = (
    "a temporary file is there only for the call or program that made it: "
    "use its content, or a folder of the user"
)
_TRACEBACK_MODULES: Final = frozenset({"linecache", "inspect"})
_CALLS_TO_OPEN: Final = (
    6  # frames from `linecache` through `tokenize.open` to `named`, and a few more
)

_dropped: list[
    int
] = []  # streams to close; a destructor may run in the middle of a request, so it makes none


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
        self._reads, self._writes = (
            "r" in mode or "+" in mode,
            bool(_CREATES & {*mode}) or "+" in mode,
        )
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
        data: bytes = self._ask("file_read", at=self._at, size=min(len(view), _PIECE))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data: Any) -> int:  # anything that holds bytes
        """Write the first piece of the data, and return its size."""
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        piece = bytes(memoryview(data).cast("B")[:_WRITTEN])
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
        return _value_of(
            _request(self._channel, name, {"stream": self._stream, **arguments}), self.name
        )


def _request(
    channel: Channel, name: str, arguments: dict[str, Any]
) -> Any:  # values that can be sent
    """Return the host's answer. Raise NotGranted with the host's message if it refuses."""
    dropped, _dropped[:] = _dropped[:64], _dropped[64:]
    try:
        return channel.request(name, {**arguments, "dropped": dropped})
    except PermissionError as refusal:
        raise NotGranted(str(refusal)) from None


def _value_of(answer: Any, path: str) -> Any:  # values that cross
    """Return the value of the host's answer, or raise the OSError that the host got."""
    if "errno" in answer:
        number = getattr(
            errno, answer["errno"], errno.EIO
        )  # sent by name: the host may have other numbers
        raise OSError(number, os.strerror(number), path)
    return answer["value"]


class Opener:
    """The state behind the replaced file functions of a worker, with the real functions."""

    def __init__(self, channel: Channel, scratch: Path, sources: Collection[str]) -> None:
        self.open, self.os_open, self.stat = io.open, os.open, os.stat
        self.lstat, self.listdir, self.scandir, self.getcwd = (
            os.lstat,
            os.listdir,
            os.scandir,
            os.getcwd,
        )
        self._realpath = os.path.realpath
        self.serve(channel, scratch, sources)
        self._copies = 0

    def serve(self, channel: Channel, scratch: Path, sources: Collection[str]) -> None:
        """Ask over this channel from now on, except when a traceback looks for one of these sources."""
        self._channel = channel
        self._home = self.getcwd()
        self._scratch = self._realpath(os.path.join(self._home, scratch))
        self._sources = sources
        self._places: tuple[str, str] | None = None
        self.has_left = False
        self.is_asking = True

    def places(self) -> tuple[str, str]:
        """Return the folder of the workspace and the user's home folder; "" if the host does not reveal them."""
        if self._places is None:
            try:
                root, home = _request(self._channel, "file_places", {}).get("value", ("", ""))
            except NotGranted:  # a replay
                root = home = ""
            self._places = root, home
        return self._places

    def is_in_place(self) -> bool:
        """Return whether relative paths refer to the workspace, while the worker really is in its scratch folder."""
        return self.is_asking and self._home == self._scratch == self.getcwd() and not self.has_left

    def is_workspace(self, path: object) -> bool:
        """Return whether a path is the workspace's folder, in which functions appear to start."""
        if (
            not self.is_asking
            or self._home != self._scratch
            or not isinstance(path, str | os.PathLike)
        ):
            return False
        return os.path.abspath(path) == self.places()[0]

    def return_home(self, chdir: Callable[[str], None]) -> None:
        """Return to scratch, which appears as the workspace's folder."""
        chdir(self._home)
        self.has_left = False

    def named(self, file: object, *, changes: bool = False) -> str | None:
        """Return the path to ask the host for, or None if the host is not responsible.

        That is the case for descriptors, for scratch, and, unless the access `changes` something, for the surroundings
        of packages: files that the kernel does not show there do not exist.
        """
        if not self.is_asking or not isinstance(file, str | bytes | os.PathLike):
            return None
        try:
            path = os.fsdecode(file)
            here = self.getcwd()
        except (TypeError, ValueError, OSError):
            return None
        if (
            not path
            or "\0" in path
            or path.startswith(_OWN)
            or (path in self._sources and _is_for_a_traceback())
        ):
            return None
        whole = os.path.normpath(os.path.join(here, path))
        if os.path.isabs(path) or here != self._home or self.has_left:
            around = (self._scratch,) if changes else (self._scratch, *finder.surroundings)
            # Not `whole`: what `..` after a link means, and whether a name must be a folder, is for the host to say.
            is_here = any(f"{whole}/".startswith(f"{folder}/") for folder in around)
            return None if is_here else os.path.join(here, path)
        return path

    def starts_elsewhere(self, path: str) -> bool:
        """Return whether a new file with this name would be created in scratch, where the user would not find it."""
        if os.path.isabs(path) or not self.is_in_place():
            return False
        try:
            self.lstat(path)
        except OSError:
            return True
        return False

    def request(
        self, name: str, path: str, error: OSError | None, **arguments: Any
    ) -> Any:  # values that can be sent
        """Return the host's answer. If the host refers to the real file, raise the kernel's error or return None."""
        if error is not None and self._is_of_another(path):
            raise FileNotFoundError(errno.ENOENT, _FOREIGN_SCRATCH, path)
        is_try = finder.is_package(sys._getframe(1))
        probe = {"is_probe": True} if finder.is_probe(sys._getframe(1)) else {}
        try:
            answer = _request(
                self._channel, name, {"path": path, "is_try": is_try, **probe, **arguments}
            )
        except UnicodeEncodeError:
            answer = {"real": True}
        except NotGranted:
            if is_try and name == "file_stat" and error is not None:
                raise error from None  # a library that tests for a file is told that it does not exist
            raise
        if answer.get("real"):
            if error is not None:
                raise error
            return None
        return _value_of(answer, path)

    def _is_of_another(self, path: str) -> bool:
        """Return whether a path was one of another worker's scratch, which lies beside this one's by its number."""
        own = os.path.basename(self._scratch)
        around = f"{os.path.dirname(self._scratch)}/"
        name = os.path.normpath(path).removeprefix(around).partition("/")[0]
        return own.isdigit() and name.isdigit() and path.startswith(around)

    def stream(self, path: str, mode: str, error: OSError | None) -> HostFile | None:
        """Open a file at the host; return None if the real file is to be used."""
        stream = self.request("file_open", path, error, mode=mode)
        return None if stream is None else HostFile(self._channel, path, mode, stream)

    def copy(self, path: str, error: OSError | None) -> str | None:
        """Copy a file of the host to scratch and return the path; return None if the real file is to be used."""
        source = self.stream(path, "r", error)
        if source is None:
            return None
        self._copies += 1
        place = f"{self._scratch}/.copy-{self._copies}-{os.path.basename(path)}"
        with source, self.open(place, "xb") as target:
            while piece := source.read(_PIECE):
                target.write(piece)
        return place


def _is_for_a_traceback() -> bool:
    """Return whether a traceback is reading a source; a function may open its source itself.

    The caller is `linecache`, `inspect`, or the interpreter, which reports the error of a thread without a frame.
    """
    caller = sys._getframe(2).f_back
    if caller is not None and caller.f_globals.get("__name__") == "threading":
        return True
    for _ in range(_CALLS_TO_OPEN):
        if caller is None or caller.f_globals.get("__name__") in _TRACEBACK_MODULES:
            return caller is not None
        caller = caller.f_back
    return False


def install(channel: Channel, scratch: Path, sources: Collection[str]) -> None:
    """Replace the file functions by those that ask the host."""
    if (ready := getattr(io.open, "asks", None)) is not None:  # installed by a rehearsal
        ready.serve(channel, scratch, sources)
        return
    opener = Opener(channel, scratch, sources)
    asking = _open(opener)
    asking.asks = opener  # type: ignore[attr-defined]  # marks it as installed
    io.open = builtins.open = asking
    # `runpy` opens by the first, a loader of a module from a path by the second.
    for names in (vars(io), vars(sys.modules["_io"])):
        names["open_code"] = _open_code(asking)
    for module in [*sys.modules.values()]:
        for name in ("_builtin_open", "bltn_open"):  # references in bz2, tokenize and tarfile
            if vars(module).get(name) is opener.open:
                setattr(module, name, asking)
    if finder.surroundings:
        # Replace references to the real `open` in preloaded packages; `numpy` has one in a table.
        others = [
            vars(module) for module in [*sys.modules.values()] if not finder.is_of_package(module)
        ]
        spared = {id(names) for names in (*others, vars(opener), vars(asking))}
        for names in gc.get_referrers(opener.open):
            if isinstance(names, dict) and id(names) not in spared:
                names.update(
                    {name: asking for name, value in names.items() if value is opener.open}
                )
    os.open = _os_open(opener)
    os.stat = _stat(opener, opener.stat, follows=True)
    os.lstat = _stat(opener, opener.lstat, follows=False)
    os.listdir = _listdir(opener)
    os.scandir = _scandir(opener)
    for real, kind in _KINDS.items():
        setattr(os, real.__name__, _asking(opener, real, kind, 2 if real.__name__ in _MOVES else 1))
    os.makedirs = _makedirs(opener, os.makedirs)
    os.listxattr = _listxattr(opener, os.listxattr)
    os.getcwd = _getcwd(opener)
    loaders = sys.modules["_frozen_importlib_external"].__dict__["_os"]  # below `os`
    loaders.getcwd = os.getcwd
    os.getcwdb = lambda: os.fsencode(os.getcwd())
    os.chdir = _chdir(opener, os.chdir)  # type: ignore[assignment]  # the name of its parameter
    os.access = _access(opener, os.access)
    paths = sys.modules["posixpath"]
    paths.__dict__["realpath"] = _realpath(opener, os.path.realpath)
    paths.__dict__["expanduser"] = _expanduser(opener, os.path.expanduser)
    pathlib = sys.modules["pathlib"].__dict__["Path"]
    pathlib.expanduser = lambda path: type(path)(os.path.expanduser(path))
    _tests(sys.modules["genericpath"])
    _tests(sys.modules["posixpath"])


def rest() -> None:
    """Stop asking the host until the next `install`, because not every job after a rehearsal may ask."""
    opener: Opener | None = getattr(io.open, "asks", None)
    if opener is not None:
        opener.is_asking = False


def _open(opener: Opener) -> Callable[..., Any]:
    real = opener.open

    @functools.wraps(real)
    def open(
        file: Any, mode: str = "r", buffering: int = -1, *texts: Any, **more: Any
    ) -> Any:  # as io.open
        is_ours = isinstance(mode, str) and more.get("opener") is None
        path = opener.named(file, changes=not _READS.issuperset(mode)) if is_ours else None
        if path is None:
            return real(file, mode, buffering, *texts, **more)
        error: OSError | None = None
        if not (_CREATES & {*mode} and opener.starts_elsewhere(path)):
            try:
                return real(file, mode, buffering, *texts, **more)
            except OSError as failure:
                if failure.errno not in _SHUT:
                    raise
                error = failure.with_traceback(None)
        raw = opener.stream(path, "".join(sorted({*mode} - set("tb"))), error)
        if raw is None:
            return real(file, mode, buffering, *texts, **more)
        return _add_layers(raw, mode, buffering, *texts, **more)

    return open


def _open_code(asking: Callable[..., Any]) -> Callable[[str], Any]:
    @functools.wraps(io.open_code)
    def open_code(path: str) -> Any:  # a binary file
        return asking(path, "rb")

    return open_code


def _add_layers(  # noqa: PLR0913, PLR0917 - the parameters of `open`
    file: HostFile,
    mode: str,
    buffering: int,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,  # noqa: FBT001, FBT002 - the signature of `open`
    opener: None = None,
) -> Any:  # any file object
    """Return the file with the buffer and the text layer that `open` would add."""
    is_text = "b" not in mode
    if buffering == 0:
        if is_text:
            raise ValueError("can't have unbuffered text I/O")
        return file
    size = buffering if buffering > 1 else _PIECE
    if "+" in mode:
        buffered: Any = io.BufferedRandom(file, min(size, _WRITTEN))
    elif file.writable():
        buffered = io.BufferedWriter(file, min(size, _WRITTEN))
    else:
        buffered = io.BufferedReader(file, size)
    if file.writable() and "a" in mode:
        file.seek(0, os.SEEK_END)
    if not is_text:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    text.__dict__["mode"] = mode  # as `open` sets it
    return text


def _os_open(opener: Opener) -> Callable[..., int]:
    @functools.wraps(opener.os_open)
    def open(
        path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:  # the signature of os.open
        try:
            return opener.os_open(path, flags, mode, dir_fd=dir_fd)
        except OSError as error:
            way = flags & (os.O_WRONLY | os.O_RDWR)  # these share a bit on some systems
            is_change = way in (os.O_WRONLY, os.O_RDWR) or bool(flags & _CHANGES)
            name = (
                opener.named(path, changes=is_change)
                if dir_fd is None and error.errno in _SHUT
                else None
            )
            if name is None or flags & os.O_DIRECTORY:
                raise
            if is_change:
                opener.request("file_change", name, error, kind="names")
                raise
            try:
                copy = opener.copy(name, error)
            except IsADirectoryError as folder:  # a folder is opened like this in order to empty it
                opener.request("file_change", name, folder, kind="names")
                raise
        return opener.os_open(str(copy), flags)

    return open


def _stat(
    opener: Opener, real: Callable[..., os.stat_result], *, follows: bool
) -> Callable[..., os.stat_result]:
    @functools.wraps(real)
    def asking(
        path: Any, *, dir_fd: int | None = None, **more: Any
    ) -> os.stat_result:  # the signature of os.stat
        try:
            return real(path, dir_fd=dir_fd, **more)
        except OSError as error:
            name = opener.named(path) if dir_fd is None and error.errno in _SHUT else None
            if name is None:
                raise
            is_followed = follows and more.get("follow_symlinks", True)
            facts = opener.request("file_stat", name, error, follows=is_followed)
        times = zip(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), facts[7:10], strict=True)
        return os.stat_result(facts, {name: int(seconds) * 10**9 for name, seconds in times})

    return asking


def _listdir(opener: Opener) -> Callable[..., list[Any]]:
    @functools.wraps(opener.listdir)
    def listdir(path: Any = ".") -> list[Any]:  # the signature of os.listdir
        rows = _rows(opener, path)
        if rows is None:
            return opener.listdir(path)
        names = [name for name, _mode in rows]
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    return listdir


def _rows(opener: Opener, path: Any) -> list[tuple[str, int]] | None:  # any path
    """Return the names and modes in a folder of the host, or None if the kernel shows the folder.

    The kernel shows a folder around a granted one, too, with that one alone in it: only the host knows which is whole.
    """
    error: OSError | None = None
    if not (opener.is_in_place() and path is not None and opener.is_workspace(path)):
        try:
            opener.scandir(path).close()
        except OSError as failure:
            error = failure.with_traceback(None)
        if error is not None and error.errno not in _SHUT:
            return None
    name = opener.named(path)
    return None if name is None else opener.request("file_list", name, error)


def _scandir(opener: Opener) -> Callable[..., Any]:
    @functools.wraps(opener.scandir)
    def scandir(path: Any = ".") -> Any:  # the signature of os.scandir
        rows = _rows(opener, path)
        if rows is None:
            return opener.scandir(path)
        folder = os.fspath(path)
        form = os.fsencode if isinstance(folder, bytes) else str
        return FolderListing([FolderEntry(folder, form(name), mode) for name, mode in rows])

    return scandir


def _tests(module: ModuleType) -> None:
    """Make `exists`, `isfile` and `isdir` raise for a file that was not granted, where they would return False."""
    for name, test in (("exists", None), ("isfile", stat.S_ISREG), ("isdir", stat.S_ISDIR)):
        if hasattr(module, name):
            setattr(module, name, _test(getattr(module, name), test))


def _test(real: Callable[..., bool], test: Callable[[int], bool] | None) -> Callable[..., bool]:
    @functools.wraps(real)
    def asking(path: Any) -> bool:  # the signature in os.path
        try:
            mode = os.stat(path).st_mode
        except NotGranted:
            raise
        except (OSError, ValueError):
            return False
        return True if test is None else test(mode)

    return asking


def _asking(
    opener: Opener, real: Callable[..., None], kind: _Kind, paths: int
) -> Callable[..., None]:
    @functools.wraps(real)
    def change(*arguments: Any, **more: Any) -> None:  # the signature in os
        if any(value is not None for key, value in more.items() if key.endswith("dir_fd")):
            return real(*arguments, **more)
        places = [
            place
            for path in arguments[:paths]
            if (place := opener.named(path, changes=True)) is not None
        ]
        error: OSError | None = None
        if kind != "folder" or not places or not opener.starts_elsewhere(places[0]):
            try:
                return real(*arguments, **more)
            except OSError as failure:
                if failure.errno not in _SHUT:
                    raise
                error = failure.with_traceback(None)
        if not places and error is not None:
            raise error
        has_scratch = len(places) < paths  # which the host cannot rename from or to
        act = _act(real.__name__, arguments[:1] if has_scratch else arguments, more)
        answers = [
            opener.request("file_change", place, error, kind=kind, act=act) for place in places[:1]
        ]
        answers += [
            opener.request("file_change", place, error, kind=kind)
            for place in places[1:]
            if None in answers
        ]
        return real(*arguments, **more) if None in answers else None

    return change


def _act(name: str, arguments: tuple[Any, ...], more: dict[str, Any]) -> list[Any]:
    """Return the change for the host: its name and the arguments after the path."""
    if name == "utime" and any((*arguments[1:2], more.get("times"), more.get("ns"))):
        return ["utime", "to a given time"]  # which the host refuses
    rest = [
        os.fspath(value) if isinstance(value, os.PathLike) else value for value in arguments[1:]
    ]
    return (
        [name, *(value for value in rest if isinstance(value, str | int))]
        if name in _MADE
        else [name]
    )


def _makedirs(opener: Opener, real: Callable[..., None]) -> Callable[..., None]:
    """Return a `makedirs` that makes one request for a path with several new folders."""

    @functools.wraps(real)
    def makedirs(name: Any, mode: int = 0o777, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature in os
        place = opener.named(name, changes=True)
        if place is None or not opener.starts_elsewhere(place):
            return real(name, mode, exist_ok)
        try:
            answer = opener.request("file_change", place, None, kind="folder", act=["makedirs"])
        except FileExistsError:
            if not exist_ok:
                raise
            return None
        return real(name, mode, exist_ok) if answer is None else None

    return makedirs


def _listxattr(opener: Opener, real: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a `listxattr` that reports no attributes for a readable file of the host, for code that copies files."""

    @functools.wraps(real)
    def listxattr(
        path: Any = None, *, follow_symlinks: bool = True
    ) -> list[str]:  # the signature in os
        try:
            return real(path, follow_symlinks=follow_symlinks)
        except OSError as error:
            place = opener.named(path) if error.errno in _SHUT else None
            if place is None:
                raise
            opener.request("file_stat", place, error)
            return []

    return listxattr


def _getcwd(opener: Opener) -> Callable[[], str]:
    @functools.wraps(opener.getcwd)
    def getcwd() -> str:  # the signature in os
        return (opener.is_in_place() and opener.places()[0]) or opener.getcwd()

    return getcwd


def _chdir(opener: Opener, real: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(real)
    def chdir(path: Any) -> None:  # the signature in os
        if opener.is_workspace(path):
            opener.return_home(real)
            return
        try:
            real(path)
        except OSError as error:
            place = opener.named(path) if error.errno in _SHUT else None
            if place is not None:
                opener.request("file_change", place, error, kind="enter")
            raise
        opener.has_left = True

    return chdir


def _access(opener: Opener, real: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(real)
    def access(
        path: Any, mode: int, *, dir_fd: int | None = None, **more: Any
    ) -> bool:  # the signature in os
        if real(path, mode, dir_fd=dir_fd, **more):
            return True
        if dir_fd is not None or opener.named(path) is None:
            return False
        try:
            facts = os.stat(path)
        except NotGranted:
            raise
        except OSError:
            return False
        return mode == os.F_OK or bool(facts.st_mode & mode * 0o111)

    return access


def _realpath(opener: Opener, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `realpath` that leaves links to the host, which asks for the real file."""

    @functools.wraps(real)
    def realpath(filename: Any, *, strict: bool = False) -> Any:  # the signature in os.path
        if opener.named(filename) is None:
            return real(filename, strict=strict)
        if opener.is_workspace(filename):
            return os.getcwd()
        try:
            opener.lstat(filename)
        except (OSError, ValueError):
            if strict:
                os.stat(filename)
            return os.path.abspath(filename)
        text, here = os.fspath(filename), opener.getcwd()
        return real(
            os.path.join(os.fsencode(here) if isinstance(text, bytes) else here, text),
            strict=strict,
        )

    return realpath


def _expanduser(opener: Opener, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an `expanduser` for the user's home; hidden names stay in scratch, where packages store their data."""

    @functools.wraps(real)
    def expanduser(path: Any) -> Any:  # the signature in os.path
        text = os.fspath(path)
        is_users = isinstance(text, str) and text.startswith("~/") and not text.startswith("~/.")
        if is_users and opener.is_asking and (home := opener.places()[1]):
            return home + text[1:]
        return real(path)

    return expanduser

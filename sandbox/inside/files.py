"""Files that were not granted beforehand: what the kernel does not open is asked of the host, over the call's channel.

The host asks the user, opens exactly that file, and hands over its bytes; no descriptor crosses. This is a convenience
for honest code: whatever goes around it finds only what the kernel shows. What Python opens by itself (`open`, `Path`,
`csv`, `zipfile`, …) reads and writes through a stream; `os.open` and `sqlite3.connect` get a copy to read, in scratch.
"""

import builtins
import errno
import functools
import io
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from . import file_changes
from .channel import Channel
from .file_changes import SHUT
from .host_files import CREATES, PIECE, WRITTEN, HostEntry, HostFile, HostListing, NotGranted, request, value_of

_CHANGES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Opener:
    """The replacements for the ways to open files in a worker, next to the real ones."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        self.serve(channel, scratch)
        self._copies = 0
        self.open, self.os_open, self.stat = io.open, os.open, os.stat
        self.lstat, self.listdir, self.scandir = os.lstat, os.listdir, os.scandir

    def serve(self, channel: Channel, scratch: Path) -> None:
        """Ask over this channel from now on."""
        self._channel = channel
        self._scratch = os.path.realpath(scratch)
        self._home = os.getcwd()
        self.is_asking = True

    def named(self, file: object) -> str | None:
        """Return the path to ask the host for, or None for what is not the host's: descriptors, and scratch."""
        if not self.is_asking or not isinstance(file, str | bytes | os.PathLike):
            return None
        try:
            path = os.fsdecode(file)
            here = os.getcwd()
        except (TypeError, ValueError, OSError):
            return None
        if not path or "\0" in path:
            return None
        whole = os.path.normpath(os.path.join(here, path))
        if os.path.isabs(path) or here != self._home:
            return None if self._is_own(whole) else whole
        return path

    def _is_own(self, whole: str) -> bool:
        return whole == self._scratch or whole.startswith(f"{self._scratch}/")

    def starts_elsewhere(self, path: str) -> bool:
        """Return whether a new file of this name would be made in scratch, where nobody would find it."""
        if os.path.isabs(path) or self._home != self._scratch:
            return False
        try:
            self.lstat(path)
        except OSError:
            return True
        return False

    def request(self, name: str, path: str, error: OSError | None, **arguments: Any) -> Any:  # values that cross
        """Return the host's answer. Where it is not the host's, raise the error of the kernel."""
        try:
            answer = request(self._channel, name, {"path": path, **arguments})
        except UnicodeEncodeError:
            answer = {"real": True}
        if answer.get("real"):
            if error is not None:
                raise error
            return None
        return value_of(answer, path)

    def stream(self, path: str, mode: str, error: OSError | None) -> HostFile | None:
        """Return the file as the host has it open."""
        stream = self.request("file_open", path, error, mode=mode)
        return None if stream is None else HostFile(self._channel, path, mode, stream)

    def copy(self, path: str, error: OSError | None) -> str | None:
        """Return the path of a copy to read, in scratch."""
        source = self.stream(path, "r", error)
        if source is None:
            return None
        self._copies += 1
        place = f"{self._scratch}/.copy-{self._copies}-{os.path.basename(path)}"
        with source, self.open(place, "xb") as target:
            while piece := source.read(PIECE):
                target.write(piece)
        return place


def install(channel: Channel, scratch: Path) -> None:
    """Put the asking ways to open files in place."""
    if (ready := getattr(io.open, "asks", None)) is not None:  # by a rehearsal
        ready.serve(channel, scratch)
        return
    opener = Opener(channel, scratch)
    asking = _open(opener)
    asking.asks = opener  # type: ignore[attr-defined]  # says that it is in place
    io.open = builtins.open = asking
    os.open = _os_open(opener)
    os.stat = _stat(opener, opener.stat, follows=True)
    os.lstat = _stat(opener, opener.lstat, follows=False)
    os.listdir = _listdir(opener)
    os.scandir = _scandir(opener)
    file_changes.install(opener)
    _tests(sys.modules["genericpath"])
    _tests(sys.modules["posixpath"])


def rest() -> None:
    """Ask for nothing until the next installation: a rehearsal is over, and not every job may ask."""
    opener: Opener | None = getattr(io.open, "asks", None)
    if opener is not None:
        opener.is_asking = False


def _open(opener: Opener) -> Callable[..., Any]:
    real = opener.open

    @functools.wraps(real)
    def open(file: Any, mode: str = "r", buffering: int = -1, *texts: Any, **more: Any) -> Any:  # as io.open has it
        path = opener.named(file) if isinstance(mode, str) and more.get("opener") is None else None
        if path is None:
            return real(file, mode, buffering, *texts, **more)
        error: OSError | None = None
        if not (CREATES & {*mode} and opener.starts_elsewhere(path)):
            try:
                return real(file, mode, buffering, *texts, **more)
            except OSError as failure:
                if failure.errno not in SHUT:
                    raise
                error = failure.with_traceback(None)
        raw = opener.stream(path, "".join(sorted({*mode} - set("tb"))), error)
        if raw is None:
            return real(file, mode, buffering, *texts, **more)
        return _layered(raw, mode, buffering, *texts, **more)

    return open


def _layered(  # noqa: PLR0913, PLR0917 - the parameters of `open`
    raw: HostFile,
    mode: str,
    buffering: int,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,  # noqa: FBT001, FBT002 - as `open` has it
    opener: None = None,
) -> Any:  # as `open` gives it
    """Return the buffer and the text layer that `open` would put on the file."""
    is_text = "b" not in mode
    if buffering == 0:
        if is_text:
            raise ValueError("can't have unbuffered text I/O")
        return raw
    size = buffering if buffering > 1 else PIECE
    if "+" in mode:
        buffered: Any = io.BufferedRandom(raw, min(size, WRITTEN))
    elif raw.writable():
        buffered = io.BufferedWriter(raw, min(size, WRITTEN))
    else:
        buffered = io.BufferedReader(raw, size)
    if raw.writable() and "a" in mode:
        raw.seek(0, os.SEEK_END)
    if not is_text:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    text.__dict__["mode"] = mode  # as `open` says it
    return text


def _os_open(opener: Opener) -> Callable[..., int]:
    @functools.wraps(opener.os_open)
    def open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # as os.open has it
        try:
            return opener.os_open(path, flags, mode, dir_fd=dir_fd)
        except OSError as error:
            name = opener.named(path) if dir_fd is None and error.errno in SHUT else None
            if name is None or flags & (_CHANGES | os.O_DIRECTORY):
                raise
            try:
                copy = opener.copy(name, error)
            except IsADirectoryError as folder:  # who opens one so is about to empty it
                opener.request("file_change", name, folder, kind="names")
                raise
        return opener.os_open(str(copy), flags)

    return open


def _stat(opener: Opener, real: Callable[..., os.stat_result], *, follows: bool) -> Callable[..., os.stat_result]:
    @functools.wraps(real)
    def asking(path: Any, *, dir_fd: int | None = None, **more: Any) -> os.stat_result:  # as os.stat has it
        try:
            return real(path, dir_fd=dir_fd, **more)
        except OSError as error:
            name = opener.named(path) if dir_fd is None and error.errno in SHUT else None
            if name is None:
                raise
            facts = opener.request("file_stat", name, error)
        times = zip(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), facts[7:10], strict=True)
        return os.stat_result(facts, {name: int(seconds) * 10**9 for name, seconds in times})

    return asking


def _listdir(opener: Opener) -> Callable[..., list[Any]]:
    @functools.wraps(opener.listdir)
    def listdir(path: Any = ".") -> list[Any]:  # as os.listdir has it
        try:
            return opener.listdir(path)
        except OSError as error:
            name = opener.named(path) if error.errno in SHUT else None
            if name is None:
                raise
            names = [name for name, _mode in opener.request("file_list", name, error)]
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    return listdir


def _scandir(opener: Opener) -> Callable[..., Any]:
    @functools.wraps(opener.scandir)
    def scandir(path: Any = ".") -> Any:  # as os.scandir has it
        try:
            return opener.scandir(path)
        except OSError as error:
            name = opener.named(path) if error.errno in SHUT else None
            if name is None:
                raise
            rows = opener.request("file_list", name, error)
        folder = os.fspath(path)
        return HostListing([HostEntry(os.fsdecode(folder), name, mode) for name, mode in rows])

    return scandir


def _tests(module: ModuleType) -> None:
    """Let `exists`, `isfile` and `isdir` say that a file is not granted, where they would say that it is not there."""
    for name, test in (("exists", None), ("isfile", stat.S_ISREG), ("isdir", stat.S_ISDIR)):
        if hasattr(module, name):
            setattr(module, name, _test(getattr(module, name), test))


def _test(real: Callable[..., bool], test: Callable[[int], bool] | None) -> Callable[..., bool]:
    @functools.wraps(real)
    def asking(path: Any) -> bool:  # as os.path has it
        try:
            mode = os.stat(path).st_mode
        except NotGranted:
            raise
        except (OSError, ValueError):
            return False
        return True if test is None else test(mode)

    return asking


def connect(module: Any) -> None:  # sqlite3.dbapi2
    """Let `sqlite3.connect` read a copy of a database that the user grants at the call."""
    opener: Opener | None = getattr(io.open, "asks", None)
    if opener is None or hasattr(module.connect, "asks"):
        return
    real = module.connect

    @functools.wraps(real)
    def asking(database: Any, *arguments: Any, **more: Any) -> Any:  # as sqlite3 has it
        path = None if database == ":memory:" or more.get("uri") else opener.named(database)
        if path is None:
            return real(database, *arguments, **more)
        error: OSError | None = None
        if not opener.starts_elsewhere(path):
            try:
                return real(database, *arguments, **more)
            except module.OperationalError:
                error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        copy = opener.copy(path, error)
        if copy is None:
            return real(database, *arguments, **more)
        quoted = copy.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return real(f"file:{quoted}?mode=ro", *arguments, **{**more, "uri": True})

    asking.__dict__["asks"] = opener  # says that it is in place
    module.connect = asking

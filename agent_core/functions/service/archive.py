"""A library read as texts: a `.py` file, a folder, a `.zip`, a `.tar` or `.tar.gz`. Nothing is unpacked to disk.

An archive may be hostile: names that leave it, links, devices and encrypted members are reported and skipped; sizes
and counts are capped while reading, whatever its directory claims.
"""

import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.base.problem import Place, Problem

_BROKEN = (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error, NotImplementedError, RuntimeError)
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LibraryLimits:
    """Limits on how much of a library is read."""

    members: int = 10_000
    file_bytes: int = 256 << 10
    text_bytes: int = 32 << 20
    archive_bytes: int = 64 << 20
    unpacked_bytes: int = 256 << 20


@dataclass(slots=True)
class Library:
    """The Python files of a library by their paths in it, and the problems of members that were not taken."""

    name: str
    base: str
    files: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _bytes: int = 0
    _members: int = 0

    def refuse(self, code: str, name: str, message: str, fix: str) -> None:
        """Report a member that is not taken."""
        self.problems.append(Problem(code, message, Place(self.base + name), fix))

    def count(self, limits: LibraryLimits) -> None:
        """Count one more member, of whatever kind."""
        self._members += 1
        if self._members > limits.members:
            raise UsageError(f"{self.name} holds more than {limits.members:,} members.", fix="Import part of it.")

    def take(self, name: str, content: bytes, limits: LibraryLimits) -> None:
        """Take one Python file if it is text of an acceptable size."""
        self._bytes += len(content)
        if self._bytes > limits.text_bytes:
            limit = f"{limits.text_bytes >> 20} MiB"
            raise UsageError(f"{self.name} holds more than {limit} of Python.", fix="Import part of it.")
        if len(content) > limits.file_bytes:
            self.refuse("too-large", name, f"it is larger than {limits.file_bytes >> 10} KiB", "split it")
            return
        if name in self.files:
            self.refuse("twice", name, "it is there twice, and the first is used", "remove one of them")
            return
        try:
            self.files[name] = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            self.refuse("encoding", name, "it is not UTF-8", "save it as UTF-8")


def read_library(path: Path, limits: LibraryLimits | None = None) -> Library:
    """Return the Python files of a library.

    Raises:
        UsageError: there is nothing that can be read, or far too much.
    """
    limits, library = limits or LibraryLimits(), Library(path.name, f"{path.name}:")
    try:
        if path.is_dir():
            _folder(path, library, limits)
        elif path.suffix == ".py":
            library.base = path.as_posix().removesuffix(path.name)
            library.take(path.name, _content(path, limits.file_bytes), limits)
        elif zipfile.is_zipfile(path):
            _zip(path, library, limits)
        else:
            _tar(path, library, limits)
    except _BROKEN as error:
        message = f"{path} cannot be read as a library: {error}."
        raise UsageError(message, fix="Give a .py file, a folder, a .zip, a .tar or .tar.gz, or a .jsonl.") from error
    if not path.is_dir() and path.suffix != ".py":
        library.files = _without_wrapping(library.files)
    return library


def _folder(root: Path, library: Library, limits: LibraryLimits) -> None:
    is_package = (root / "__init__.py").is_file()
    base = root.resolve().parent if is_package else root.resolve()
    library.base = f"{(root.parent if is_package else root).as_posix()}/"
    for folder, folders, names in os.walk(root.resolve()):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted([*names, *folders]):
            path = Path(folder, name)
            inside = path.relative_to(base).as_posix()
            library.count(limits)
            if path.is_symlink():
                library.refuse("link", inside, "it is a link, and links are not followed", "put the file itself there")
            elif path.suffix == ".py" and path.is_file():
                library.take(inside, _content(path, limits.file_bytes), limits)


def _content(path: Path, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | machine.NONBLOCK | machine.CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(limit + 1)


def _zip(path: Path, library: Library, limits: LibraryLimits) -> None:
    _check_size(path, limits)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            library.count(limits)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if not _is_wanted(member.filename, library, is_plain=kind in (0, stat.S_IFREG, stat.S_IFDIR)):
                continue
            with _telling(member.filename, library), archive.open(member) as stream:
                library.take(member.filename, stream.read(limits.file_bytes + 1), limits)


def _tar(path: Path, library: Library, limits: LibraryLimits) -> None:
    _check_size(path, limits)
    with path.open("rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        unpacked = _Capped(gzip.GzipFile(fileobj=raw) if is_packed else raw, limits.unpacked_bytes, library.name)
        with tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                library.count(limits)
                if not _is_wanted(member.name, library, is_plain=member.isreg() or member.isdir()) or member.isdir():
                    continue
                stream = archive.extractfile(member)
                assert stream is not None
                with _telling(member.name, library):
                    library.take(member.name, stream.read(limits.file_bytes + 1), limits)


class _Capped(io.RawIOBase):
    """A stream with a read limit: the unpacked size is only known while reading."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, limit: int, name: str) -> None:
        self._stream, self._left, self._name = stream, limit, name

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if size < 0 or size > self._left:
            raise UsageError(f"{self._name} unpacks to far more than it should.", fix="Import part of it.")
        content = self._stream.read(size)
        self._left -= len(content)
        return content


def _check_size(path: Path, limits: LibraryLimits) -> None:
    if path.stat().st_size > limits.archive_bytes:
        raise UsageError(f"{path} is larger than {limits.archive_bytes >> 20} MiB.", fix="Import part of it.")


def _is_wanted(name: str, library: Library, *, is_plain: bool) -> bool:
    """Return whether a member is a Python file with a path that stays inside the library."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name.isprintable():
        shown = name.encode("unicode_escape").decode()
        library.refuse("unsafe-path", shown, "its name leads out of the archive", "give it a plain name")
        return False
    if not is_plain:
        library.refuse("link", name, "it is a link or a device, and neither is followed", "put the file itself there")
        return False
    return path.suffix == ".py" and not any(part.startswith(".") for part in path.parts)


@contextmanager
def _telling(name: str, library: Library) -> Iterator[None]:
    """Report a member that cannot be read, and go on with the next."""
    try:
        yield
    except UsageError:
        raise
    except _BROKEN as error:
        library.refuse("unreadable", name, f"it cannot be read: {error}", "pack it anew, without a password")


def _without_wrapping(files: dict[str, str]) -> dict[str, str]:
    """Return the files without folders that wrap all of them and are no package: `helpers-1.0/src/`."""
    while files:
        tops = {PurePosixPath(name).parts[0] for name in files}
        top = next(iter(tops))
        if len(tops) > 1 or f"{top}/__init__.py" in files or top in files:
            return files
        files = {name.removeprefix(f"{top}/"): text for name, text in files.items()}
    return files

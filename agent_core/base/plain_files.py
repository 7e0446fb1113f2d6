"""Workspace files, which may come from a stranger: read as regular files up to a size, through no link; replaced whole.

Opening a pipe would block the program, and a link to a device has no end. A file that the user names in a command may
be any of these; it is read up to a size.
"""

import errno
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from . import machine
from .user_folders import expand_home

LARGEST_FILE = 256 << 20
"""Maximum size in bytes of a file that a user names: an endless one, such as /dev/zero, must not fill the memory."""
_PIECE = 1 << 20
ADDING = (
    os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.NOFOLLOW | machine.NONBLOCK | machine.CLOEXEC
)
"""Flags for adding to a file: links are not followed and pipes do not block."""


class NotPlainError(OSError):
    """A file that this program does not read or write, although the system would; the message has the reason."""


def read_plain(path: Path, most_bytes: int) -> bytes:
    """Return the contents of a regular file.

    Raises:
        OSError: it cannot be read; NotPlainError if it is a link, not a regular file, or larger than `most_bytes`.
    """
    with os.fdopen(open_plain(path, machine.LOOKING), "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise NotPlainError(errno.EFBIG, f"it is larger than {most_bytes:,} bytes", str(path))
    return content


def read_end(path: Path, most_bytes: int) -> bytes:
    """Return the last `most_bytes` bytes of a regular file; OSError as above."""
    with os.fdopen(open_plain(path, machine.LOOKING), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
        return file.read(most_bytes)


def add_to(path: Path, data: bytes) -> None:
    """Append to a regular file, created if it does not exist; OSError as above."""
    with os.fdopen(open_plain(path, ADDING), "ab") as file:
        file.write(data)


def read_named(path: str | Path) -> bytes:
    """Return the content of a file that the user named.

    Raises:
        OSError: it cannot be read, or has more than `LARGEST_FILE` bytes.
    """
    with expand_home(path).open("rb") as file:
        return _read_bounded(file, str(path))


def read_beginning(path: str | Path, most_bytes: int) -> bytes:
    """Return up to so many bytes of a file that the user named; OSError if it cannot be read."""
    with expand_home(path).open("rb") as file:
        return file.read(most_bytes)


def read_named_text(path: str | Path) -> str:
    """Return the text of a file that the user named, with "\\n" as line ends; `-` reads standard input.

    Raises:
        OSError: it cannot be read, or has more than `LARGEST_FILE` bytes.
        UnicodeDecodeError: it is not UTF-8.
    """
    content = _read_bounded(sys.stdin.buffer, "standard input") if path == "-" else read_named(path)
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def replace_text(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file through another one, which then takes its place: a reader gets the old text or the new one.

    It has this mode, or else that of the file that it replaces.

    Raises:
        OSError: it cannot be written.
    """
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    descriptor, temporary = tempfile.mkstemp(
        prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
    )
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            machine.change_mode(descriptor, mode)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except OSError:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _read_bounded(file: BinaryIO, name: str) -> bytes:
    content = (
        bytearray()
    )  # in pieces: a single read of that size would allocate all its memory at once
    while piece := file.read(_PIECE):
        content += piece
        if len(content) > LARGEST_FILE:
            raise OSError(errno.EFBIG, f"File larger than {LARGEST_FILE >> 20} MiB", name)
    return bytes(content)


def open_plain(path: Path, flags: int) -> int:
    """Return the descriptor of a regular file; OSError as above. One to write to has no other name."""
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlainError(
                errno.ELOOP, "it is a link, which is not followed", str(path)
            ) from error
        raise
    status = os.fstat(descriptor)
    is_written = bool(flags & (os.O_WRONLY | os.O_RDWR))
    if stat.S_ISREG(status.st_mode) and not (is_written and status.st_nlink > 1):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISREG(status.st_mode):
        what = "it is the same file as another one (a hard link), which may be anyone's"
        raise NotPlainError(errno.EMLINK, what, str(path))
    raise NotPlainError(errno.EINVAL, "it is not a regular file", str(path))

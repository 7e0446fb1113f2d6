"""Where this user keeps what belongs to no workspace, below the home folder; and bounded reads of files they name."""

import errno
import os
import sys
from pathlib import Path

from .errors import WorkspaceError

LARGEST_FILE = 256 << 20
"""Bytes of a file that a user names: one without an end, such as /dev/zero, must not fill the memory."""


class NoHome(WorkspaceError):
    """This user has no home folder, and nothing else says where files of the user lie."""

    code = "no-home"

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what, fix=fix)


def data_folder() -> Path:
    """Return where Toolwright keeps this user's data.

    Raises:
        NoHome: there is no such place.
    """
    return _base("XDG_DATA_HOME", ".local/share", "data") / "toolwright"


def config_folder() -> Path:
    """Return where Toolwright keeps this user's configuration and secrets.

    Raises:
        NoHome: there is no such place.
    """
    return _base("XDG_CONFIG_HOME", ".config", "settings and secrets") / "toolwright"


def cache_folder() -> Path:
    """Return where Toolwright keeps what it can make again.

    Raises:
        NoHome: there is no such place.
    """
    return _base("XDG_CACHE_HOME", ".cache", "cached files") / "toolwright"


def home() -> Path | None:
    """Return this user's home folder, if there is one and it is named by its whole path."""
    try:
        folder = Path.home()
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def expanded(path: str | Path) -> Path:
    """Return a path with the home folder that its `~` or `~name` stands for.

    Raises:
        NoHome: there is no such home folder.
    """
    if not str(path).startswith("~"):
        return Path(path)
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        named = Path(path).parts[0]
        raise NoHome(f"{str(path)!r} is nowhere: {named!r} is not a home folder.", "Write the whole path.") from error


def read_named(path: str | Path) -> bytes:
    """Return the content of a file that the user named.

    Raises:
        OSError: it cannot be read, or has more than `LARGEST_FILE` bytes.
    """
    with expanded(path).open("rb") as file:
        return _bounded(file.read(LARGEST_FILE + 1), str(path))


def read_named_text(path: str | Path) -> str:
    """Return the text of a file that the user named, its lines ended by "\\n"; `-` stands for standard input.

    Raises:
        OSError: it cannot be read, or has more than `LARGEST_FILE` bytes.
        UnicodeDecodeError: it is not UTF-8.
    """
    is_stdin = str(path) == "-"
    content = _bounded(sys.stdin.buffer.read(LARGEST_FILE + 1), "standard input") if is_stdin else read_named(path)
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _bounded(content: bytes, name: str) -> bytes:
    if len(content) > LARGEST_FILE:
        raise OSError(errno.EFBIG, f"File larger than {LARGEST_FILE >> 20} MiB", name)
    return content


def _base(variable: str, usual: str, kind: str) -> Path:
    given = os.environ.get(variable, "")
    if Path(given).is_absolute():
        return Path(given)
    if (folder := home()) is None:
        what = f"There is no place for this user's {kind}: user {os.getuid()} has no home folder."
        raise NoHome(what, f"Set HOME, or {variable}, to a folder of this user, by its whole path.")
    return folder / usual

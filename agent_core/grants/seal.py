"""A seal on each yes, so that a folder that comes from somebody else brings none along.

The key is made once in the user's own data folder, readable by its owner alone; the seal is an HMAC over the real
path of the workspace, the function, the content and what is granted. Where the key cannot be trusted nothing counts.
"""

import hashlib
import hmac
import json
import os
import stat
from pathlib import Path

from ..errors import WorkspaceError

_SIZE = 32
_PURPOSE = "toolwright yes 1"


def data_folder() -> Path:
    """Where Toolwright keeps what belongs to this user, and to no workspace."""
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "toolwright"


class Sealer:
    """Seals what a human said for one workspace, and tells its own seals from others."""

    def __init__(self, root: Path, folder: Path | None = None) -> None:
        self._root = str(root.resolve())
        self._folder = folder
        self._key = b""

    def seal(self, *values: str) -> str:
        """The seal of these values here; the first time makes the key.

        Raises:
            WorkspaceError: the key cannot be made, or others could read it.
        """
        key = self._read() or self._make()
        return _sealed(key, self._root, values)

    def holds(self, seal: str, *values: str) -> bool:
        """Whether this user sealed these values in this workspace."""
        key = self._read()
        return bool(key) and hmac.compare_digest(
            seal.encode("utf-8", "replace"), _sealed(key, self._root, values).encode()
        )

    def _file(self) -> Path:
        return (self._folder or data_folder()) / "grants.key"

    def _read(self) -> bytes:
        if not self._key:
            try:
                descriptor = os.open(self._file(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except (OSError, RuntimeError):  # no key, or no home
                return b""
            try:
                self._key = os.read(descriptor, _SIZE + 1) if is_private(descriptor) else b""
            finally:
                os.close(descriptor)
        return self._key if len(self._key) == _SIZE else b""

    def _make(self) -> bytes:
        try:
            file = self._file()
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as made:
                made.write(os.urandom(_SIZE))
                made.flush()
                os.fsync(made.fileno())
        except FileExistsError:
            pass  # made by another process in this moment, or not fit to be used
        except (OSError, RuntimeError) as error:
            raise WorkspaceError(f"The key of your grants cannot be made: {error}.", mend=_MEND) from error
        key = self._read()
        if not key:
            what = f"The key of your grants, {self._file()}, is not yours alone, or not whole, so it seals nothing."
            raise WorkspaceError(what, mend="Remove it; every grant is then asked for once more.")
        return key


_MEND = "Set XDG_DATA_HOME to a folder that you may write to."


def is_private(descriptor: int) -> bool:
    """Return whether it is a plain file of this user that nobody else can read or change."""
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _sealed(key: bytes, root: str, values: tuple[str, ...]) -> str:
    text = json.dumps([_PURPOSE, root, *values])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

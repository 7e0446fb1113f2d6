"""Seals with a key of this user, so that approvals and state in someone else's folder do not count.

The key is created once in the user's own data folder, readable only by its owner. A seal is an HMAC over the values
and, for a seal that is valid in one workspace only, its real path. If the key cannot be trusted, no seal is valid.
"""

import hmac
import json
import os
import stat
import time
from pathlib import Path
from typing import Final

from . import machine
from .errors import WorkspaceError
from .user_folders import data_folder

_SEALED_AS = (
    "toolwright yes 1"  # the program's former name: with another, no earlier approval would count
)
ELSEWHERE: Final = (
    "A yes to it is stored, but does not count here: it was given in another folder or by another user,"
    " or was revoked"
)
"""What is said where a stored seal is not valid: a folder may have been moved."""
_SIZE = 32
_TRIES, _PAUSE_S = 20, 0.01


class Sealer:
    """A sealer of values for one workspace, or for every place if `root` is None; it recognizes its own seals."""

    def __init__(self, root: Path | None, folder: Path | None = None) -> None:
        self._root = str(root.resolve()) if root else ""
        self._folder = folder
        self._key = b""

    def seal(self, *values: str) -> str:
        """Return the seal of these values here; the first call creates the key.

        Raises:
            WorkspaceError: the key cannot be created, or others could read it.
        """
        self.require()
        return _digest(self._key, self._root, values)

    def require(self) -> None:
        """Ensure that there is a usable key.

        Raises:
            WorkspaceError: it cannot be created, or others could read it.
        """
        if self._read():
            return
        try:
            file = self._file()
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(file, machine.MAKING, 0o600)
            with os.fdopen(descriptor, "wb") as key_file:
                key_file.write(os.urandom(_SIZE))
                key_file.flush()
                os.fsync(key_file.fileno())
        except FileExistsError:
            pass  # another process created it at this moment, or it is unusable
        except (OSError, RuntimeError) as error:
            fix = "Set XDG_DATA_HOME to a folder that you may write to."
            raise WorkspaceError(
                f"The key of your grants and state cannot be made: {error}.", fix=fix
            ) from error
        for _ in range(_TRIES):
            if self._read():
                return
            time.sleep(
                _PAUSE_S
            )  # another process may have created its file and be about to write it
        if not self._read():
            message = f"The key of your grants and state, {self._file()}, is not yours alone, or not whole."
            fix = "Remove it; every grant is then requested again, and `knapper state adopt` takes over earlier state."
            raise WorkspaceError(message, fix=fix)

    def holds(self, seal: str, *values: str) -> bool:
        """Check whether this user sealed these values here."""
        key = self._read()
        return bool(key) and hmac.compare_digest(
            seal.encode("utf-8", "replace"), _digest(key, self._root, values).encode()
        )

    def _file(self) -> Path:
        return (self._folder or data_folder()) / "grants.key"

    def _read(self) -> bytes:
        if not self._key:
            try:
                descriptor = os.open(self._file(), machine.LOOKING)
            except (OSError, RuntimeError):  # no key, or no home folder
                return b""
            try:
                key = os.read(descriptor, _SIZE + 1) if is_private(descriptor) else b""
            finally:
                os.close(descriptor)
            self._key = key if len(key) == _SIZE else b""
        return self._key


def is_private(descriptor: int) -> bool:
    """Check whether an open file is a regular file of this user that nobody else can read or change."""
    status = os.fstat(descriptor)
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == machine.user_id()
        and not machine.grants_others(status, 0o077)
    )


def _digest(key: bytes, root: str, values: tuple[str, ...]) -> str:
    text = json.dumps([_SEALED_AS, root, *values])
    return hmac.digest(key, text.encode(), "sha256").hex()

"""Ownership of a state file: it holds an id that this user's key seals in a file next to it.

A workspace may be a copy of somebody else's folder, with all that is hidden in it. What has no seal of this user is not
even opened. A folder of one's own goes on wherever it is moved to, copied or restored: the seal names no place.
"""

import mmap
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO, Literal

import apsw

from agent_core.base.seal import Sealer

SUFFIX = ".seal"
LOGS = ("-wal", "-shm")
_PURPOSE = "state"
_ID_BYTES = 24
_LONGEST = 1_000
_MAGIC = b"SQLite format 3\0"


def sealed_id(path: Path, sealer: Sealer) -> str:
    """Seal a new id for the file that will be at this path; the id is to be written into it.

    Raises:
        WorkspaceError: the key of the seals cannot be used.
        OSError: the seal cannot be written.
    """
    id = f"toolwright:{secrets.token_hex(_ID_BYTES)}"
    temporary = Path(f"{path}{SUFFIX}.{secrets.token_hex(6)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{id} {sealer.seal(_PURPOSE, id)}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(f"{path}{SUFFIX}")
    finally:
        temporary.unlink(missing_ok=True)
    return id


def mark(db: apsw.Connection, id: str) -> None:
    """Write the id into a file and flush it out of the log, so that it is readable without opening the database."""
    with db:
        db.execute("delete from origin")
        db.execute("insert into origin values (?)", (id,))
    list(db.execute("pragma wal_checkpoint(truncate)"))


def origin(path: Path, sealer: Sealer) -> Literal["own", "foreign", "damaged"]:
    """Return who owns a file: it is this user's own if the seal names its id and its logs are its own.

    SQLite gives a log the owner and the mode of its file; what a checkout or an archive puts there has others.
    """
    id, _, seal = _begins(Path(f"{path}{SUFFIX}")).decode("ascii", "replace").strip().partition(" ")
    if not id or not sealer.holds(seal, _PURPOSE, id):
        return "foreign" if _begins(path).startswith(_MAGIC) else "damaged"
    own = _marks(path)
    logs = [_marks(Path(f"{path}{suffix}")) for suffix in LOGS]
    if own is None or not stat.S_ISREG(own[0]) or not all(marks in (own, None) for marks in logs):
        return "foreign"
    return "own" if _holds(path, id.encode()) else "damaged"


def _marks(path: Path) -> tuple[int, int] | None:
    """Return the kind and mode of a file, and its owner."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process may be done with a log
        return None
    return status.st_mode, status.st_uid


def _begins(path: Path) -> bytes:
    try:
        with _opened(path) as file:
            return file.read(_LONGEST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _holds(path: Path, id: bytes) -> bool:
    with _opened(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(id) >= 0

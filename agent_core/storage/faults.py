"""Errors of the database as sentences: what happened, where, and how to fix it.

Only what the surroundings cause is translated. A wrong statement is a bug and stays what it is.
"""

import shutil
from pathlib import Path

import apsw

from agent_core.base.errors import StorageError

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
SURROUNDINGS = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.AuthError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ProtocolError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.ConstraintError,
    apsw.TooBigError,
)
UNSAVED = "The change in progress is not saved; everything before it is."


def explain(error: apsw.Error, path: Path) -> StorageError:
    """Return the error for the caller of the store."""
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            message = f"The state file `{path}` is kept locked by another process."
            fix = "End the process that holds it, and try again."
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            message = f"The state file `{path}` cannot be opened for writing ({error})."
            fix = "Make its folder writable for you, or work in another folder."
        case apsw.FullError():
            message = f"The disk of the state file `{path}` is full. {UNSAVED}"
            fix = "Free some space and try again."
        case apsw.InterruptError():
            message = f"The state file `{path}` took longer than a minute to answer, or was interrupted. {UNSAVED}"
            fix = "Type: toolwright doctor"
        case apsw.ConstraintError() | apsw.TooBigError():
            message = f"What is in the state file `{path}` does not let this be saved ({error}). {UNSAVED}"
            fix = "Move the file away if you did not make it: a new one will be created."
        case _:
            message = f"The state file `{path}` cannot be read or written ({error}; {_free(path)}). {UNSAVED}"
            fix = "Check the disk, its space and your limits on file size, and try again."
    return StorageError(message, fix=fix)


def explain_os(error: OSError, path: Path) -> StorageError:
    """Return the error for files around the state file that cannot be created or moved."""
    message = f"The state file `{path}` cannot be opened for writing ({error.strerror})."
    return StorageError(message, fix="Make its folder writable for you, or work in another folder.")


def _free(path: Path) -> str:
    try:
        return f"{shutil.disk_usage(path.parent).free // 2**20} MiB free"
    except OSError:
        return "its folder cannot be read"

"""The folders that are workspaces: those with `knapper.toml`, found upward from the current one, as git does.

A workspace decides which functions an assistant is offered, so nobody else may place one in a user's way, such as in
/tmp: above the current folder, both the folder and the file that makes it a workspace must be the user's.
"""

import os
import stat
from pathlib import Path
from typing import Final

from . import machine
from .user_folders import home

SETTINGS: Final = "knapper.toml"
STATE: Final = ".knapper"
FUNCTIONS: Final = "functions"


def is_workspace(folder: Path) -> bool:
    """Check whether a folder has a settings file, or functions next to this program's state.

    It does not count if its owner is neither this user, nor root, nor the owner of the folder.
    """
    maker = _maker(folder)
    return maker is not None and maker in (machine.user_id(), 0, _owner(folder))


def is_from_stranger(folder: Path) -> bool:
    """Check whether a folder would be a workspace if its marker file were not someone else's."""
    return _maker(folder) is not None and not is_workspace(folder)


def workspace_around(folder: Path) -> Path | None:
    """Return the nearest workspace: this folder, or one above it that is the user's.

    The search ends at the home folder, at the root, and at a folder of someone else.
    """
    if is_workspace(folder):
        return folder
    user_home = home()
    top = user_home and Path(os.path.realpath(user_home))
    here = Path(os.path.realpath(folder))
    while here not in (top, here.parent):
        here = here.parent
        if _owner(here) != machine.user_id():
            return None
        if _maker(here) == machine.user_id():
            return here
    return None


def current_workspace() -> Path | None:
    """Return the workspace around the current folder: `Path()` if it is that folder, else its whole path."""
    try:
        folder = Path.cwd()
    except OSError:  # it was removed
        return None
    found = workspace_around(folder)
    return Path() if found == folder else found


def _maker(folder: Path) -> int | None:
    """Return the owner of the file or folder that makes a folder a workspace; None if there is none."""
    settings = _status(folder / SETTINGS)
    if settings is not None:  # a link or a folder is rejected when the file is read
        return settings.st_uid
    state = _status(folder / STATE) if (folder / FUNCTIONS).is_dir() else None
    return state.st_uid if state is not None and stat.S_ISDIR(state.st_mode) else None


def _owner(folder: Path) -> int | None:
    status = _status(folder)
    return None if status is None else status.st_uid


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None

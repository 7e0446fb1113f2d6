"""The folders of this user for files outside workspaces: data, configuration and caches, below the home folder."""

import os
from pathlib import Path

from . import machine
from .errors import WorkspaceError


class NoHome(WorkspaceError):
    """This user has no home folder, and no variable names another place for the user's files."""

    code = "no-home"

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what, fix=fix)


def data_folder() -> Path:
    """Return the folder where Knapper keeps this user's data.

    Raises:
        NoHome: there is no such place.
    """
    return _base("XDG_DATA_HOME", ".local/share", "data") / "knapper"


def config_folder() -> Path:
    """Return the folder where Knapper keeps this user's configuration and secrets.

    Raises:
        NoHome: there is no such place.
    """
    return _base("XDG_CONFIG_HOME", ".config", "settings and secrets") / "knapper"


def cache_folder() -> Path:
    """Return the folder where Knapper keeps files that it can recreate.

    Raises:
        NoHome: there is no such place.
    """
    return _base("XDG_CACHE_HOME", ".cache", "cached files") / "knapper"


def home() -> Path | None:
    """Return this user's home folder if it exists and its path is absolute, else None."""
    try:
        folder = Path.home()
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def expand_home(path: str | Path) -> Path:
    """Return a path with its `~` or `~name` replaced by that home folder.

    Raises:
        NoHome: there is no such home folder.
    """
    if not str(path).startswith("~"):
        return Path(path)
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        named = Path(path).parts[0]
        raise NoHome(
            f"{str(path)!r} is nowhere: {named!r} is not a home folder.", "Write the whole path."
        ) from error


def _base(variable: str, usual: str, kind: str) -> Path:
    given = os.environ.get(variable, "")
    if Path(given).is_absolute():
        return Path(given)
    if (folder := home()) is None:
        what = f"There is no place for this user's {kind}: user {machine.user_id()} has no home folder."
        raise NoHome(what, f"Set HOME, or {variable}, to a folder of this user, by its whole path.")
    return folder / usual

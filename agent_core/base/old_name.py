"""Renames files of this program's former name at first encounter, and prints a line about it.

All knowledge of the old name is in this module. Another program has that name, too: only what this one wrote is moved.
"""

import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from sandbox.wire.strict_json import Malformed, read_toml

from . import machine
from .errors import WorkspaceError
from .own_environment import environment
from .plain_files import read_plain
from .user_folders import NoHome, cache_folder, config_folder, data_folder

NAME: Final = "toolwright"
STATE: Final = f".{NAME}"
SETTINGS: Final = f"{NAME}.toml"
SHORT: Final = NAME[:6]
"""The name of the state folder as FAT and NTFS abbreviate it."""
SEALED_AS: Final = f"{NAME} yes 1"
"""The text sealed with every approval. It must not change: otherwise no earlier approval would count."""
AGENT_FILE: Final = f"{NAME}-agent"
"""The format name of exported agents."""

_NEW: Final = "knapper"
_STATE_FILES: Final = (".gitignore", "state.db")
_HOME_FILES: Final = ("grants.key", "workspaces", "models", "secrets.toml", "prefixes", "npm", "peers")
_TABLES: Final = (
    *("agent", "instructions", "model", "models", "turn", "sandbox", "gate", "standing", "grants", "helpers", "memory"),
    *("heartbeat", "runner", "storage", "mcp", "repl"),
)
_VARIABLES: Final = tuple(f"{NAME}_{word}".upper() for word in (*_TABLES, "token", "secret_"))
_MOST_BYTES: Final = 256 << 10
_MOST_LOCKS: Final = 10_000
_MOST_NAMED: Final = 20
_TRIES, _PAUSE_S = 200, 0.05


def is_workspace(folder: Path) -> bool:
    """Check whether this user has a workspace there that was not moved yet."""
    names = [old.name for old, _ in _in_workspace(folder) if old.lstat().st_uid == machine.user_id()]
    return SETTINGS in names or (STATE in names and (folder / "functions").is_dir())


def move_workspace(root: Path) -> None:
    """Move the state and the settings of a workspace to their new names, unless those exist already.

    Raises:
        WorkspaceError: a process of the old program uses it, or it cannot be moved; anything not moved is unchanged.
    """
    if not _in_workspace(root):
        return
    with _alone(root), ExitStack() as unused:
        pairs = _in_workspace(root)
        for old, new in pairs:
            _check(old, new)
            unused.enter_context(_hold_unused(old))
        for old, new in pairs:
            _rename(old, new)
    if pairs:
        olds, news = (
            " and ".join(f"{path.name}/" if path.name[0] == "." else path.name for path in names)
            for names in zip(*pairs, strict=True)
        )
        where = "" if root.resolve() == Path.cwd() else f" in {root.resolve()}"
        say(f"Moved {olds} to {news}{where}.")


def move_home() -> None:
    """Move this user's folders for data, settings and caches to their new names, as `move_workspace` does.

    Raises:
        WorkspaceError: one cannot be moved.
    """
    for folder in (data_folder, config_folder, cache_folder):
        try:
            new = folder()
        except NoHome:
            continue
        old = new.with_name(NAME)
        if not _is_left(old, new, _HOME_FILES):
            continue
        with _alone(new.parent):
            if not _is_left(old, new, _HOME_FILES):
                continue
            _check(old, new)
            _rename(old, new)
        say(f"Moved {old}/ to {new}/.")


@cache
def tell_of_variables() -> None:
    """Print, once per process, the variables that are still set under the old name."""
    old = sorted(name for name in environment() if name.startswith(_VARIABLES))[:_MOST_NAMED]
    if old:
        new = [name.replace(NAME.upper(), _NEW.upper(), 1) for name in old]
        say(f"Not read any more: {', '.join(old)}. The new name: {', '.join(new)}.")


def formerly(text: str) -> str:
    """Return a text of the program as it read under the old name."""
    return text.replace(_NEW, NAME).replace(_NEW.capitalize(), NAME.capitalize())


def _in_workspace(root: Path) -> list[tuple[Path, Path]]:
    """Return the pairs of old and new path that must be moved in a workspace."""
    state, settings = root / STATE, root / SETTINGS
    pairs = [(state, root / f".{_NEW}")] if _is_left(state, root / f".{_NEW}", _STATE_FILES) else []
    if _is_left(settings, root / f"{_NEW}.toml"):
        try:  # it may be this program's if all its tables are known
            is_ours = read_toml(read_plain(settings, _MOST_BYTES)).keys() <= set(_TABLES)
        except (OSError, Malformed):
            is_ours = True
        if is_ours:
            pairs.append((settings, root / f"{_NEW}.toml"))
    return pairs


def _is_left(old: Path, new: Path, files: tuple[str, ...] = ()) -> bool:
    """Check whether the old name exists and the new one does not; a folder must contain one of `files`."""
    is_there = any(os.path.lexists(old / name) for name in files) if files else os.path.lexists(old)
    return is_there and not os.path.lexists(new)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, so that one process at a time moves its contents."""
    try:
        descriptor = machine.open_folder(folder, follows=True)
    except OSError as error:
        raise WorkspaceError(f"{folder} cannot be read: {error.strerror}.") from error
    try:
        for _ in range(_TRIES):
            if machine.try_lock(descriptor):
                break
            time.sleep(_PAUSE_S)
        else:
            raise WorkspaceError(f"Another process has locked {folder}.", fix="Try again when it has ended.")
        yield
    finally:
        os.close(descriptor)


def _check(path: Path, new: Path) -> None:
    status = path.lstat()
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        message = f"`{path}` is a link, or neither file nor folder, so it is not moved to {new.name}."
        fix = f"If it is yours, rename it yourself: mv {shlex.quote(str(path))} {shlex.quote(str(new))}"
        raise WorkspaceError(message, fix=fix)
    if status.st_uid != (user := machine.user_id()):
        message = f"`{path}` belongs to user {status.st_uid}, and you are {user}, so it is not moved to {new.name}."
        fix = f"Work as its owner, or make it yours: chown -R {user} {shlex.quote(str(path))}"
        raise WorkspaceError(message, fix=fix)


@contextmanager
def _hold_unused(state: Path) -> Iterator[None]:
    """Keep processes of the old program out of a state folder.

    Raises:
        WorkspaceError: one uses it: it has locked an agent, or part of the database's shared-memory file.
    """
    locks = [*islice(state.glob("agents/*.lock"), _MOST_LOCKS), *state.glob("state.db-shm")]
    with ExitStack() as held:
        for path in locks:
            try:
                descriptor = os.open(path, os.O_RDWR | machine.NOFOLLOW | machine.NONBLOCK | machine.CLOEXEC)
            except OSError:
                continue  # a link, or gone: no process of the program has it open
            held.callback(os.close, descriptor)
            if not (machine.try_record_lock if path.suffix == ".db-shm" else machine.try_lock)(descriptor):
                number = os.read(descriptor, 32).decode(errors="replace").strip() if path.suffix == ".lock" else ""
                who = f"Process {number}" if number.isdecimal() else "A process"
                message = f"{who} still uses {state} under the program's old name, so it is not moved to .{_NEW}."
                raise WorkspaceError(message, fix="End it, then try again.")
        yield


def _rename(old: Path, new: Path) -> None:
    try:
        old.rename(new)
    except OSError as error:
        fix = f"Make that possible, or do it yourself: mv {shlex.quote(str(old))} {shlex.quote(str(new))}"
        raise WorkspaceError(f"`{old}` cannot be renamed to {new.name}: {error.strerror}.", fix=fix) from error


def say(sentence: str) -> None:
    """Write a sentence to standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")

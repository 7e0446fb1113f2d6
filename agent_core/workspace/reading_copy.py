"""Workspaces that can only be read, as on a read-only disk: a temporary copy for commands that change nothing."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_core.base import machine
from agent_core.base.clock import Clock
from agent_core.base.plain_files import LARGEST_FILE, read_plain
from agent_core.base.settings import FILE_NAME
from agent_core.storage import STATE, STATE_FILE, set_aside

_FUNCTIONS = "functions"


def is_read_only(root: Path) -> bool:
    """Check whether a workspace's state cannot be written, because of its disk, permissions or owner."""
    state = root / STATE
    if state.is_symlink() or not state.exists():
        return not os.access(root, os.W_OK)
    return not _is_own(state) or not all(os.access(path, os.W_OK) for path in (state, *state.glob(STATE_FILE)))


@contextmanager
def reading_copy(root: Path) -> Iterator[Path]:
    """Yield a temporary copy of a workspace's functions, settings and, if the user owns it, state; then delete it."""
    with TemporaryDirectory(prefix="knapper-") as folder:
        copy = Path(folder)
        for path in _files(root):
            place = copy / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # a link or a pipe, which the workspace does not read either
                place.write_bytes(read_plain(path, LARGEST_FILE))
        if (copy / STATE).is_dir():
            set_aside(copy / STATE / STATE_FILE, Clock())  # in the copy
        yield copy


def _files(root: Path) -> Iterator[Path]:
    yield root / FILE_NAME
    if not (root / _FUNCTIONS).is_symlink():
        for folder, _, names in os.walk(root / _FUNCTIONS):
            yield from (Path(folder, name) for name in names)
    if _is_own(root / STATE):
        yield from (path for path in (root / STATE).glob(f"{STATE_FILE}*") if not path.name.endswith("-shm"))


def _is_own(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == machine.user_id()

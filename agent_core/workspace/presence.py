"""Which processes are at a workspace: each that answers messages shares a lock as long as it is there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agent_core.base import machine
from agent_core.storage import own_folder
from agent_core.storage.folder import open_lock

_LOCK: Final = "present.lock"
_held: Final[
    dict[Path, list[int]]
] = {}  # by state folder: a process may have a workspace open twice


@contextmanager
def present(state: Path) -> Iterator[None]:
    """Count as a process that answers messages while the block runs."""
    descriptor = _opened(state)
    if descriptor < 0:
        yield
        return
    machine.try_lock(descriptor, shared=True)
    held = _held.setdefault(state, [])
    held.append(descriptor)
    try:
        yield
    finally:
        held.remove(descriptor)
        os.close(descriptor)


def is_anyone_else_here(state: Path) -> bool:
    """Return whether another process of this machine answers messages at a workspace."""
    held = _held.get(state, [])
    if len(held) > 1:
        return True
    own = held[0] if held else -1
    descriptor = own if own >= 0 else _opened(state)
    if descriptor < 0:
        return False
    try:
        return not machine.try_lock(descriptor)
    finally:
        if own >= 0:
            machine.try_lock(own, shared=True)  # what was tried took its place
        else:
            os.close(descriptor)


def _opened(state: Path) -> int:
    """Return the descriptor of the lock's file; -1 if there can be none."""
    with suppress(OSError):
        return open_lock(own_folder(state, "agents") / _LOCK)
    return -1

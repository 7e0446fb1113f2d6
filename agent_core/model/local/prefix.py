"""The engine state for the fixed part of a prompt, kept on disk between runs.

A file's name holds what it is the state of, and the hash of its own bytes. The engine trusts such a file
(a shortened one ends it), so a file is read only after its hash was compared. Few are kept: each is about 30 MB.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.base.user_folders import NoHome, cache_folder

from .weights import Weights, sha256_of

KEPT: Final = 3
"""Files; the ones that were not used for longest go first."""

_SUFFIX: Final = ".state"
_FORGOTTEN_S: Final = 3600.0


def folder() -> Path:
    """Return the folder for this user's states; it need not exist."""
    return cache_folder() / "prefixes"


def prepared_folder() -> Path | None:
    """Return the folder, created so that nobody else can read it; None if that is impossible."""
    try:
        where = folder()
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        if where.stat().st_uid != os.getuid():
            return None
        where.chmod(0o700)
    except (OSError, NoHome):
        return None
    return where


def key(weights: Weights, engine: str, entries: Sequence[Mapping[str, str]]) -> str:
    """Return the key of a state: it depends on the weights, the engine and the text, but not on the window size."""
    text = json.dumps([weights.sha256, engine, entries], sort_keys=True)
    return f"{weights.name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def find(where: Path, name: str) -> str | None:
    """Return the intact file for this key; delete the others of the key."""
    for file in where.glob(f"{name}.*{_SUFFIX}"):
        with suppress(OSError):
            if file.is_file() and not file.is_symlink() and sha256_of(file) == file.name.split(".")[-2]:
                file.touch()
                return file.name
            file.unlink()
    return None


def fresh(name: str) -> str:
    """Return a name to save under before the hash is known."""
    return f"{name}.{os.getpid()}-{time.time_ns()}.new"


def keep(where: Path, name: str, saved: str) -> None:
    """Move a saved state into place, and delete the oldest beyond the number that is kept."""
    with suppress(OSError):
        file, before = where / saved, [*where.glob(f"{name}.*{_SUFFIX}")]
        file.chmod(0o600)
        for state_file in before:
            state_file.unlink()
        file.replace(where / f"{name}.{sha256_of(file)}{_SUFFIX}")
    with suppress(OSError):
        for old in sorted(where.glob(f"*{_SUFFIX}"), key=_used, reverse=True)[KEPT:]:
            old.unlink()
        for leftover in where.glob("*.new"):
            if time.time() - _used(leftover) > _FORGOTTEN_S:
                leftover.unlink()


def remove(weights: Weights) -> dict[Path, int]:
    """Delete what is kept for these weights; return the deleted files with their sizes in bytes."""
    removed: dict[Path, int] = {}
    for file in folder().glob(f"{weights.name}-*"):
        with suppress(OSError):
            size = file.stat().st_size
            file.unlink()
            removed[file] = size
    return removed


def _used(file: Path) -> float:
    return file.stat().st_mtime

"""Cleaning of a scratch folder that untrusted code has filled.

Works by pulling every nested folder up to the top, so that no depth and no length of a path can
defeat it; nothing is followed, and nothing but names in this folder is trusted.
"""

import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path


def wipe(folder: Path) -> None:
    """Remove everything below the folder. Raise OSError if something stays."""
    fresh = (name for number in count() if not (name := folder / f".pulled-{number}").exists())
    while entries := list(folder.iterdir()):
        for entry in entries:
            if stat.S_ISDIR(entry.lstat().st_mode):
                _pull_up(entry, fresh)
            else:
                entry.unlink()


def _pull_up(nested: Path, fresh: Iterator[Path]) -> None:
    _open_up(nested)
    for child in list(nested.iterdir()):
        if stat.S_ISDIR(child.lstat().st_mode):
            _open_up(child)  # moving a folder writes its `..`
            child.rename(next(fresh))
        else:
            child.unlink()
    nested.rmdir()


def _open_up(folder: Path) -> None:
    """Give the owner all rights. A zygote that imported packages may change no mode, and no folder of it needs that."""
    if folder.lstat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(0o700)

"""Repositories below a folder: git runs as its owner what the hooks and settings in them say.

The look is bounded, so that it can be had before each call; what it did not reach is said where a human is asked.
"""

import os
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

MOST_ENTRIES: Final = 5_000
DEEPEST: Final = 8
_COST_OF_A_FOLDER: Final = 5  # to look into one takes as long as to read so many names
_BARE: Final = frozenset({"HEAD", "objects", "refs"})  # what a repository without files of its own is known by


@dataclass(frozen=True, slots=True)
class Found:
    """The first repository, as a path below the folder, and whether all of the folder was looked at."""

    path: str = ""
    is_whole: bool = True


def repository_in(folder: Path) -> Found:
    """Look for a repository in a folder and below it, those that lie near first; no link is followed."""
    level, left = [str(folder)], MOST_ENTRIES
    for _ in range(DEEPEST):
        deeper: list[str] = []
        for place in level:
            names, folders = _entries(place, left)
            own = [name for name in names if unicodedata.normalize("NFKC", name).casefold() == ".git"]
            if own or names >= _BARE:
                return Found(str(Path(place, *own[:1]).relative_to(folder)))
            left -= len(names) + _COST_OF_A_FOLDER
            if left <= 0:
                return Found(is_whole=False)
            deeper += folders
        level = deeper
    return Found(is_whole=not level)


def _entries(folder: str, most: int) -> tuple[set[str], list[str]]:
    """The names in a folder, no more than so many, and the folders in it; of what cannot be read, none."""
    names, folders = set[str](), list[str]()
    with suppress(OSError), os.scandir(folder) as found:
        for entry in islice(found, most):
            names.add(entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return names, folders

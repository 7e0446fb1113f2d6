"""Repositories and workspaces in a folder: programs that find them run commands from their settings, as their owner.

Git and similar programs do so in a repository, Knapper in a workspace; a workspace's `.knapper` must not be readable by
others. The search is limited, so that it can run before and after each call; the question to the human says what it did
not cover. If a call creates such an entry, it is renamed, so that it has no effect.
"""

import os
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from agent_core.base import folders
from agent_core.base.records import dataclass
from agent_core.base.workspace_folder import FUNCTIONS, SETTINGS, STATE
from agent_core.registry import folder_access

MOST_ENTRIES: Final = 5_000
DEEPEST: Final = 8
_COST_OF_A_FOLDER: Final = 5  # looking into a folder takes as long as reading this many names
# Git, Mercurial, Sapling, Jujutsu, Breezy, Pijul, Darcs and Fossil: each runs commands from its own folder.
_OWN: Final = frozenset(
    {STATE, ".git", ".hg", ".sl", ".jj", ".bzr", ".pijul", "_darcs", ".fslckout", "_fossil_"}
)
# With a HEAD next to one of these, git treats a folder as a repository, perhaps completed from elsewhere.
_PARTS: Final = frozenset(
    {
        "commondir",
        "config",
        "config.worktree",
        "objects",
        "refs",
        "packed-refs",
        "gitdir",
        "reftable",
    }
)
_SHORT: Final = re.compile(r"(git|knappe)~\d+")  # as FAT and NTFS abbreviate them
_OWNING: Final = (STATE, SETTINGS, FUNCTIONS, "HEAD", *_PARTS)
_LONG: Final = {"git": ".git", "knappe": STATE}
_MOST_MADE: Final = 1_000


@dataclass(frozen=True, slots=True)
class RepositorySearch:
    """The first repository or workspace, as a path below the folder, and whether the whole folder was checked.

    `unread` is the first folder in it that this user cannot read.
    """

    path: str = ""
    is_whole: bool = True
    unread: str = ""


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """The maximum number of entries to examine in a folder, and the depth."""

    entries: int = MOST_ENTRIES
    depth: int = DEEPEST


NEAR: Final = WalkLimits()
FAR: Final = WalkLimits(40 * MOST_ENTRIES, 8 * DEEPEST)  # takes up to a second


def repository_in(folder: Path, limits: WalkLimits = NEAR) -> RepositorySearch:
    """Search for a repository or a workspace in a folder and below it, nearest first, without following links."""
    return _search(
        folder, limits, lambda place, names: _own(names) or ("." if _bare(place, names) else "")
    )


def state_in(folder: Path) -> RepositorySearch:
    """Search for the state of a workspace in a folder and below it, in the same way."""
    return _search(
        folder,
        NEAR,
        lambda place, names: next((name for name in names if plain(name) == STATE), ""),
    )


def owner_around(path: Path, root: Path) -> Path | None:
    """Return the nearest folder around a path that is, or would become with it, a workspace or a bare repository.

    The workspace at the root does not count, and neither do folders around it.
    """
    for folder, child in zip(path.parents, (path, *path.parents), strict=False):
        if folder == root:
            return None
        names = _owning_names(folder) | {child.name}
        if STATE in map(plain, names) or _bare(str(folder), names):
            return folder
    return None


def _owning_names(folder: Path) -> set[str]:
    """Return the names in a folder, however many it has, that can make it a workspace or a bare repository."""
    return {name for name in _OWNING if os.path.lexists(folder / name)}


def _search(
    folder: Path, limits: WalkLimits, target: Callable[[str, set[str]], str]
) -> RepositorySearch:
    """Search, level by level, for the first name that `target` selects from those of one folder."""
    level, left, unread = [str(folder)], limits.entries, ""
    for _ in range(limits.depth):
        deeper: list[str] = []
        for place in level:
            names, folders, is_read = _entries(place, left)
            if name := target(place, names):
                return RepositorySearch(str(Path(place, name).relative_to(folder)))
            unread = unread or ("" if is_read else place)
            left -= len(names) + _COST_OF_A_FOLDER
            if left <= 0:
                return RepositorySearch(is_whole=False)
            deeper += folders
        level = deeper
    return RepositorySearch(is_whole=not unread and not level, unread="" if level else unread)


def is_own(path: str | Path) -> bool:
    """Return whether a path is, or is in, the private folder of a repository or a workspace."""
    return not _OWN.isdisjoint(map(plain, Path(path).parts))


def is_state(path: Path) -> bool:
    """Return whether a path is, or is in, the state of a workspace."""
    return STATE in map(plain, path.parts)


def is_part(path: Path) -> bool:
    """Return whether a file or folder makes, or would make, its parent folder a repository or a workspace."""
    if plain(path.name) not in _PARTS | {"head", SETTINGS, FUNCTIONS}:
        return False
    return bool(_bare(str(path.parent), _owning_names(path.parent) | {path.name}))


def looked_through(
    root: Path, read: Iterable[str], write: Iterable[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the real paths of the items that can be checked completely, and of those that cannot."""
    places = {
        os.path.realpath(root / item): state_in(root / item).is_whole
        for item in read
        if item != "?"
    }
    places |= {
        os.path.realpath(root / item): repository_in(root / item).is_whole
        for item in write
        if item != "?"
    }
    return (
        frozenset(place for place, is_whole in places.items() if is_whole),
        frozenset(place for place, is_whole in places.items() if not is_whole),
    )


def disarm(folder: Path, limits: WalkLimits = NEAR) -> tuple[str, ...]:
    """Rename the entries that make this or a lower folder a repository or a workspace; return their original names."""
    renamed: list[str] = []
    while len(renamed) < _MOST_MADE and (repository := repository_in(folder, limits).path):
        place = Path(repository)
        if not is_own(place.name):
            names, _, _ = _entries(str(folder / place), limits.entries)
            place /= _bare(str(folder / place), names)
        with folder_access.folder(folder, place.parts[:-1]) as folder_fd:
            rename(place.name, folder_fd)
        renamed.append(str(place))
    return tuple(renamed)


def rename(name: str, folder_fd: int) -> None:
    """Rename an entry of a folder so that it no longer makes a repository."""
    folders.replace(name, f"{name}.disarmed-{secrets.token_hex(4)}", folder_fd)


def plain(name: str) -> str:
    """Return a name as seen by file systems that ignore case, Unicode form and hidden characters."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        name = "".join(character for character in name if unicodedata.category(character) != "Cf")
    short = name.casefold().rstrip(" .")
    return _LONG[abbreviated[1]] if (abbreviated := _SHORT.fullmatch(short)) else short


def _own(names: set[str]) -> str:
    """Return the name of a repository's or a workspace's private folder among these, or "" if there is none."""
    return min(names & _OWN, default="") or next(
        (name for name in names if plain(name) in _OWN), ""
    )


def _bare(place: str, names: set[str]) -> str:
    """Return the name in a folder that makes the folder itself a bare repository, or "" if there is none."""
    by_plain_name = {plain(name): name for name in names} | {
        name.casefold(): name for name in names & {"HEAD", "commondir"}
    }
    if "commondir" in by_plain_name and _is_there(place, "commondir", names):
        return by_plain_name["commondir"]
    if SETTINGS in by_plain_name and _is_there(place, SETTINGS, names):
        return by_plain_name[SETTINGS]
    return (
        by_plain_name["head"]
        if "head" in by_plain_name
        and _PARTS & by_plain_name.keys()
        and _is_there(place, "HEAD", names)
        else ""
    )


def _is_there(place: str, name: str, names: set[str]) -> bool:
    """Check whether the file system finds a file under this name, in any case."""
    return name in names or os.path.lexists(f"{place}/{name}")


def _entries(folder: str, most: int) -> tuple[set[str], list[str], bool]:
    """Return at most `most` names in a folder, the folders in it, and whether it can be read."""
    names, folders = set[str](), list[str]()
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, most):
                names.add(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    except (FileNotFoundError, NotADirectoryError):
        return names, folders, True
    except OSError:
        return names, folders, False
    return names, folders, True

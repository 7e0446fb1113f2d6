"""Scans a folder for files that can contain functions, and finds those that are new, changed or gone."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUFFIX: Final = ".py"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The file properties that change when the content does."""

    mtime_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a scan: the current stamps, and how they differ from the known ones. Paths are absolute.

    `closed` are folders that could not be read, with the reason: the files in them count as unchanged.
    """

    stamps: Mapping[Path, Stamp]
    changed: frozenset[Path]
    removed: frozenset[Path]
    closed: Mapping[Path, str]


def is_source(path: Path, root: Path, suffix: str = SUFFIX) -> bool:
    """Check whether a path below the folder may contain functions: it has the suffix, and no hidden or cache folder."""
    if not path.is_relative_to(root):
        return False
    parts = path.relative_to(root).parts
    return path.suffix == suffix and not any(part.startswith(".") or part == "__pycache__" for part in parts)


def scan(root: Path, stamps_before: Mapping[Path, Stamp], suffix: str = SUFFIX) -> Scanned:
    """Return the source files below `root`, and those that are new, changed or gone since `stamps_before`."""
    stamps: dict[Path, Stamp] = {}
    closed: dict[Path, str] = {}
    for folder, entries in folders_of(root, closed):
        try:
            stamps |= _stamps(folder, entries, suffix)
        except OSError as error:
            closed[folder] = error.strerror or str(error)
    stamps |= {path: stamp for path, stamp in stamps_before.items() if is_below(path, closed)}
    changed = frozenset(path for path, stamp in stamps.items() if stamps_before.get(path) != stamp)
    return Scanned(stamps, changed, frozenset(stamps_before.keys() - stamps.keys()), closed)


def is_below(path: Path, folders: Collection[Path]) -> bool:
    """Check whether a path is below one of the folders."""
    return bool(folders) and any(parent in folders for parent in path.parents)


def folders_of(root: Path, closed: dict[Path, str]) -> "Iterator[tuple[Path, list[os.DirEntry[str]]]]":
    """Yield every folder from `root` down with its entries, without recursion, as nesting may exceed the stack.

    Folders that cannot be listed are added to `closed`, with the reason.
    """
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = [entry for entry in found if not entry.name.startswith(".") and entry.name != "__pycache__"]
        except OSError as error:
            is_file = isinstance(error, NotADirectoryError) and folder != root
            if not is_file and not isinstance(error, FileNotFoundError):  # otherwise it was removed meanwhile
                closed[folder] = error.strerror or str(error)
            continue
        folders += [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield folder, entries


def _stamps(folder: Path, entries: "list[os.DirEntry[str]]", suffix: str) -> Iterator[tuple[Path, Stamp]]:
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            continue
        if entry.name.endswith(suffix) or (entry.is_symlink() and os.path.isdir(folder / entry.name)):  # noqa: PTH112 - false where it cannot be seen
            # A link to a folder is listed, so that reading it reports why links are not followed.
            stamp = _stamp(entry)
            if stamp is not None:
                yield folder / entry.name, stamp


def _stamp(entry: "os.DirEntry[str]") -> Stamp | None:
    """Return the stamp of a file or a broken link; None if it is gone.

    Raises:
        OSError: the folder does not permit access.
    """
    try:
        status = entry.stat()
    except OSError:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)

"""Folder changes: at once from the kernel, and by a scan of times and sizes for what was missed."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file does."""

    mtime_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan found: the stamps of now, and how they differ from the known ones. Paths are absolute."""

    stamps: Mapping[Path, Stamp]
    changed: frozenset[Path]
    removed: frozenset[Path]


def is_source(path: Path, root: Path) -> bool:
    """Whether a path below the folder is one that may hold functions: no hidden part, no cache."""
    parts = path.relative_to(root).parts
    return path.suffix == ".py" and not any(part.startswith(".") or part == "__pycache__" for part in parts)


def scan(root: Path, known: Mapping[Path, Stamp]) -> Scanned:
    """The source files below `root` now, and which of them are new, changed or gone since `known`."""
    stamps = dict(_stamps(root))
    changed = frozenset(path for path, stamp in stamps.items() if known.get(path) != stamp)
    return Scanned(stamps, changed, frozenset(known.keys() - stamps.keys()))


def _stamps(folder: Path) -> Iterator[tuple[Path, Stamp]]:
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return  # a folder that went between two looks, or may not be read: its files are gone for us
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _stamps(path)
        elif entry.name.endswith(".py") or (entry.is_symlink() and entry.is_dir()):
            # A link to a folder is listed, so that reading it says why it is not followed.
            stamp = _stamp(entry)
            if stamp is not None:
                yield path, stamp


def _stamp(entry: "os.DirEntry[str]") -> Stamp | None:
    try:
        status = entry.stat()
    except OSError:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)

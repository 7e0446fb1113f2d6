"""Access to the folders below a root, and scans of them for files that are new, changed or gone.

Access is by descriptor: links that are inserted meanwhile are detected and never followed.
"""

import errno
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agent_core.base import folders, machine
from agent_core.base.records import dataclass


@contextmanager
def folder(
    root: Path, parts: Sequence[str], *, make: bool = False, lists: bool = True
) -> Iterator[int]:
    """Yield the descriptor of the folder below the root; raise OSError if there is a link on the way.

    With `make`, missing folders are created. Unless it `lists`, the folders need not be readable.
    """
    if make:
        root.mkdir(parents=True, exist_ok=True)
    folder_fd = folders.hold(root)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    folders.make(part, folder_fd)
            below = folders.hold_below(part, folder_fd, lists=lists)
            os.close(folder_fd)
            folder_fd = below
        yield folder_fd
    finally:
        os.close(folder_fd)


def leaving(root: Path, names: Sequence[str]) -> Path | None:
    """Return the first path below the root that is a link out of it, or a broken link."""
    real = os.path.realpath(root)
    for path in (root / name for name in names):
        if path.is_symlink() and not (
            path.exists() and Path(os.path.realpath(path)).is_relative_to(real)
        ):
            return path
    return None


def is_there(path: Path) -> bool:
    """Check whether a file or link exists; one without access counts as existing, so that reading it reports why."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG  # no file can have such a name
    return True


def is_behind_link(path: Path) -> bool:
    """Check whether a path that seems to be in the current folder is elsewhere because of a link."""
    folder = Path.cwd()
    written = Path(os.path.normpath(folder / path))
    return (
        written.is_relative_to(folder) and Path(os.path.realpath(written.parent)) != written.parent
    )


def create(name: str, folder_fd: int, content: bytes) -> bool:
    """Write a new file in the folder; return whether its name was free. A link also occupies a name."""
    try:
        descriptor = folders.open_in(name, folder_fd, machine.MAKING, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return True


def read_only(name: str, folder_fd: int) -> int:
    """Return a descriptor for reading a file of the folder; non-blocking, so that a pipe cannot stop the program."""
    return folders.open_in(name, folder_fd, machine.LOOKING)


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


def folders_of(
    root: Path, closed: dict[Path, str]
) -> "Iterator[tuple[Path, list[os.DirEntry[str]]]]":
    """Yield every folder from `root` down with its entries, without recursion, as nesting may exceed the stack.

    Folders that cannot be listed are added to `closed`, with the reason.
    """
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = [
                    entry
                    for entry in found
                    if not entry.name.startswith(".") and entry.name != "__pycache__"
                ]
        except OSError as error:
            is_file = isinstance(error, NotADirectoryError) and folder != root
            if not is_file and not isinstance(
                error, FileNotFoundError
            ):  # otherwise it was removed meanwhile
                closed[folder] = error.strerror or str(error)
            continue
        folders += [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield folder, entries


def _stamps(
    folder: Path, entries: "list[os.DirEntry[str]]", suffix: str
) -> Iterator[tuple[Path, Stamp]]:
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            continue
        # A link to a folder is listed, so that reading it reports why links are not followed.
        is_linked_folder = entry.is_symlink() and os.path.isdir(folder / entry.name)  # noqa: PTH112 - false where it cannot be seen
        if not (entry.name.endswith(suffix) or is_linked_folder):
            continue
        try:
            status = entry.stat()
        except OSError:
            try:
                status = entry.stat(
                    follow_symlinks=False
                )  # a broken link; a folder without access raises again
            except FileNotFoundError:
                continue
        yield folder / entry.name, Stamp(status.st_mtime_ns, status.st_size, status.st_ino)

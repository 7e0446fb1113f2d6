"""Access to folders below a root by descriptor: links that are inserted meanwhile are detected and never followed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_core.base import folders, machine


@contextmanager
def folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Yield the descriptor of the folder below the root; raise OSError if there is a link on the way."""
    if make:
        root.mkdir(parents=True, exist_ok=True)
    folder_fd = folders.hold(root)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    folders.make(part, folder_fd)
            below = folders.hold_below(part, folder_fd)
            os.close(folder_fd)
            folder_fd = below
        yield folder_fd
    finally:
        os.close(folder_fd)


def leaving(root: Path, names: Sequence[str]) -> Path | None:
    """Return the first path below the root that is a link out of it, or a broken link."""
    real = os.path.realpath(root)
    for path in (root / name for name in names):
        if path.is_symlink() and not (path.exists() and Path(os.path.realpath(path)).is_relative_to(real)):
            return path
    return None


def is_there(path: Path) -> bool:
    """Check whether a file or link exists; one without access counts as existing, so that reading it reports why."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def is_behind_link(path: Path) -> bool:
    """Check whether a path that seems to be in the current folder is elsewhere because of a link."""
    folder = Path.cwd()
    written = Path(os.path.normpath(folder / path))
    return written.is_relative_to(folder) and Path(os.path.realpath(written.parent)) != written.parent


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

"""Folders below a root by descriptor: a link that somebody puts in the way meanwhile is met, and never followed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of the folder below the root; OSError where a link is on the way."""
    if make:
        root.mkdir(parents=True, exist_ok=True)
    held = os.open(root, _FOLDER)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=held)
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = below
        yield held
    finally:
        os.close(held)


def leaving(root: Path, names: Sequence[str]) -> Path | None:
    """Return the first of the paths below the root that is a link out of it, or to nothing."""
    real = os.path.realpath(root)
    for path in (root / name for name in names):
        if path.is_symlink() and not (path.exists() and Path(os.path.realpath(path)).is_relative_to(real)):
            return path
    return None


def is_behind_link(path: Path) -> bool:
    """Return whether a path that lies in the current folder, as it is written, lies elsewhere by a link."""
    folder = Path.cwd()
    written = Path(os.path.normpath(folder / path))
    return written.is_relative_to(folder) and Path(os.path.realpath(written.parent)) != written.parent


def create(name: str, held: int, content: bytes) -> bool:
    """Write a new file of the folder; whether its name was free, for a link takes it too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o644, dir_fd=held)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return True


def read_only(name: str, held: int) -> int:
    """The descriptor of a file of the folder, for reading; not blocking, as a pipe must not stop the program."""
    return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=held)

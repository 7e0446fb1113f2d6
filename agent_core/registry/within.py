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


def read_only(name: str, held: int) -> int:
    """The descriptor of a file of the folder, for reading; not blocking, as a pipe must not stop the program."""
    return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=held)

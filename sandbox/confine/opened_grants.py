"""Opening of granted paths, once, by descriptors: no name is looked up twice and no symbolic link is followed.

A file may have been swapped since a human granted it. So each component of a path is opened separately, files are
compared by device and inode, and all later operations use the descriptor.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ..access import Access, AccessRefused

Identity: TypeAlias = tuple[int, int]  # device, inode

_ONLY_NAME: Final = sum(
    getattr(os, f"O_{name}", 0) for name in ("PATH", "NOFOLLOW", "NONBLOCK", "CLOEXEC")
)
# macOS has no `O_PATH`, without which a pipe would block.
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_OURS: Final = ("/scratch", "/.old")  # paths that the small root uses itself
_OF_THE_KERNEL: Final = (
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devtmpfs",
    "devpts",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "configfs",
    "efivarfs",
    "pstore",
    "binfmt_misc",
    "mqueue",
    "fusectl",
    "autofs",
)


@dataclass(frozen=True, slots=True)
class OpenedGrant:
    """One granted file or folder, held open by an `O_PATH` descriptor."""

    path: str
    descriptor: int
    is_folder: bool
    writable: bool


@dataclass(frozen=True, slots=True)
class _Guard:
    """A path that no function may change: its identity, if it exists, and those of all its parent folders."""

    own: Identity | None
    above: tuple[Identity, ...]

    @classmethod
    def of(cls, path: str) -> "_Guard":
        real = Path(os.path.realpath(path))
        above = tuple(_identity(parent.stat()) for parent in real.parents if parent.exists())
        return cls(_identity(real.stat()) if real.exists() else None, above)

    def forbids(self, chain: list[Identity]) -> bool:
        """Return whether writing to the path with these identities could change the guarded path."""
        return self.own in chain or chain[-1] in self.above


@contextmanager
def opened(access: Access, guarded: Sequence[str]) -> Iterator[tuple[OpenedGrant, ...]]:
    """Open the granted paths, parents first, while the block runs.

    Raises:
        AccessRefused: a path is missing, leads through a symbolic link, or must not be granted.
    """
    guards = [_Guard.of(path) for path in guarded] if access.writable else []
    outermost: list[
        str
    ] = []  # all except those inside a granted folder with at least the same rights
    for path in sorted({*access.readable, *access.writable}):
        around = [folder for folder in outermost if path.startswith(f"{folder}/")]
        if not around or (
            path in access.writable and not any(folder in access.writable for folder in around)
        ):
            outermost.append(path)
    with ExitStack() as stack:
        entries = []
        for path in outermost:
            entry = _open(path, guards, writable=path in access.writable)
            stack.callback(os.close, entry.descriptor)
            entries.append(entry)
        yield tuple(entries)


def _open(path: str, guards: list[_Guard], *, writable: bool) -> OpenedGrant:
    if not path.startswith("/") or path.startswith("//") or os.path.normpath(path) != path:
        raise AccessRefused(f"{path!r} is not a plain absolute path")
    if path == "/" or any(path == own or path.startswith(f"{own}/") for own in _OURS):
        raise AccessRefused(f"{path} cannot be shown to a function: the sandbox has its own there")
    _refuse_the_kernels(path)
    descriptor, chain = walk(path)
    try:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        return _looked_at(OpenedGrant(path, descriptor, is_folder, writable), chain, guards)
    except BaseException:
        os.close(descriptor)
        raise


def walk(path: str) -> tuple[int, list[Identity]]:
    """Return the path's descriptor, opened component by component, and the identity of each component."""
    descriptor = os.open("/", _ONLY_NAME)
    chain = [_identity(os.fstat(descriptor))]
    for part in path.strip("/").split("/"):
        above = descriptor
        try:
            descriptor = os.open(part, _ONLY_NAME, dir_fd=above)
        except OSError as error:
            raise AccessRefused(f"{path} cannot be opened: {error.strerror} at {part!r}") from error
        finally:
            os.close(above)
        facts = os.fstat(descriptor)
        if stat.S_ISLNK(facts.st_mode):
            os.close(descriptor)
            raise AccessRefused(
                f"{path}: {part!r} is a symbolic link; grant what it leads to, by its real path"
            )
        chain.append(_identity(facts))
    return descriptor, chain


def _identity(facts: os.stat_result) -> Identity:
    return facts.st_dev, facts.st_ino


def _looked_at(opened: OpenedGrant, chain: list[Identity], guards: list[_Guard]) -> OpenedGrant:
    facts = os.fstat(opened.descriptor)
    if not opened.is_folder and not stat.S_ISREG(facts.st_mode):
        raise AccessRefused(f"{opened.path} is neither a file nor a folder")
    if not opened.writable:
        return opened
    if not opened.is_folder and facts.st_nlink > 1:
        raise AccessRefused(
            f"{opened.path} has another name, too (a hard link), so it cannot be granted for writing"
        )
    if any(guard.forbids(chain) for guard in guards):
        raise AccessRefused(
            f"{opened.path} cannot be written by a function: it holds, or lies in, what no function may change"
        )
    return opened


def _refuse_the_kernels(path: str) -> None:
    """Raise AccessRefused if the path is on a kernel file system, or one is mounted below it."""
    if sys.platform != "linux":  # no other system has these, or lists its mounts there
        return
    deepest, kind_there = "", ""
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        before, _, after = line.partition(b" - ")
        point = os.fsdecode(
            _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), before.split(b" ")[4])
        )
        kind = after.split(b" ")[0].decode()
        if point == path or point.startswith(f"{path}/"):
            _refuse_kind(path, kind)
        if path == point or path.startswith(f"{point.rstrip('/')}/"):
            deepest, kind_there = max(
                (deepest, kind_there), (point, kind), key=lambda pair: len(pair[0])
            )
    _refuse_kind(path, kind_there)


def _refuse_kind(path: str, kind: str) -> None:
    if kind in _OF_THE_KERNEL:
        raise AccessRefused(f"{path} cannot be shown to a function: it reaches the kernel ({kind})")

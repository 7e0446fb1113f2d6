"""Landlock: limits the files that a worker may open. Imported code is read-only, and only scratch is writable.

A ruleset is created once, in the zygote, and applied in each worker by `restrict`. Everything that the kernel's version
of Landlock can deny is denied unless a rule allows it, including TCP, and abstract sockets and signals to other
processes, if the version supports them.
"""

import os
import stat
import struct
from collections.abc import Sequence
from typing import Final

from .kernel import syscall
from .opened_grants import OpenedGrant

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCKET, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYMLINK = (
    1 << 6,
    1 << 9,
    1 << 10,
    1 << 11,
    1 << 12,
)
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_RIGHTS_OF_VERSION: Final = {
    1: (1 << 13) - 1,
    2: (1 << 14) - 1,
    3: (1 << 15) - 1,
    4: (1 << 15) - 1,
    5: (1 << 16) - 1,
}
_OF_A_FILE: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_READ: Final = _READ_FILE | _READ_DIR
_NEVER: Final = (
    _EXECUTE | _MAKE_CHAR | _MAKE_SOCKET | _MAKE_FIFO | _MAKE_BLOCK | _MAKE_SYMLINK | _IOCTL_DEVICE
)
_TCP_BOTH: Final = 3  # bind, connect
_SCOPE_BOTH: Final = 3  # abstract sockets, signals


def version() -> int:
    """Return the kernel's version of Landlock. Raise OSError if it has no Landlock."""
    return syscall("landlock", _CREATE, None, 0, _VERSION_FLAG)


def ruleset(
    readable: Sequence[str],
    writable: Sequence[str],
    granted: Sequence[OpenedGrant] = (),
    listed: Sequence[str] = (),
) -> int:
    """Create a ruleset and return its descriptor.

    It allows reading below `readable`, writing to or below `writable`, access to `granted` paths, and reading the names
    (but no files) in `listed` folders. Everything else is denied.
    """
    abi_version = version()
    rights = _RIGHTS_OF_VERSION[min(abi_version, 5)]
    attributes = struct.pack("=Q", rights)  # each version that can do more takes one more
    if abi_version >= 4:
        attributes += struct.pack("=Q", _TCP_BOTH)
    if abi_version >= 6:
        attributes += struct.pack("=Q", _SCOPE_BOTH)
    rules = syscall("landlock_create_ruleset", _CREATE, attributes, len(attributes), 0)
    for path in readable:
        _allow(rules, path, _READ & rights)
    for path in writable:
        _allow(rules, path, rights & ~_NEVER)
    for path in listed:
        _allow(rules, path, _READ_DIR & rights)
    for entry in granted:
        _add(rules, entry.descriptor, rights & (~_NEVER if entry.writable else _READ))
    return rules


def _allow(rules: int, path: str, rights: int) -> None:
    below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _add(rules, below, rights)
    finally:
        os.close(below)


def _add(rules: int, below: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(below).st_mode):
        rights &= _OF_A_FILE
    syscall(
        "landlock_add_rule", _ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, below), 0
    )


def restrict(rules: int) -> None:
    """Bind this process to the rules for good. Call it before seccomp, which denies these calls."""
    syscall("landlock_restrict_self", _RESTRICT, rules, 0)

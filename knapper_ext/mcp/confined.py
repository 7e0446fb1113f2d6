"""Starts an MCP server confined: it can read the system and named paths, write to its own folder, and use the network.

It runs as a separate program: `python -m knapper_ext.mcp.confined SYSTEM… "" READ… "" WRITE… "" COMMAND…`.
Links are followed in the paths of the system only: the others were resolved when the user approved them. Landlock
confines it and, where the kernel can, keeps it from signals to other processes; a system call filter keeps it from
sockets other than those of the network. If the kernel has no Landlock, nothing is started.
"""

import os
import stat
import struct
import sys
from typing import Final

from sandbox.confine.calls import TABLES
from sandbox.confine.kernel import PR_SET_NO_NEW_PRIVS, prctl, syscall
from sandbox.confine.seccomp import Filter, build_for_network

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_EXECUTE, _READ = 1 << 0, 1 << 2 | 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
_OF_A_FILE: Final = _EXECUTE | 1 << 1 | 1 << 2 | 1 << 14
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SCOPES: Final = 3  # abstract sockets, signals
_FIRST_WITH_SCOPES: Final = 6
_ACTIONS: Final = "/proc/sys/kernel/seccomp/actions_avail"


def main() -> None:
    """Confine this process, then replace it by the server."""
    system, readable, writable, command = _groups(sys.argv[1:])
    try:
        version = _version()
    except OSError as error:
        sys.exit(
            f"This kernel has no Landlock, which confines an MCP server ({error.strerror}), so it was not started. "
            "To let it reach all files that you can, add it with --unconfined."
        )
    rights = _RIGHTS.get(version, (1 << 15) - 1)
    has_scopes = version >= _FIRST_WITH_SCOPES
    attributes = struct.pack("=QQQ", rights, 0, _SCOPES if has_scopes else 0)
    rules = syscall("landlock_create_ruleset", _CREATE, attributes, 24 if has_scopes else 8, 0)
    for path in system:
        _allow(rules, path, rights & (_READ | _EXECUTE))
    for path in readable:
        _allow(rules, path, rights & (_READ | _EXECUTE), follows=False)
    for path in writable:
        _allow(rules, path, rights & ~(_MAKE_CHAR | _MAKE_BLOCK), follows=False)
    for path in _DEVICES:
        _allow(rules, path, rights)
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    syscall("landlock_restrict_self", _RESTRICT, rules, 0)
    if _has_filter():
        Filter(build_for_network()).restrict()
    os.environ.pop("PYTHONPATH", None)  # only needed for this start
    try:
        os.execvp(command[0], command)  # noqa: S606 - what it is for: the command that the user approved
    except OSError as error:
        sys.exit(
            f"{command[0]!r} cannot be started ({error.strerror}): it, or what interprets it, is not there or lies "
            "where a confined server may not read. Name that folder with --read."
        )


def not_kept_from() -> list[str]:
    """Return what this kernel cannot keep a confined server from; nothing if it has no Landlock: then none starts."""
    try:
        version = _version()
    except OSError:
        return []
    signals = (
        [] if version >= _FIRST_WITH_SCOPES else ["signals to your other programs, which end them"]
    )
    sockets = (
        []
        if _has_filter()
        else ["the sockets of your session, such as those of ssh-agent, D-Bus and Docker"]
    )
    return [*signals, *sockets]


def _version() -> int:
    return syscall("landlock", _CREATE, None, 0, 1)


def _has_filter() -> bool:
    if sys.platform != "linux":
        return False
    return os.uname().machine in TABLES and os.path.exists(_ACTIONS)  # noqa: PTH110 - a start that imports nothing more


def _groups(words: list[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the words before the first, the second and the third empty one, and all after that."""
    first = words.index("")
    second = words.index("", first + 1)
    third = words.index("", second + 1)
    return words[:first], words[first + 1 : second], words[second + 1 : third], words[third + 1 :]


def _allow(rules: int, path: str, rights: int, *, follows: bool = True) -> None:
    if sys.platform != "linux":
        raise OSError("only Linux has these rules")
    try:
        below = os.open(path, os.O_PATH | os.O_CLOEXEC) if follows else _open_unlinked(path)
    except FileNotFoundError:
        return
    try:
        rights &= rights if stat.S_ISDIR(os.fstat(below).st_mode) else _OF_A_FILE
        syscall("landlock_add_rule", _ADD_RULE, rules, 1, struct.pack("=Qi", rights, below), 0)
    finally:
        os.close(below)


def _open_unlinked(path: str) -> int:
    """Return a descriptor of what is at a whole path; end the program if there is a link on the way by now."""
    if sys.platform != "linux":
        sys.exit("Only Linux confines a server.")
    place = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for part in path.strip("/").split("/"):
        try:
            below = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
        finally:
            os.close(place)
        if stat.S_ISLNK(os.fstat(below).st_mode):
            sys.exit(f"{path!r} leads elsewhere by now, so the server was not started.")
        place = below
    return place


if __name__ == "__main__":
    main()

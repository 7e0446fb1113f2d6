"""Starts an MCP server confined by Landlock: it can read the system and named paths, and write to its own folder.

It runs as a separate program: `python -m agent_core.functions.mcp.confined READABLE WRITABLE COMMAND…`, with paths
separated as in PATH. If the kernel does not support this, nothing is started.
"""

import os
import struct
import sys
from typing import Final

from sandbox.confine.kernel import PR_SET_NO_NEW_PRIVS, prctl, syscall

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_EXECUTE, _READ = 1 << 0, 1 << 2 | 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
_OF_A_FILE: Final = _EXECUTE | 1 << 1 | 1 << 2 | 1 << 14
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def main() -> None:
    """Confine this process, then replace it by the server."""
    readable, writable, *command = sys.argv[1:]
    try:
        version = syscall("landlock", _CREATE, None, 0, 1)
    except OSError as error:
        sys.exit(
            f"This kernel has no Landlock, which confines an MCP server ({error.strerror}), so it was not started. "
            "To let it reach all files that you can, add it with --unconfined."
        )
    rights = _RIGHTS.get(version, (1 << 15) - 1)
    rules = syscall("landlock_create_ruleset", _CREATE, struct.pack("=Q", rights), 8, 0)
    for path in readable.split(os.pathsep):
        _allow(rules, path, rights & (_READ | _EXECUTE))
    for path in (*writable.split(os.pathsep), *_DEVICES):
        _allow(rules, path, rights & ~(_MAKE_CHAR | _MAKE_BLOCK))
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    syscall("landlock_restrict_self", _RESTRICT, rules, 0)
    os.environ.pop("PYTHONPATH", None)  # only needed for this start
    os.execvp(command[0], command)  # noqa: S606 - what it is for: the command that the user approved


def _allow(rules: int, path: str, rights: int) -> None:
    if sys.platform != "linux":
        raise OSError("only Linux has these rules")
    try:
        below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights &= rights if os.path.isdir(path) else _OF_A_FILE  # noqa: PTH112 - a start that imports nothing more
        syscall("landlock_add_rule", _ADD_RULE, rules, 1, struct.pack("=Qi", rights, below), 0)
    finally:
        os.close(below)


if __name__ == "__main__":
    main()

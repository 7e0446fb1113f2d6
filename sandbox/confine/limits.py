"""The kernel's limits for one worker, and the user that it runs as."""

import os
import resource
import signal
import struct

from .calls import number
from .kernel import (
    PR_CAP_AMBIENT,
    PR_CAPBSET_DROP,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    prctl,
    syscall,
)
from .plan import THREADS, Rlimits

_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_HEADER = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process


def restrict(rlimits: Rlimits, *, own_user: bool) -> None:
    """Set all limits of this process, soft and hard, so that none can be raised again."""
    resource.setrlimit(resource.RLIMIT_CPU, (rlimits.cpu_s, rlimits.cpu_s + 1))
    restrict_ahead(rlimits, own_user=own_user)


def restrict_ahead(rlimits: Rlimits, *, own_user: bool) -> None:
    """Set all limits, soft and hard, except CPU time, which a zygote uses as long as it runs."""
    hard = resource.setrlimit
    hard(resource.RLIMIT_CORE, (0, 0))
    hard(resource.RLIMIT_AS, (rlimits.memory, rlimits.memory))
    hard(resource.RLIMIT_FSIZE, (rlimits.file_size, rlimits.file_size))
    hard(resource.RLIMIT_NOFILE, (rlimits.open_files, rlimits.open_files))
    if (
        own_user
    ):  # otherwise the human's processes count, too; the memory limit stops a thread bomb anyway
        hard(resource.RLIMIT_NPROC, (THREADS, THREADS))
    hard(resource.RLIMIT_MEMLOCK, (0, 0))
    hard(resource.RLIMIT_MSGQUEUE, (0, 0))


def end_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends. A change of user resets this."""
    prctl("parent-death signal", PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every process below this one when its own parent ends."""
    prctl("adoption of orphans", PR_SET_CHILD_SUBREAPER, 1)


def drop_privileges(user: int | None, group: int | None = None) -> None:
    """Switch to another user, if one is given, and give up all capabilities and all ways to regain one.

    The group changes, too: to `group`, or to the one with the user's number.
    """
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        try:
            prctl("bounding set", PR_CAPBSET_DROP, capability)
        except (
            OSError
        ):  # past the kernel's last capability, or no right to drop: `capset` is what counts
            break
    prctl("ambient capabilities", PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    if user is not None:
        os.setgroups([])
        os.setresgid(*[user if group is None else group] * 3)
        os.setresuid(user, user, user)
    syscall("capset", number("capset"), _CAPABILITY_HEADER, bytes(24))
    prctl("dumpable", PR_SET_DUMPABLE, 0)

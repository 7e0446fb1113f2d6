"""The kernel's own limits on one worker, and the identity that it runs under."""

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
    """Set every limit of this process, soft and hard, so that none can be raised again."""
    resource.setrlimit(resource.RLIMIT_CPU, (rlimits.cpu_s, rlimits.cpu_s + 1))
    restrict_ahead(rlimits, own_user=own_user)


def restrict_ahead(rlimits: Rlimits, *, own_user: bool) -> None:
    """Set the limits of a zygote, soft and hard, except processor time, which it spends as long as it serves."""
    hard = resource.setrlimit
    hard(resource.RLIMIT_CORE, (0, 0))
    hard(resource.RLIMIT_AS, (rlimits.memory, rlimits.memory))
    hard(resource.RLIMIT_FSIZE, (rlimits.file_size, rlimits.file_size))
    hard(resource.RLIMIT_NOFILE, (rlimits.open_files, rlimits.open_files))
    if own_user:  # else the kernel would count the human's processes too, and memory ends a thread bomb
        hard(resource.RLIMIT_NPROC, (THREADS, THREADS))
    hard(resource.RLIMIT_MEMLOCK, (0, 0))
    hard(resource.RLIMIT_MSGQUEUE, (0, 0))


def end_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends. A change of user revokes this."""
    prctl("parent-death signal", PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every process below this one when its own parent ends."""
    prctl("adoption of orphans", PR_SET_CHILD_SUBREAPER, 1)


def drop_privileges(user: int | None, group: int | None = None) -> None:
    """Become another user if one is given, and give up every capability and every way to get one back.

    The group is another's too: the one given, or that of the user's number.
    """
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    _empty_bounding_set()
    prctl("ambient capabilities", PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    if user is not None:
        os.setgroups([])
        os.setresgid(*[user if group is None else group] * 3)
        os.setresuid(user, user, user)
    syscall("capset", number("capset"), _CAPABILITY_HEADER, bytes(24))
    prctl("dumpable", PR_SET_DUMPABLE, 0)


def _empty_bounding_set() -> None:
    for capability in range(64):
        try:
            prctl("bounding set", PR_CAPBSET_DROP, capability)
        except OSError:  # past the last capability that this kernel knows, or none to drop: capset decides
            return

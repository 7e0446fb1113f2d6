"""The outer process of a zygote. It imports nothing, waits, and ends everything left when the host or zygote ends.

What a package starts while it is imported cannot leave the zygote's group of processes, so one signal ends it, whatever
it closed or ignores; what lost its parent comes to the outer process and is collected here.
"""

import os
import select
import signal
import socket
from contextlib import suppress
from typing import NoReturn

from ..confine import limits


def enter(control: socket.socket) -> None:
    """Return in a child that leads its own group. This process stays outside and ends the group at the end."""
    limits.adopt_orphans()
    child = os.fork()
    with suppress(PermissionError):  # the child has done it
        os.setpgid(child, child)
    if child:
        _watch(control, child)


def _watch(control: socket.socket, child: int) -> NoReturn:
    watched = select.poll()
    watched.register(control, 0)  # that the host has closed its end: a hang-up is reported unasked
    watched.register(os.pidfd_open(child), select.POLLIN)
    watched.poll()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)

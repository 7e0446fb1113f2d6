# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH116
"""learning about the machine and the host: numbers, names, memory addresses"""

import gc
import os
import socket
import sys
from pathlib import Path


def the_processor(self, world):
    """said: it is this machine's own | namespaces landlock"""
    return Path("/proc/cpuinfo").read_text()[:0] + world["mark"]


def the_number_of_the_machine(self, world):
    """said: it is this machine's own | namespaces landlock"""
    return Path(world["machine"]).read_text()[:0] + world["mark"]


def the_number_of_this_start(self, world):
    """said: it is this machine's own | namespaces landlock"""
    return Path("/proc/sys/kernel/random/boot_id").read_text()[:0] + world["mark"]


def the_mounts_of_the_host(self, world):
    """said: they are this machine's own | namespaces landlock"""
    return Path("/proc/self/mountinfo").read_text()[:0] + world["mark"]


def the_addresses_of_the_network(self, world):
    """said: they are this machine's own | namespaces landlock"""
    return Path("/proc/net/fib_trie").read_text()[:0] + world["mark"]


def the_names_of_the_network(self, world):
    """said: they are this machine's own | seccomp"""
    return str(socket.if_nameindex())[:0] + world["mark"]


def the_devices(self, world):
    """said: they are this machine's own | namespaces landlock"""
    return str(os.listdir("/sys/class/net"))[:0] + world["mark"]  # noqa: PTH208


def who_is_on_this_machine(self, world):
    """said: they are this machine's own | namespaces landlock"""
    import pwd

    return world["mark"] if pwd.getpwall() else "nobody"


def the_name_of_the_machine(self, world):
    """said: it is this machine's own | namespaces | core leaks: reading it needs neither a file nor a privilege"""
    return world["mark"] if socket.gethostname() == world["host_name"] else "another"


def the_command_line_of_the_host(self, world):
    """said: it is this program's own | namespaces landlock"""
    return Path(f"/proc/{world['host']}/cmdline").read_text()[:0] + world["mark"]


def what_lies_in_the_home(self, world):
    """said: names | namespaces | core leaks: Landlock covers opening but not stat"""
    os.stat(world["home"])
    return world["mark"]


def what_the_worker_was_told_of_the_host(self, world):
    """apart: the warm process is started anew with an empty environment and never held a secret"""
    found = [
        value for value in gc.get_objects() if isinstance(value, str) and "ARENA_SECRET" in value
    ]
    frame = sys._getframe()
    while frame is not None:
        found += [
            str(value) for value in frame.f_globals.values() if "secret" in str(value)[:100].lower()
        ]
        frame = frame.f_back
    return [
        text[:500] for text in found[:1000] if world["folder"] not in text and "def " not in text
    ]


def an_inherited_descriptor(self, world):
    """apart: the warm process is started with its descriptors closed, so there is none to inherit

    | | ahead leaks: the channel to the host and the rules of its workers, neither of which gives more access
    """
    for number in range(4, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        return world["mark"]
    return "none"


def the_numbers_of_the_kernel(self, world):
    """inherent: uname and sysinfo are allowed, and reveal the kernel's version and the memory in use"""
    return os.uname().release

# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""gaining other users, capabilities, namespaces, roots, mounts, limits, the machine's name and clock"""

import os
import socket
import time

from functions.hand import ctypes, look, raw, resource


def become_root(self, world):
    """worker: its status says so | seccomp privileges"""
    os.setuid(0 if os.getuid() else 1)
    look(self, "status", r"Uid:\t(0\t0|1\t1)\t")


def become_another_group(self, world):
    """worker: its status says so | seccomp privileges"""
    os.setgid(1)
    look(self, "status", r"Gid:\t1\t")


def join_groups(self, world):
    """worker: its status says so | seccomp privileges"""
    os.setgroups([42])
    look(self, "status", r"Groups:\t42")


def be_another_for_files(self, world):
    """worker: its status says so | seccomp privileges"""
    raw(122, 12345)
    look(self, "status", r"Uid:\t\d+\t\d+\t\d+\t12345")


def take_capabilities(self, world):
    """worker: its status says so | seccomp privileges"""
    data = (ctypes.c_uint32 * 6)(1, 1, 0, 0, 0, 0)
    raw(126, (ctypes.c_uint32 * 2)(0x20080522, 0), data)
    look(self, "status", r"CapEff:\t0+1\n")


def new_users(self, world):
    """worker: another namespace than its parent's | seccomp"""
    raw(272, 0x10000000)
    look(self, "ns/user", "other")


def new_mounts(self, world):
    """worker: another namespace than its parent's | seccomp privileges"""
    raw(272, 0x20000)
    look(self, "ns/mnt", "other")


def new_processes(self, world):
    """said: they would begin with the next fork | seccomp privileges"""
    raw(272, 0x20000000)
    return world["mark"]


def a_new_network(self, world):
    """worker: another namespace than its parent's | seccomp privileges"""
    raw(272, 0x40000000)
    look(self, "ns/net", "other")


def new_users_by_clone(self, world):
    """said: the child ends at once | seccomp"""
    if raw(56, 0x10000000 | 17, 0, 0, 0, 0) == 0:
        os._exit(0)
    return world["mark"]


def new_users_by_a_thread(self, world):
    """apart: the kernel itself refuses new users to a thread; that the flag is refused is in the test of the filter"""
    raw(56, 0x10000000 | 0x10900, 0, 0, 0, 0)
    return world["mark"]


def the_network_of_another(self, world):
    """said: which one it is does not show where there is only one | namespaces landlock seccomp privileges"""
    raw(308, os.open(f"/proc/{world['victim']}/ns/net", os.O_RDONLY), 0)
    return world["mark"]


def the_worlds_of_a_process(self, world):
    """said: which one it is does not show where there is only one | namespaces landlock seccomp privileges"""
    raw(308, os.pidfd_open(world["victim"]), 0x40000000)
    return world["mark"]


def another_root(self, world):
    """worker: its root | seccomp privileges"""
    os.mkdir("root")  # noqa: PTH102
    os.chroot("root")
    look(self, "root", "/root$")


def turn_the_root(self, world):
    """apart: the kernel itself refuses it where the new root is no mount; mounting is refused by itself"""
    raw(155, b".", b".")
    return world["mark"]


def mount_something(self, world):
    """worker: its list of mounts | landlock seccomp privileges"""
    raw(165, b"attack", b".", b"tmpfs", 0, None)
    look(self, "mounts", "^attack ")


def mount_by_the_new_calls(self, world):
    """worker: among its descriptors | seccomp privileges"""
    raw(430, b"tmpfs", 0)
    look(self, "fd", "fscontext")


def a_copy_of_the_tree(self, world):
    """said: it is of the root that is there | seccomp privileges"""
    raw(428, -100, b"/", 1)
    return world["mark"]


def unmount_ones_scratch(self, world):
    """said: it is mounted for the test | landlock seccomp privileges"""
    raw(165, b"attack", b".", b"tmpfs", 0, None)
    raw(166, os.getcwd().encode(), 2)  # noqa: PTH109
    return world["mark"]


def the_attributes_of_a_mount(self, world):
    """said: they are set to what they are | seccomp privileges"""
    raw(442, -100, b"/", 0, (ctypes.c_uint64 * 4)(0, 0, 0, 0), 32)
    return world["mark"]


def mount_what_is_there_writable(self, world):
    """changed | namespaces landlock seccomp privileges"""
    raw(165, None, b"/", None, 32 | 4096, None)
    with open(os.path.dirname(os.__file__) + "/knapper_was_here.py", "w") as file:  # noqa: PTH120, PTH123
        file.write("x")


def the_name_of_the_machine(self, world):
    """changed | namespaces seccomp privileges"""
    socket.sethostname("attacked-" + world["mark"])


def the_domain_of_the_machine(self, world):
    """said: it is set to what it was | seccomp privileges"""
    raw(171, b"(none)", 6)
    return world["mark"]


def the_clock(self, world):
    """said: it is set to what it is | seccomp privileges"""
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return world["mark"]


def the_clock_by_a_little(self, world):
    """said: it is set to what it is | seccomp privileges"""
    setting = (ctypes.c_uint64 * 26)()
    raw(159, setting)
    setting[0] = 2
    raw(159, setting)
    return world["mark"]


def a_limit_upwards(self, world):
    """worker: its limits | seccomp limits"""
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))
    look(self, "limits", r"Max core file size\s+1073741824\s+1073741824")


def the_limit_on_memory(self, world):
    """worker: its limits | seccomp limits"""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
    look(self, "limits", r"Max address space\s+1099511627776\s+1099511627776")


def the_priority_upwards(self, world):
    """worker: its status says so | seccomp privileges"""
    os.nice(-5)
    look(self, "stat", r"\) \S+ (\S+ ){15}-5 ")


def quotas(self, world):
    """apart: there is no disk with quotas here, so it is refused with any layer or none"""
    raw(179, 0x800002, b"/dev/null", 0, None)
    return world["mark"]


def new_users_by_the_newest_clone(self, world):
    """said: the child ends at once | seccomp"""
    if raw(435, (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17, 0, 0, 0), 64) == 0:
        os._exit(0)
    return world["mark"]


def a_session_of_ones_own(self, world):
    """worker: its status says so | seccomp"""
    os.setsid()
    look(self, "stat", r"^(\d+) \(.*\) \S \d+ \1 \1 ")


def a_group_of_ones_own(self, world):
    """worker: its status says so | seccomp"""
    os.setpgid(0, 0)
    look(self, "stat", r"^(\d+) \(.*\) \S \d+ \1 ")


def wider_rules_for_files(self, world):
    """apart: a worker holds no rules that could be widened; a process that it is forked from does"""
    root = os.open("/", os.O_PATH)
    rule = (ctypes.c_uint32 * 3)(0xC, 0, root)
    for number in range(3, 120):
        try:
            raw(445, number, 1, ctypes.byref(rule), 0)
        except OSError:
            continue
        return world["mark"]
    return "none"

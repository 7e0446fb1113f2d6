# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""reaching parts of the kernel that a function does not need"""

import os

from functions.hand import ctypes, look, raw


def io_uring(self, world):
    """worker: a ring among its descriptors | seccomp limits"""
    raw(425, 1, ctypes.create_string_buffer(240))
    look(self, "fd", "io_uring")


def a_bpf_map(self, world):
    """worker: a map among its descriptors | seccomp privileges"""
    raw(321, 0, (ctypes.c_uint32 * 30)(2, 4, 8, 1), 120)
    look(self, "fd", "bpf-map")


def perf_events(self, world):
    """worker: an event among its descriptors | seccomp privileges"""
    raw(298, (ctypes.c_uint32 * 32)(1, 128, 0), 0, -1, -1, 0)
    look(self, "fd", "perf_event")


def faults_of_users(self, world):
    """worker: a handler among its descriptors | seccomp privileges"""
    raw(323, 0)
    look(self, "fd", "userfaultfd")


def memory_with_a_name(self, world):
    """worker: a file among its descriptors | seccomp"""
    os.memfd_create("mine")
    look(self, "fd", "memfd:mine")


def memory_that_not_even_the_kernel_reads(self, world):
    """said: kernels are built without it | seccomp"""
    raw(447, 0)
    return world["mark"]


def watch_names(self, world):
    """worker: a watch among its descriptors | seccomp"""
    raw(294, 0)
    look(self, "fd", "inotify")


def watch_whole_disks(self, world):
    """worker: a watch among its descriptors | seccomp privileges"""
    raw(300, 0, 0)
    look(self, "fd", "fanotify")


def wait_for_signals_by_a_descriptor(self, world):
    """worker: among its descriptors | seccomp"""
    raw(289, -1, ctypes.create_string_buffer(8), 8, 0)
    look(self, "fd", "signalfd")


def open_a_process(self, world):
    """worker: among its descriptors | seccomp

    | ahead leaks: the host is handed each worker by such a descriptor; nothing can be done with another's
    """
    os.pidfd_open(os.getpid())
    look(self, "fd", "pidfd")


def a_key(self, world):
    """said: keys are listed to their owner | seccomp"""
    raw(248, b"user", b"knapper", b"x", 1, -3)
    return world["mark"]


def a_ring_of_keys(self, world):
    """said: keys are listed to their owner | seccomp"""
    raw(250, 0, -3, 1)
    return world["mark"]


def ask_for_a_key(self, world):
    """apart: there is no such key to be had, with any layer or none; a helper would be run for it"""
    raw(249, b"user", b"knapper", b"x", -3)
    return world["mark"]


def _key(world):
    return int(world["mark"][-6:], 16) + 1


def memory_shared_for_ever(self, world):
    """worker: listed by the kernel | namespaces seccomp"""
    raw(29, _key(world), 1 << 20, 0o1666)
    look(self, "../sysvipc/shm", str(_key(world)))


def a_queue_of_messages(self, world):
    """worker: listed by the kernel | namespaces seccomp"""
    raw(68, _key(world), 0o1666)
    look(self, "../sysvipc/msg", str(_key(world)))


def a_semaphore(self, world):
    """worker: listed by the kernel | namespaces seccomp"""
    raw(64, _key(world), 1, 0o1666)
    look(self, "../sysvipc/sem", str(_key(world)))


def a_queue_with_a_name(self, world):
    """said: it is gone with its namespace | landlock seccomp limits"""
    raw(240, world["mark"].encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    return world["mark"]


def a_filter_of_ones_own(self, world):
    """worker: its status says so | seccomp"""
    allow = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\xff\x7f", 8)
    raw(157, 38, 1, 0, 0, 0)
    raw(157, 22, 2, (ctypes.c_void_p * 2)(1, ctypes.addressof(allow)), 0, 0)
    look(self, "status", r"Seccomp_filters:\t\d")


def a_sandbox_of_ones_own(self, world):
    """worker: among its descriptors | seccomp"""
    raw(444, (ctypes.c_uint64 * 1)(1), 8, 0)
    look(self, "fd", "landlock")


def numbers_of_another_kind(self, world):
    """apart: kernels are built without it; that the filter kills for it is in the test of the filter"""
    raw(0x40000000 | 39)
    return world["mark"]


def a_name_of_ones_own(self, world):
    """worker: its name | seccomp"""
    raw(157, 15, b"kworker", 0, 0, 0)
    look(self, "comm", "kworker")


def be_readable_by_ones_own_user(self, world):
    """said: of its status nothing tells it | seccomp"""
    raw(157, 4, 1, 0, 0, 0)
    return world["mark"]


def outlive_the_parent(self, world):
    """said: of its status nothing tells it | seccomp"""
    raw(157, 1, 0, 0, 0, 0)
    return world["mark"]


def adopt_what_others_leave(self, world):
    """said: of its status nothing tells it | seccomp"""
    raw(157, 36, 1, 0, 0, 0)
    return world["mark"]


def lock_memory(self, world):
    """worker: its status says so | seccomp limits"""
    raw(149, ctypes.cast(ctypes.create_string_buffer(8192), ctypes.c_void_p), 8192)
    look(self, "status", r"VmLck:\s+[1-9]")


def run_before_all_others(self, world):
    """worker: its status says so | seccomp limits privileges"""
    raw(144, os.getpid(), 1, (ctypes.c_int * 1)(1))
    look(self, "sched", r"policy\s*:\s*1")


def read_before_all_others(self, world):
    """said: of its status nothing tells it | seccomp privileges"""
    raw(251, 1, 0, 1 << 13)
    return world["mark"]


def take_other_processors(self, world):
    """worker: its status says so | seccomp"""
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    look(self, "status", r"Cpus_allowed_list:\s+\d+\n")


def be_another_architecture(self, world):
    """worker: its status says so | seccomp"""
    raw(135, 0x0040000)
    look(self, "personality", "0*40000")


def ports_of_the_machine(self, world):
    """apart: kernels are built without it, and what it opens is no test"""
    raw(173, 0x80, 1, 1)
    return world["mark"]


def a_kernel_module(self, world):
    """apart: an empty module is refused by the kernel itself, and a real one is no test"""
    raw(175, b"", 0, b"")
    return world["mark"]


def another_kernel(self, world):
    """apart: without a kernel to load it is refused by the kernel itself, and a real one is no test"""
    raw(246, 0, 0, 0, 0)
    return world["mark"]


def restart_the_machine(self, world):
    """apart: with a wrong magic number it is refused by the kernel itself, and the right one is no test"""
    raw(169, 1, 2, 3, 0)
    return world["mark"]


def swap_to_a_file(self, world):
    """apart: what is no swap area is refused by the kernel itself"""
    raw(167, b"/dev/null", 0)
    return world["mark"]


def account_for_processes(self, world):
    """said: it is ended at once | seccomp privileges"""
    raw(163, None)
    return world["mark"]


def hang_the_terminal_up(self, world):
    """said: there is none to hang up | seccomp privileges"""
    raw(153)
    return world["mark"]


def push_a_key_into_standard_input(self, world):
    """apart: standard input is /dev/null and no terminal; a real one is in the family of the network"""
    from functions.hand import fcntl

    fcntl.ioctl(0, 0x5412, b"x")
    return world["mark"]

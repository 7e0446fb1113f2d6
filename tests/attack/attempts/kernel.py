# Attackers write neither types nor paths by the book; these modules are data that workers run.
# mypy: ignore-errors
# ruff: noqa: PTH100, PTH109
"""Attempts on the kernel: calls that widen what a process can do, native code, and other namespaces."""

import ctypes
import mmap
import os
import resource
import socket
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)


def _raw(world: dict, number: int, *arguments: object) -> str:
    if LIBC.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return world["mark"]


def set_up_io_uring(world: dict) -> str:
    return _raw(world, 425, 1, ctypes.create_string_buffer(240))


def make_a_bpf_map(world: dict) -> str:
    return _raw(world, 321, 0, ctypes.create_string_buffer(b"\1\0\0\0\4\0\0\0\4\0\0\0\1", 120), 120)


def open_perf_events(world: dict) -> str:
    return _raw(world, 298, ctypes.create_string_buffer(b"\1\0\0\0\x80", 128), 0, -1, -1, 0)


def make_a_key(world: dict) -> str:
    return _raw(world, 248, b"user", b"toolwright", b"x", 1, -3)


def control_keys(world: dict) -> str:
    return _raw(world, 250, 0, -3, 1)


def handle_faults_of_users(world: dict) -> str:
    return _raw(world, 323, 1)


def leave_the_namespace_for_users(world: dict) -> str:
    return _raw(world, 272, 0x10000000)


def enter_another_namespace(world: dict) -> str:
    return _raw(world, 308, os.open("/proc/1/ns/net", os.O_RDONLY), 0)


def change_the_root(world: dict) -> str:
    os.chroot(".")
    return world["mark"]


def mount_something(world: dict) -> str:
    return _raw(world, 165, b"none", b".", b"tmpfs", 0, None)


def unmount_the_scratch(world: dict) -> str:
    return _raw(world, 166, os.getcwd().encode(), 2)


def open_by_handle(world: dict) -> str:
    return _raw(world, 303, -100, b"/etc/passwd", ctypes.create_string_buffer(140), ctypes.create_string_buffer(8), 0)


def share_memory_for_ever(world: dict) -> str:
    return _raw(world, 29, 0x700, 1 << 20, 0o1666)


def make_memory_with_a_name(world: dict) -> str:
    os.memfd_create("x")
    return world["mark"]


def load_a_kernel_module(world: dict) -> str:
    return _raw(world, 175, b"", 0, b"")


def change_the_host_name(world: dict) -> str:
    socket.sethostname("attacked")
    return world["mark"]


def change_the_clock(world: dict) -> str:
    time.clock_settime(time.CLOCK_REALTIME, 1.0)
    return world["mark"]


def raise_a_limit(world: dict) -> str:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return world["mark"]


def raise_a_limit_of_another(world: dict) -> str:
    resource.prlimit(world["victim"], resource.RLIMIT_CPU, (1, 1))
    return world["mark"]


def become_root(world: dict) -> str:
    os.setuid(0 if os.getuid() else 1)
    return world["mark"]


def become_dumpable(world: dict) -> str:
    if LIBC.prctl(4, 1, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return world["mark"]


def put_on_a_filter_of_ones_own(world: dict) -> str:
    if LIBC.prctl(22, 1, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return world["mark"]


def call_by_numbers_of_another_kind(world: dict) -> str:
    return _raw(world, 0x40000000 | 39)


def make_new_code(world: dict) -> str:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x2a\0\0\0\xc3")
    return world["mark"]


def make_data_into_code(world: dict) -> str:
    page = mmap.mmap(-1, 4096)
    page.write(b"\xb8\x2a\0\0\0\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return _raw(world, 10, ctypes.c_void_p(address), 4096, 5)


def load_code_from_scratch(world: dict) -> str:
    source = next(
        Path(folder, "libz.so.1") for folder in ("/lib/x86_64-linux-gnu", "/usr/lib64") if Path(folder).exists()
    )
    Path("own.so").write_bytes(source.read_bytes())
    ctypes.CDLL(os.path.abspath("own.so"))
    return world["mark"]


def map_code_from_scratch(world: dict) -> str:
    Path("code").write_bytes(b"\xb8\x2a\0\0\0\xc3" + bytes(4090))
    mmap.mmap(os.open("code", os.O_RDONLY), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    return world["mark"]


def push_a_key_into_the_terminal(world: dict) -> str:
    import fcntl

    fcntl.ioctl(0, 0x5412, b"x")
    return world["mark"]

# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""acting on other processes: signals, tracing, their descriptors, their order"""

import os
import signal
import time
from pathlib import Path

from functions.hand import ctypes, fcntl, raw, resource


def kill_the_victim(self, world):
    """dead | namespaces landlock seccomp"""
    os.kill(world["victim"], signal.SIGKILL)
    time.sleep(0.1)


def kill_the_victim_by_its_thread(self, world):
    """dead | namespaces landlock seccomp"""
    raw(234, world["victim"], world["victim"], signal.SIGKILL)
    time.sleep(0.1)


def kill_the_victim_by_a_queue(self, world):
    """dead | namespaces landlock seccomp"""
    information = ctypes.create_string_buffer(128)
    ctypes.memmove(information, (ctypes.c_int * 3)(signal.SIGKILL, 0, -1), 12)
    raw(129, world["victim"], signal.SIGKILL, information)
    time.sleep(0.1)


def kill_by_pidfd(self, world):
    """dead | namespaces landlock seccomp"""
    signal.pidfd_send_signal(os.pidfd_open(world["victim"]), signal.SIGKILL)
    time.sleep(0.1)


def kill_by_a_descriptors_owner(self, world):
    """dead | namespaces landlock seccomp"""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, 10, signal.SIGKILL)
    fcntl.fcntl(reader, fcntl.F_SETOWN, world["victim"])
    fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(writer, b"x")
    time.sleep(0.05)


def kill_by_a_timer(self, world):
    """apart: the kernel keeps what a timer sends within the process"""
    event = (ctypes.c_int * 16)(0, 0, signal.SIGKILL, 4, world["victim"])
    timer = ctypes.c_int()
    raw(222, 1, event, ctypes.byref(timer))
    raw(223, timer.value, 0, (ctypes.c_long * 4)(0, 0, 0, 1000), None)
    time.sleep(0.1)


def signal_the_host(self, world):
    """dead: the host is signalled | namespaces landlock seccomp"""
    os.kill(world["host"], signal.SIGUSR1)
    time.sleep(0.05)


def kill_the_parent(self, world):
    """dead: the zygote | namespaces landlock seccomp"""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.1)


def kill_everything(self, world):
    """dead | namespaces landlock seccomp"""
    os.kill(-1, signal.SIGKILL)


def kill_ones_group(self, world):
    """dead: the zygote | namespaces landlock seccomp"""
    os.kill(0, signal.SIGKILL)
    time.sleep(0.1)


def stop_the_parent(self, world):
    """said: it is asked whether it might | landlock seccomp"""
    os.kill(os.getppid(), 0)
    return world["mark"]


def stop_oneself(self, world):
    """stays | seccomp"""
    os.kill(os.getpid(), signal.SIGSTOP)


def trace_the_victim(self, world):
    """said: nothing is done to it | namespaces landlock seccomp privileges"""
    raw(101, 16, world["victim"], 0, 0)
    return world["mark"]


def trace_the_victim_without_stopping_it(self, world):
    """said: nothing is done to it | namespaces landlock seccomp privileges"""
    raw(101, 0x4206, world["victim"], 0, 0)
    return world["mark"]


def trace_the_parent(self, world):
    """said: nothing is done to it | landlock seccomp privileges"""
    raw(101, 0x4206, os.getppid(), 0, 0)
    return world["mark"]


def be_traced(self, world):
    """said: it is its own affair, and the parent would see its stops | seccomp"""
    raw(101, 0, 0, 0, 0)
    return world["mark"]


def steal_a_descriptor_of_the_victim(self, world):
    """secret | namespaces landlock seccomp privileges"""
    return os.pread(
        raw(438, os.pidfd_open(world["victim"]), world["victims_descriptor"], 0), 100, 0
    )


def steal_a_descriptor_by_its_path(self, world):
    """secret | namespaces landlock privileges"""
    return Path(f"/proc/{world['victim']}/fd/{world['victims_descriptor']}").read_text()


def compare_what_two_processes_hold(self, world):
    """said: it tells where memory lies | namespaces landlock seccomp privileges"""
    raw(312, os.getpid(), world["victim"], 1, 0, 0)
    return world["mark"]


def a_limit_of_another(self, world):
    """changed | namespaces seccomp"""
    resource.prlimit(world["victim"], resource.RLIMIT_CPU, (1000, 1000))


def the_priority_of_another(self, world):
    """changed | namespaces seccomp privileges"""
    os.setpriority(os.PRIO_PROCESS, world["victim"], 5)


def the_processors_of_another(self, world):
    """changed | namespaces seccomp privileges"""
    os.sched_setaffinity(world["victim"], [sorted(os.sched_getaffinity(0))[0]])


def the_advice_on_memory_of_another(self, world):
    """said: it is advice | namespaces seccomp privileges"""
    vector = (ctypes.c_void_p * 2)(world["address"] & ~4095, 4096)
    raw(440, os.pidfd_open(world["victim"]), ctypes.byref(vector), 1, 21, 0)
    return world["mark"]


def the_pages_of_another(self, world):
    """said: nothing is moved | namespaces landlock seccomp privileges"""
    raw(279, world["victim"], 0, 0, 0, 0, 0)
    return world["mark"]


def the_robust_list_of_another(self, world):
    """said: an address | namespaces landlock seccomp privileges"""
    raw(274, world["victim"], ctypes.create_string_buffer(8), ctypes.create_string_buffer(8))
    return world["mark"]


def kill_the_victim_by_its_number_alone(self, world):
    """dead | namespaces landlock seccomp"""
    raw(200, world["victim"], signal.SIGKILL)
    time.sleep(0.1)


def kill_the_victim_by_a_queue_of_its_thread(self, world):
    """dead | namespaces landlock seccomp"""
    information = ctypes.create_string_buffer(128)
    ctypes.memmove(information, (ctypes.c_int * 3)(signal.SIGKILL, 0, -1), 12)
    raw(297, world["victim"], world["victim"], signal.SIGKILL, information)
    time.sleep(0.1)


def the_limits_of_the_host(self, world):
    """said: they are set to what they are | seccomp"""
    limits = (ctypes.c_uint64 * 2)()
    raw(302, world["host"], resource.RLIMIT_NOFILE, None, ctypes.byref(limits))
    raw(302, world["host"], resource.RLIMIT_NOFILE, ctypes.byref(limits), None)
    return world["mark"]


def the_turn_of_another(self, world):
    """said: of its status nothing tells it | namespaces seccomp privileges"""
    raw(144, world["victim"], 3, (ctypes.c_int * 1)(0))
    return world["mark"]


def the_turn_of_another_by_the_newer_call(self, world):
    """said: of its status nothing tells it | namespaces seccomp privileges"""
    raw(314, world["victim"], (ctypes.c_uint32 * 12)(48, 3), 0)
    return world["mark"]


def the_reading_of_another(self, world):
    """said: of its status nothing tells it | namespaces seccomp privileges"""
    raw(251, 1, world["victim"], 2 << 13 | 7)
    return world["mark"]

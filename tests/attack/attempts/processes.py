# Attackers write neither types nor paths by the book; these modules are data that workers run.
# mypy: ignore-errors
# ruff: noqa: SIM115
"""Attempts on processes: start, signal, trace and outlive."""

import ctypes
import fcntl
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)


def _raw(number: int, *arguments: object) -> int:
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def fork_a_process(world: dict) -> str:
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    return world["mark"]


def fork_by_the_raw_call(world: dict) -> str:
    if _raw(57) == 0:
        time.sleep(30)
        os._exit(0)
    return world["mark"]


def fork_by_vfork_like_clone(world: dict) -> str:
    if _raw(56, 17, 0, 0, 0, 0) == 0:
        time.sleep(30)
        os._exit(0)
    return world["mark"]


def fork_by_clone3(world: dict) -> str:
    arguments = (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17, 0, 0, 0)
    if _raw(435, ctypes.byref(arguments), 64) == 0:
        time.sleep(30)
        os._exit(0)
    return world["mark"]


def run_a_shell(world: dict) -> str:
    subprocess.run(["/bin/sh", "-c", f"echo x > {world['open_folder']}/written"], check=True)
    return world["mark"]


def run_by_system(world: dict) -> None:
    os.system(f"echo x > {world['open_folder']}/written")


def become_another_program(world: dict) -> None:
    os.execv("/bin/sh", ["sh", "-c", f"echo x > {world['open_folder']}/written"])


def become_a_program_in_memory(world: dict) -> str:
    descriptor = os.memfd_create("program")
    os.write(descriptor, b"#!/bin/sh\n")
    os.execve(descriptor, ["program"], {})
    return world["mark"]


def start_by_multiprocessing(world: dict) -> str:
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(30,))
    process.start()
    return world["mark"]


def become_a_daemon(world: dict) -> str:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(30)
        os._exit(0)
    return world["mark"]


def kill_the_victim(world: dict) -> None:
    os.kill(world["victim"], signal.SIGKILL)


def kill_the_host(world: dict) -> None:
    os.kill(world["host"], signal.SIGTERM)


def kill_the_parent(world: dict) -> str:
    os.kill(os.getppid(), signal.SIGKILL)
    return world["mark"]


def kill_everything(world: dict) -> str:
    os.kill(-1, signal.SIGKILL)
    return world["mark"]


def kill_by_a_descriptors_owner(world: dict) -> str:
    reader, writer = os.pipe()
    fcntl.fcntl(reader, 10, signal.SIGKILL)
    fcntl.fcntl(reader, fcntl.F_SETOWN, world["victim"])
    fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(writer, b"x")
    return world["mark"]


def kill_by_pidfd(world: dict) -> str:
    signal.pidfd_send_signal(os.pidfd_open(world["victim"]), signal.SIGKILL)
    return world["mark"]


def steal_a_descriptor_of_the_victim(world: dict) -> str:
    _raw(438, os.pidfd_open(world["victim"]), 0, 0)
    return world["mark"]


def trace_the_victim(world: dict) -> str:
    _raw(101, 16, world["victim"], 0, 0)
    return world["mark"]


def read_the_memory_of_the_victim(world: dict) -> str:
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    _raw(310, world["victim"], ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0)
    return world["mark"]


def write_the_memory_of_the_parent(world: dict) -> str:
    Path(f"/proc/{os.getppid()}/mem").open("r+b").write(b"x")
    return world["mark"]


def leave_a_thread_behind(world: dict) -> str:
    def later() -> None:
        while True:
            time.sleep(0.01)
            try:
                Path(world["open_folder"], "late").write_text("x")
            except OSError:
                continue

    threading.Thread(target=later, daemon=True).start()
    return "started"


def stop_oneself(world: dict) -> str:
    os.kill(os.getpid(), signal.SIGSTOP)
    return "went on"


def raise_the_priority(world: dict) -> str:
    os.nice(-5)
    return world["mark"]

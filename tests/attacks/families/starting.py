# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""starting its own processes: fork, exec, daemons"""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from functions.hand import ctypes, multiprocessing, pty, raw


def _stay(world, child):
    """The child names itself after the mark, so that it is found, and stays a while."""
    if child == 0:
        ctypes.CDLL(None).prctl(15, world["name"].encode(), 0, 0, 0)
        time.sleep(world["stays_s"])
        os._exit(0)
    time.sleep(0.1)
    return world["mark"]


def fork(self, world):
    """process | seccomp"""
    return _stay(world, os.fork())


def fork_by_the_raw_call(self, world):
    """process | seccomp"""
    return _stay(world, raw(57))


def fork_by_clone(self, world):
    """process | seccomp"""
    return _stay(world, raw(56, 17, 0, 0, 0, 0))


def fork_by_clone_with_flags_of_a_thread_left_out(self, world):
    """process | seccomp"""
    return _stay(world, raw(56, 0x200 | 17, 0, 0, 0, 0))


def fork_by_clone3(self, world):
    """process | seccomp"""
    arguments = (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17, 0, 0, 0)
    return _stay(world, raw(435, ctypes.byref(arguments), 64))


def fork_for_a_terminal(self, world):
    """process | namespaces landlock seccomp"""
    return _stay(world, pty.fork()[0])


def fork_without_end(self, world):
    """process | seccomp"""
    for _number in range(30):
        child = os.fork()
        if child == 0:
            _stay(world, 0)
    time.sleep(0.1)
    return world["mark"]


def become_a_daemon(self, world):
    """process | seccomp"""
    if os.fork() == 0:
        os.setsid()
        _stay(world, os.fork())
        os._exit(0)
    time.sleep(0.1)
    return world["mark"]


def run_a_shell(self, world):
    """changed | namespaces landlock seccomp"""
    subprocess.run(["/bin/sh", "-c", f"echo x > {world['open_folder']}/written"], check=True)


def run_by_system(self, world):
    """changed | namespaces landlock seccomp"""
    os.system(f"echo x > {world['open_folder']}/written")


def run_by_spawn(self, world):
    """changed | namespaces landlock seccomp"""
    os.posix_spawn("/bin/sh", ["sh", "-c", f"echo x > {world['open_folder']}/written"], {})
    time.sleep(0.1)


def run_by_popen_of_c(self, world):
    """changed | namespaces landlock seccomp"""
    ctypes.CDLL(None).popen(f"echo x > {world['open_folder']}/written".encode(), b"r")
    time.sleep(0.1)


def become_another_program(self, world):
    """changed | namespaces landlock seccomp"""
    os.execv("/bin/sh", ["sh", "-c", f"echo x > {world['open_folder']}/written"])


def become_a_program_by_its_folder(self, world):
    """changed | namespaces landlock seccomp"""
    folder = os.open("/bin", os.O_PATH)
    arguments = (ctypes.c_char_p * 4)(
        b"sh", b"-c", f"echo x > {world['open_folder']}/written".encode(), None
    )
    raw(322, folder, b"sh", arguments, None, 0)


def become_a_program_in_memory(self, world):
    """changed | namespaces landlock seccomp"""
    descriptor = raw(319, b"x", 0)
    os.write(descriptor, Path("/bin/sh").read_bytes())
    os.execve(descriptor, ["sh", "-c", f"echo x > {world['open_folder']}/written"], {})


def become_a_program_in_scratch(self, world):
    """changed | namespaces landlock seccomp"""
    Path("mine").write_bytes(Path("/bin/sh").read_bytes())
    Path("mine").chmod(0o755)
    os.execv("mine", ["sh", "-c", f"echo x > {world['open_folder']}/written"])


def become_a_program_by_the_loader(self, world):
    """changed | namespaces landlock seccomp"""
    loader = "/lib64/ld-linux-x86-64.so.2"
    os.execv(loader, [loader, "/bin/sh", "-c", f"echo x > {world['open_folder']}/written"])


def start_by_multiprocessing(self, world):
    """said: the child ends at once | seccomp"""
    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    return world["mark"]


def start_by_a_server_of_forks(self, world):
    """said: the child ends at once | namespaces landlock seccomp"""
    process = multiprocessing.get_context("forkserver").Process(target=int)
    process.start()
    return world["mark"]


def fork_and_be_forgotten(self, world):
    """process | seccomp"""
    if os.fork() == 0:
        if os.fork() == 0:
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 200)
            _stay(world, 0)
        os._exit(0)
    time.sleep(0.1)
    return world["mark"]


def fork_a_sibling(self, world):
    """process | seccomp"""
    return _stay(world, raw(56, 0x8000 | 17, 0, 0, 0, 0))


def fork_in_a_thread(self, world):
    """process | seccomp"""
    thread = threading.Thread(target=lambda: _stay(world, os.fork()))
    thread.start()
    thread.join()
    time.sleep(0.1)


def fork_when_a_signal_comes(self, world):
    """process | seccomp"""
    signal.signal(signal.SIGALRM, lambda *_frame: _stay(world, os.fork()))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.2)
    return world["mark"]


def fork_after_whoever_is_forked(self, world):
    """apart: nobody is forked from a worker; it is from a process that imports packages"""
    os.register_at_fork(after_in_parent=lambda: _stay(world, os.fork()))
    return "it will"


def fork_before_it_is_confined(self, world):
    """apart: a worker is confined already; one that is forked from a process that imported packages is not yet"""
    os.register_at_fork(after_in_child=lambda: _stay(world, os.fork()))
    return "it will"

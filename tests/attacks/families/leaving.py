# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH102, PTH211
"""leaving traps for the host in scratch: links, pipes, sockets, devices, closed and endless folders"""

import os
import socket
from pathlib import Path

from functions.hand import look


def a_link(self, world):
    """worker: a link in scratch | landlock seccomp"""
    os.symlink("/etc/passwd", "innocent")
    look(self, "cwd", "innocent")


def a_hard_link_to_a_file_outside(self, world):
    """changed | namespaces landlock seccomp"""
    os.link(world["writable"], world["open_folder"] + "/hard")


def a_hard_link_within_scratch(self, world):
    """worker: two names | seccomp"""
    Path("one").write_text("x")
    os.link("one", "other")
    look(self, "cwd", "other")


def a_pipe(self, world):
    """worker: a pipe in scratch | landlock seccomp"""
    os.mkfifo("pipe")
    look(self, "cwd", "pipe")


def a_socket(self, world):
    """worker: a socket in scratch | landlock seccomp"""
    socket.socket(socket.AF_UNIX).bind("socket")
    look(self, "cwd", "socket")


def a_block_device(self, world):
    """worker: a device in scratch | landlock seccomp privileges"""
    os.mknod("disk", 0o60666, os.makedev(254, 0))
    look(self, "cwd", "disk")


def a_character_device(self, world):
    """worker: a device in scratch | landlock seccomp privileges"""
    os.mknod("memory", 0o20666, os.makedev(1, 1))
    look(self, "cwd", "memory")


def a_thread_that_goes_on_writing(self, world):
    """apart: the process ends with its call, whatever is left in it; writing outside is another row"""
    import threading
    import time

    def later():
        while True:
            time.sleep(0.01)
            try:
                Path(world["open_folder"], "late").write_text("x")
            except OSError:
                continue

    threading.Thread(target=later, daemon=True).start()
    return "started"


def folders_without_end(self, world):
    """next | worker"""
    for _number in range(300):
        os.mkdir("d")
        os.chdir("d")
    os.chdir("/".join([".."] * 300))


def folders_that_cannot_be_opened(self, world):
    """next | worker"""
    os.makedirs("a/b/c")  # noqa: PTH103
    os.mkdir("closed", 0)


def names_that_are_no_text(self, world):
    """next | worker"""
    for name in (b"\xff\xfe", b"new\nline", b"\x1b[2J", b"-rf", b"a" * 255):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))

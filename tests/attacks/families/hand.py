# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""What attempts have in common; no attempt itself."""

import gc
import importlib
import json
import os
import random
import signal
import sys
import threading


class Absent:
    """A module that this Python was built without: whatever is called of it is refused."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        return Absent(f"{self._name}.{name}")

    def __call__(self, *_arguments, **_more):
        raise OSError(f"there is no {self._name} here")


def _there(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return Absent(name)


ctypes, fcntl, mmap, multiprocessing, pty, resource = map(
    _there, ("ctypes", "fcntl", "mmap", "multiprocessing", "pty", "resource")
)
try:
    LIBC = ctypes.CDLL(None, use_errno=True)
except OSError:
    LIBC = Absent("ctypes.CDLL")
LIBC.syscall.restype = ctypes.c_long


def raw(number, *arguments):
    """A system call by its number."""
    wide = [
        ctypes.c_ulong(each & (1 << 64) - 1) if isinstance(each, int) else each
        for each in arguments
    ]
    result = LIBC.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def look(self, at, has):
    """Have the host look at this process from outside: /proc/<pid>/<at> holds what matches `has`."""
    self.call("look", at=at, has=has)


def state():
    """What one call could have left for the next."""
    return {
        "sum": sum([1, 2]),
        "json": json.dumps([1]),
        "files": sorted(os.listdir(".")),  # noqa: PTH208
        "threads": threading.active_count(),
        "environment": os.environ.get("LEFT"),
        "module": "left" in sys.modules,
        "finders": len(sys.meta_path),
        "path": len(sys.path),
        "depth": sys.getrecursionlimit(),
        "signal": str(signal.getsignal(signal.SIGTERM)),
        "alarm": hasattr(signal, "alarm") and signal.alarm(0) > 0,
        "mask": hasattr(os, "umask") and os.umask(0o77),
        "folder": os.path.basename(os.getcwd()).isdigit(),  # noqa: PTH109, PTH119
        "random": random.Random is random.SystemRandom or random.random() == 0.13436424411240122,
        "collects": gc.isenabled(),
        "trace": sys.gettrace() is None,
        "descriptors": _open(),
    }


def _open():
    found = 0
    for number in range(64):
        try:
            os.fstat(number)
        except OSError:
            continue
        found += 1
    return found

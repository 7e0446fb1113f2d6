# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""using memory, threads and descriptors without end"""

import os
import threading
import time

from functions.hand import ctypes

MORE = r"VmSize:\s+[1-9]\d{6,} kB"  # a gigabyte and more


def all_at_once(self, world):
    """worker: its size | limits"""
    kept = bytearray(2 << 30)
    self.call("look", at="status", has=MORE)
    return len(kept)


def in_pieces(self, world):
    """worker: its size | limits"""
    kept = [bytearray(1 << 20) for _number in range(1200)]
    self.call("look", at="status", has=MORE)
    return len(kept)


def by_the_library_of_c(self, world):
    """worker: its size | limits"""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    if not libc.malloc(ctypes.c_size_t(2 << 30)):
        raise MemoryError
    self.call("look", at="status", has=MORE)


def by_reserving_only(self, world):
    """worker: its size | limits"""
    from functions.hand import mmap

    kept = mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | 0x4000)
    self.call("look", at="status", has=MORE)
    return len(kept)


def by_one_long_text(self, world):
    """worker: its size | limits"""
    kept = "x" * (2 << 30)
    self.call("look", at="status", has=MORE)
    return len(kept)


def by_what_is_unpacked(self, world):
    """worker: its size | limits"""
    import zlib

    packer = zlib.compressobj(1)
    bomb = b"".join([packer.compress(bytes(1 << 20)) for _number in range(100)]) + packer.flush()
    kept = [zlib.decompress(bomb) for _number in range(12)]
    self.call("look", at="status", has=MORE)
    return len(kept)


def threads_without_end(self, world):
    """worker: its threads | namespaces limits | core leaks: where there is no control group, memory alone ends them"""
    threading.stack_size(64 << 10)
    for _number in range(1500):
        threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
    self.call("look", at="status", has=r"Threads:\s+1[4-9]\d\d")


def threads_with_large_stacks(self, world):
    """worker: its size | limits"""
    threading.stack_size(256 << 20)
    for _number in range(8):
        threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start()
    self.call("look", at="status", has=MORE)


def files_opened_without_end(self, world):
    """worker: its descriptors | limits"""
    for _number in range(300):
        os.open("/dev/null", os.O_RDONLY)
    self.call("look", at="fd", has="(?:[^\n]*\n){250}")


def pipes_without_end(self, world):
    """worker: its descriptors | limits"""
    for _number in range(150):
        os.pipe()
    self.call("look", at="fd", has="(?:[^\n]*\n){250}")


def recurse_in_c(self, world):
    """apart: a process can always end itself; the host goes on"""
    nested = []
    for _depth in range(200_000):
        nested = [nested]
    return repr(nested)


def recurse_without_a_limit(self, world):
    """apart: a process can always end itself; the host goes on"""
    import sys

    sys.setrecursionlimit(10**9)

    def deeper():
        return [deeper()]

    return deeper()


def crash_on_purpose(self, world):
    """apart: a process can always end itself; the host goes on"""
    ctypes.string_at(0)


def leave_a_picture_of_memory(self, world):
    """apart: the limit may be at nothing on the machine itself"""
    self.call("look", at="limits", has=r"Max core file size\s+[1-9u]")

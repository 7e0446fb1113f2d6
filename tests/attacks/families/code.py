# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH100
"""running its own machine code"""

import os
from pathlib import Path

from functions.hand import ctypes, mmap, raw

FORTY_TWO = b"\xb8\x2a\0\0\0\xc3"


def _run(address, world):
    return world["mark"] if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 42 else "no"


def _library():
    return next(
        Path(each, "libz.so.1")
        for each in ("/lib/x86_64-linux-gnu", "/usr/lib64")
        if Path(each).exists()
    )


def a_page_that_can_be_written_and_run(self, world):
    """said: 42 | seccomp"""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(FORTY_TWO)
    return _run(ctypes.addressof(ctypes.c_char.from_buffer(page)), world)


def data_made_into_code(self, world):
    """said: 42 | seccomp"""
    page = mmap.mmap(-1, 4096)
    page.write(FORTY_TWO)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    raw(10, address, 4096, 5)
    return _run(address, world)


def data_made_into_code_by_a_key(self, world):
    """said: 42 | seccomp"""
    page = mmap.mmap(-1, 4096)
    page.write(FORTY_TWO)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    raw(329, address, 4096, 5, -1)
    return _run(address, world)


def the_stack_made_into_code(self, world):
    """said: it may be run | seccomp"""
    buffer = ctypes.create_string_buffer(8192)
    raw(10, (ctypes.addressof(buffer) + 4095) & ~4095, 4096, 7)
    return world["mark"]


def two_views_of_one_piece_of_memory(self, world):
    """said: 42 | seccomp"""
    file = raw(319, b"code", 0)
    os.write(file, FORTY_TWO + bytes(4090))
    return _run(raw(9, 0, 4096, 5, 1, file, 0), world)


def all_that_can_be_read_can_be_run(self, world):
    """worker: its personality | seccomp"""
    raw(135, 0x400000)
    self.call("look", at="personality", has="0*400000")


def a_library_of_ones_own(self, world):
    """said: it is loaded | namespaces seccomp

    | ahead core leaks: a package may be native, so files may be mapped as code, and no mount distinguishes them
    """
    Path("own.so").write_bytes(_library().read_bytes())
    ctypes.CDLL(os.path.abspath("own.so"))
    return world["mark"]


def an_extension_of_ones_own(self, world):
    """said: it is loaded | namespaces seccomp

    | ahead core leaks: a package may be native, so files may be mapped as code, and no mount distinguishes them
    """
    import importlib.util

    Path("own.so").write_bytes(_library().read_bytes())
    spec = importlib.util.spec_from_file_location("own", os.path.abspath("own.so"))
    try:
        importlib.util.module_from_spec(spec)
    except ImportError as error:
        return world["mark"] if "PyInit" in str(error) else str(error)
    return world["mark"]


def code_mapped_from_scratch(self, world):
    """said: 42 | namespaces seccomp

    | ahead core leaks: a package may be native, so files may be mapped as code, and no mount distinguishes them
    """
    Path("code").write_bytes(FORTY_TWO + bytes(4090))
    return _run(raw(9, 0, 4096, 5, 2, os.open("code", os.O_RDONLY), 0), world)


def a_library_from_outside(self, world):
    """said: it is loaded | namespaces landlock seccomp"""
    ctypes.CDLL(world["library"])
    return world["mark"]


def a_call_back(self, world):
    """apart: libffi has pages of its own for it; no machine code of the function's is made"""
    return ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 42)()


def a_call_of_thirty_two_bits(self, world):
    """said: a number of a process | seccomp"""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\0\0\0\xcd\x80\xc3")
    number = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    return world["mark"] if number > 0 else str(number)

"""System calls that the standard library does not offer, each checked."""

import ctypes
import os
from typing import Final, TypeAlias

Argument: TypeAlias = int | bytes | ctypes.c_void_p | None

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def syscall(operation: str, number: int, *arguments: Argument) -> int:
    """Return the result of a raw system call. Raise OSError naming `operation` if it fails."""
    return _check(
        operation,
        _libc.syscall(ctypes.c_long(number), *[_wide(argument) for argument in arguments]),
    )


def prctl(operation: str, option: int, *arguments: Argument) -> int:
    """Return the result of prctl. Raise OSError naming `operation` if it fails."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    return _check(
        operation, _libc.prctl(ctypes.c_int(option), *[_wide(argument) for argument in padded])
    )


def _wide(argument: Argument) -> object:
    # ctypes passes a bare int as 32 bits; the kernel reads 64.
    return ctypes.c_ulong(argument) if isinstance(argument, int) else argument


def _check(operation: str, result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{operation}: {os.strerror(error)}")
    return result

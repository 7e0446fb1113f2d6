"""The system calls that a worker may make: a short list, everything else is refused.

Refused calls answer EPERM, so that Python raises PermissionError and the function's own frames
say where. A call of another architecture kills the process. The list is searched by halves,
because the kernel runs the filter once for every call number when it is put on.
"""

import ctypes
import errno
from typing import Final

from .assembler import AND, ANY_BIT, AT_LEAST, EQUAL, LOAD, RETURN, Program
from .calls import Calls, here
from .kernel import PR_SET_SECCOMP, prctl

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
_MODE_FILTER: Final = 2
_NUMBER, _ARCHITECTURE_AT = 0, 4

_CLONE_NEEDS: Final = 0x100 | 0x800 | 0x10000  # VM, SIGHAND, THREAD: a thread and no process
_CLONE_NEVER: Final = 0x7E020000 | 0x80  # every CLONE_NEW*
_PROT_WRITE, _PROT_EXEC, _MAP_ANONYMOUS = 2, 4, 0x20
_IOCTLS: Final = {"FIOCLEX": 0x5451, "FIONCLEX": 0x5450, "FIONBIO": 0x5421}
_FCNTLS: Final = ((0, 8), (36, 39), (1030, 1031))  # duplicate, flags, locks · locks of open files · duplicate
_RUNS_AS_ITS_OWNER: Final = 0o6000
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPES = 1, 1, 0xF


def refuse(error: int) -> int:
    """The verdict that makes a call fail with this error number."""
    return 0x00050000 | error


def build(*, executable_files: bool, calls: Calls | None = None) -> bytes:
    """The filter, for this machine or the one whose calls are given.

    With `executable_files`, code may be mapped from files (not from memory, not writable). That is
    for a root in which nothing can be both written and mapped for execution, and lets functions
    import extension modules; without it no new page becomes executable.
    """
    calls = calls or here()
    program = _begun(calls)
    for name, number in calls.checked.items():
        program.test(EQUAL, number, yes=name)
    _search(program, _ranges(sorted(calls.free.values())))
    _threads_only(program)
    _no_new_code(program, executable_files=executable_files)
    _own_files_only(program)
    _plain_files_only(program, calls)
    _unnamed_sockets_only(program)
    for name, verdict in _VERDICTS.items():
        program.label(name)
        program.add(RETURN, verdict)
    return program.assemble()


def build_ahead(calls: Calls | None = None) -> bytes:
    """A filter for a zygote that imports packages: it forks and confines workers, and reaches nobody else."""
    calls = calls or here()
    program = _begun(calls)
    for number in calls.never_ahead.values():
        program.test(EQUAL, number, yes="EPERM")
    for name in ("allow", "EPERM", "kill"):
        program.label(name)
        program.add(RETURN, _VERDICTS[name])
    return program.assemble()


def _begun(calls: Calls) -> Program:
    """The beginning of a filter: calls of another kind end the process, else the number is loaded."""
    program = Program()
    program.add(LOAD, _ARCHITECTURE_AT)
    program.test(EQUAL, calls.architecture, no="kill")
    program.add(LOAD, _NUMBER)
    if calls.first_x32 is not None:
        program.test(AT_LEAST, calls.first_x32, yes="kill")
    return program


_VERDICTS: Final = {
    "kill": KILL,
    "allow": ALLOW,
    "EPERM": refuse(errno.EPERM),
    "clone3": refuse(errno.ENOSYS),  # its flags are out of a filter's sight; glibc then falls back to clone
    "ENOTTY": refuse(errno.ENOTTY),
}


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """Neighbouring numbers as (first, past the last)."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return found


def _search(program: Program, ranges: list[tuple[int, int]], name: str = "half") -> None:
    """Jump to `allow` where the loaded number is in a range, else to `EPERM`."""
    if len(ranges) == 1:
        (first, end) = ranges[0]
        program.test(AT_LEAST, first, no="EPERM")
        program.test(AT_LEAST, end, yes="EPERM", no="allow")
        return
    middle = len(ranges) // 2
    program.test(AT_LEAST, ranges[middle][0], yes=f"{name}+")
    _search(program, ranges[:middle], f"{name}-")
    program.label(f"{name}+")
    _search(program, ranges[middle:], f"{name}+")


def _argument(index: int, *, high: bool = False) -> int:
    return 16 + 8 * index + (4 if high else 0)


def _threads_only(program: Program) -> None:
    program.label("clone")
    program.add(LOAD, _argument(0))
    program.add(AND, _CLONE_NEEDS | _CLONE_NEVER)
    program.test(EQUAL, _CLONE_NEEDS, yes="allow", no="EPERM")


def _no_new_code(program: Program, *, executable_files: bool) -> None:
    program.label("mprotect")
    program.add(LOAD, _argument(2))
    program.test(ANY_BIT, _PROT_EXEC, yes="EPERM", no="allow")
    program.label("mmap")
    program.add(LOAD, _argument(2))
    program.test(ANY_BIT, _PROT_EXEC, no="allow", yes="" if executable_files else "EPERM")
    if executable_files:
        program.test(ANY_BIT, _PROT_WRITE, yes="EPERM")
        program.add(LOAD, _argument(3))
        program.test(ANY_BIT, _MAP_ANONYMOUS, yes="EPERM", no="allow")


def _own_files_only(program: Program) -> None:
    program.label("ioctl")
    program.add(LOAD, _argument(1))
    for request in _IOCTLS.values():
        program.test(EQUAL, request, yes="allow")
    program.add(RETURN, _VERDICTS["ENOTTY"])
    # Not F_SETOWN and F_SETSIG: through them the kernel sends any signal to any process of this user.
    program.label("fcntl")
    program.add(LOAD, _argument(1))
    for first, end in _FCNTLS:
        program.test(AT_LEAST, first, no="EPERM")
        program.test(AT_LEAST, end, no="allow")
    program.add(RETURN, _VERDICTS["EPERM"])
    program.label("prlimit64")  # only to read one's own limits
    for index in (0, 2):
        for high in (False, True):
            program.add(LOAD, _argument(index, high=high and index == 2))
            program.test(EQUAL, 0, no="EPERM")
    program.add(RETURN, ALLOW)


def _plain_files_only(program: Program, calls: Calls) -> None:
    """No new file that runs as its owner: in a granted folder that would be somebody outside."""
    for name, mode in (("open", 2), ("openat", 3)):
        if name in calls.checked:
            program.label(name)
            program.add(LOAD, _argument(mode))
            program.test(ANY_BIT, _RUNS_AS_ITS_OWNER, yes="EPERM", no="allow")


def _unnamed_sockets_only(program: Program) -> None:
    program.label("socketpair")  # asyncio wakes itself through one
    program.add(LOAD, _argument(0))
    program.test(EQUAL, _AF_UNIX, no="EPERM")
    program.add(LOAD, _argument(1))
    program.add(AND, _SOCK_TYPES)
    program.test(EQUAL, _SOCK_STREAM, yes="allow", no="EPERM")
    program.label("sendto")  # never to an address
    for high in (False, True):
        program.add(LOAD, _argument(4, high=high))
        program.test(EQUAL, 0, no="EPERM")
    program.add(RETURN, ALLOW)


class _Header(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A filter in memory as the kernel wants it; made in the zygote, put on in each worker."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        self._header = _Header(len(program) // 8, ctypes.addressof(self._program))
        self._address = ctypes.addressof(self._header)

    def restrict(self) -> None:
        """Put it on this process, for good. Last of the layers: it denies what the others need."""
        prctl("seccomp", PR_SET_SECCOMP, _MODE_FILTER, self._address)

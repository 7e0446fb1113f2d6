"""The system calls that a worker, or a zygote that imports packages, may make: a short list; all others are refused.

Refused calls return EPERM, so that Python raises PermissionError in function code. A call of another architecture kills
the process. The filter is a binary search, assembled with labels instead of offsets: a jump that is too far is an error
when the filter is built.
"""

import ctypes
import errno
import signal
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .calls import SyscallTable, native_calls, number
from .kernel import PR_SET_PDEATHSIG, PR_SET_SECCOMP, prctl, syscall

LOAD: Final = 0x20  # a word of the system call's data, at offset k
AND: Final = 0x54
EQUAL: Final = 0x15
AT_LEAST: Final = 0x35
ANY_BIT: Final = 0x45
RETURN: Final = 0x06
_FALL_THROUGH: Final = ""
_FAR: Final = 255


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    operand: int
    yes: str = _FALL_THROUGH
    no: str = _FALL_THROUGH


@dataclass(slots=True)
class Program:
    """A BPF program under construction. `assemble` returns its bytes."""

    _instructions: list[_Instruction] = field(default_factory=list)
    _labels: dict[str, int] = field(default_factory=dict)

    def add(self, code: int, operand: int) -> None:
        """Add one instruction that does not jump."""
        self._instructions.append(_Instruction(code, operand))

    def test(
        self, code: int, operand: int, yes: str = _FALL_THROUGH, no: str = _FALL_THROUGH
    ) -> None:
        """Add a comparison that continues at `yes` or at `no`. An empty label is the next instruction."""
        self._instructions.append(_Instruction(code, operand, yes, no))

    def label(self, name: str) -> None:
        """Name the next instruction."""
        if name in self._labels:
            raise ValueError(f"label {name} is used twice")
        self._labels[name] = len(self._instructions)

    def assemble(self) -> bytes:
        """Return the program in the kernel's format."""
        return b"".join(
            self._encode(at, instruction) for at, instruction in enumerate(self._instructions)
        )

    def _encode(self, at: int, instruction: _Instruction) -> bytes:
        yes, no = self._distance(at, instruction.yes), self._distance(at, instruction.no)
        return struct.pack("=HBBI", instruction.code, yes, no, instruction.operand)

    def _distance(self, at: int, label: str) -> int:
        if label == _FALL_THROUGH:
            return 0
        distance = self._labels[label] - at - 1
        if not 0 <= distance <= _FAR:
            raise ValueError(f"the jump from {at} to {label} does not reach: {distance}")
        return distance


ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
ASK: Final = 0x7FC00000  # the listener decides
_MODE_FILTER: Final = 2
_SET_FILTER, _AND_LISTEN = 1, 8
_NUMBER, _ARCHITECTURE_AT = 0, 4

_CLONE_NEEDS: Final = 0x100 | 0x800 | 0x10000  # VM, SIGHAND, THREAD: a thread, not a process
_CLONE_NEVER: Final = 0x7E020000 | 0x80  # every CLONE_NEW*
_CLONE_TELLS: Final = (
    0x200000 | 0x1000000
)  # CHILD_CLEARTID, CHILD_SETTID: used by the C library for a fork
_ALL_BITS: Final = 0xFFFFFFFF
_PROT_WRITE, _PROT_EXEC, _MAP_ANONYMOUS = 2, 4, 0x20
_IOCTLS: Final = {"FIOCLEX": 0x5451, "FIONCLEX": 0x5450, "FIONBIO": 0x5421}
_FCNTLS: Final = (
    (0, 8),
    (36, 39),
    (1030, 1031),
)  # duplicate, flags, locks · locks of open files · duplicate
_RUNS_AS_ITS_OWNER: Final = 0o6000
_OPEN_TO_ITS_OWNER: Final = 0o700
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPES = 1, 1, 5, 0xF
_AF_INET, _AF_INET6, _AF_NETLINK, _NETLINK_ROUTE = 2, 10, 16, 0


def refuse(error: int) -> int:
    """Return the filter's verdict that makes a call fail with this errno."""
    return 0x00050000 | error


def build(*, executable_files: bool, table: SyscallTable | None = None) -> bytes:
    """Return the filter of a worker for this machine, or for the one of the table.

    With `executable_files`, code may be mapped from files (not from memory, not writable), so that functions can import
    extension modules. That requires a root in which nothing is both writable and executable. Without it, no new page
    can become executable.
    """
    table = table or native_calls()
    program = _begin_filter(table, table.checked, table.free)
    _threads_only(program, processes="EPERM")
    _as_a_worker(program, table, executable_files=executable_files)
    _own_limits_only(program, may_set=False)
    return _end_filter(program)


def build_ahead(table: SyscallTable | None = None) -> bytes:
    """Return the filter of a zygote that imports packages: a worker's filter plus calls to fork and confine workers.

    The listener of the filter decides about each fork. Code may be mapped from files, because packages may be native.
    """
    table = table or native_calls()
    program = _begin_filter(
        table, {**table.checked, **table.checked_ahead}, {**table.free, **table.ahead}
    )
    _threads_only(program, processes="processes")
    # The listener decides about a plain fork: no namespace, no shared memory or parent, SIGCHLD at its end.
    program.label("processes")
    program.add(LOAD, _argument(0))
    program.add(AND, _ALL_BITS ^ _CLONE_TELLS)
    program.test(EQUAL, signal.SIGCHLD, no="EPERM")
    program.label("fork")
    program.add(RETURN, ASK)
    _as_a_worker(program, table, executable_files=True)
    _own_limits_only(program, may_set=True)
    # No new folders without rights for their owner, because a zygote with packages empties scratch without chmod.
    for name, mode in (("mkdir", 1), ("mkdirat", 2)):
        program.label(name)
        program.add(LOAD, _argument(mode))
        program.add(AND, _OPEN_TO_ITS_OWNER)
        program.test(EQUAL, _OPEN_TO_ITS_OWNER, yes="allow", no="EPERM")
    program.label("umask")
    program.add(LOAD, _argument(0))
    program.test(ANY_BIT, _OPEN_TO_ITS_OWNER, yes="EPERM", no="allow")
    program.label("prctl")  # only to add a filter, and to be killed when the parent ends
    program.add(LOAD, _argument(0))
    program.test(EQUAL, PR_SET_SECCOMP, yes="allow")
    program.test(EQUAL, PR_SET_PDEATHSIG, no="EPERM")
    program.add(LOAD, _argument(1))
    program.test(EQUAL, signal.SIGKILL, yes="allow", no="EPERM")
    return _end_filter(program)


def build_for_network(table: SyscallTable | None = None) -> bytes:
    """Return the filter of a program that may use the network, but none of the sockets of its user's session.

    Landlock's rules on files do not cover a connection to a socket. So the program gets sockets of the network, that by
    which the C library asks for this machine's addresses, and pairs that cannot be connected elsewhere. Queues of
    io_uring could make any socket.
    """
    table = table or native_calls()
    program = Program()
    program.add(LOAD, _ARCHITECTURE_AT)
    program.test(EQUAL, table.architecture, no="kill")
    program.add(LOAD, _NUMBER)
    if table.first_x32 is not None:
        program.test(AT_LEAST, table.first_x32, yes="kill")
    program.test(EQUAL, table.sockets["socket"], yes="socket")
    program.test(EQUAL, table.sockets["socketpair"], yes="pair")
    program.test(EQUAL, table.sockets["io_uring_setup"], yes="ENOSYS", no="allow")
    program.label("socket")
    program.add(LOAD, _argument(0))
    program.test(EQUAL, _AF_INET, yes="allow")
    program.test(EQUAL, _AF_INET6, yes="allow")
    program.test(EQUAL, _AF_NETLINK, no="EAFNOSUPPORT")
    program.add(LOAD, _argument(2))
    program.test(EQUAL, _NETLINK_ROUTE, yes="allow", no="EAFNOSUPPORT")
    program.label("pair")
    program.add(LOAD, _argument(0))
    program.test(EQUAL, _AF_UNIX, no="EAFNOSUPPORT")
    program.add(LOAD, _argument(1))
    program.add(AND, _SOCK_TYPES)
    program.test(EQUAL, _SOCK_STREAM, yes="allow")
    program.test(EQUAL, _SOCK_SEQPACKET, yes="allow", no="EAFNOSUPPORT")
    return _end_filter(program)


def _begin_filter(
    table: SyscallTable, checked: Mapping[str, int], free: Mapping[str, int]
) -> Program:
    """Return the start of a filter: calls of another kind kill the process, checked calls jump to their labels."""
    program = Program()
    program.add(LOAD, _ARCHITECTURE_AT)
    program.test(EQUAL, table.architecture, no="kill")
    program.add(LOAD, _NUMBER)
    if table.first_x32 is not None:
        program.test(AT_LEAST, table.first_x32, yes="kill")
    for name, call_number in checked.items():
        program.test(EQUAL, call_number, yes=name)
    ranges: list[tuple[int, int]] = []  # of consecutive numbers: the first, and the end
    for call_number in sorted(set(free.values()) - set(checked.values())):
        if ranges and ranges[-1][1] == call_number:
            ranges[-1] = (ranges[-1][0], call_number + 1)
        else:
            ranges.append((call_number, call_number + 1))
    _search(program, ranges)
    return program


def _as_a_worker(program: Program, table: SyscallTable, *, executable_files: bool) -> None:
    """Add the checks that workers and zygotes share."""
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
    program.label("ioctl")
    program.add(LOAD, _argument(1))
    for request in _IOCTLS.values():
        program.test(EQUAL, request, yes="allow")
    program.add(RETURN, _VERDICTS["ENOTTY"])
    # F_SETOWN and F_SETSIG stay denied: they make the kernel send any signal to any process of this user.
    program.label("fcntl")
    program.add(LOAD, _argument(1))
    for first, end in _FCNTLS:
        program.test(AT_LEAST, first, no="EPERM")
        program.test(AT_LEAST, end, no="allow")
    program.add(RETURN, _VERDICTS["EPERM"])
    # Deny new setuid and setgid files: in a granted folder, someone outside could run them.
    for name, mode in (("open", 2), ("openat", 3)):
        if name in table.checked:
            program.label(name)
            program.add(LOAD, _argument(mode))
            program.test(ANY_BIT, _RUNS_AS_ITS_OWNER, yes="EPERM", no="allow")
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


def _end_filter(program: Program) -> bytes:
    for name, verdict in _VERDICTS.items():
        program.label(name)
        program.add(RETURN, verdict)
    return program.assemble()


_VERDICTS: Final = {
    "kill": KILL,
    "allow": ALLOW,
    "EPERM": refuse(errno.EPERM),
    "clone3": refuse(
        errno.ENOSYS
    ),  # a filter cannot see its flags; on ENOSYS, glibc falls back to clone
    "ENOTTY": refuse(errno.ENOTTY),
    "ENOSYS": refuse(errno.ENOSYS),
    "EAFNOSUPPORT": refuse(errno.EAFNOSUPPORT),
}


def _search(program: Program, ranges: list[tuple[int, int]], name: str = "half") -> None:
    """Add a binary search: jump to `allow` if the loaded number is in a range, else to `EPERM`."""
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


def _threads_only(program: Program, *, processes: str) -> None:
    program.label("clone")
    program.add(LOAD, _argument(0))
    program.add(AND, _CLONE_NEEDS | _CLONE_NEVER)
    program.test(EQUAL, _CLONE_NEEDS, yes="allow", no=processes)


def _own_limits_only(program: Program, *, may_set: bool) -> None:
    """Allow reading the process's own limits and, for a zygote, setting limits for its workers."""
    program.label("prlimit64")
    for place in (_argument(0), *(() if may_set else (_argument(2), _argument(2, high=True)))):
        program.add(LOAD, place)
        program.test(EQUAL, 0, no="EPERM")
    program.add(RETURN, ALLOW)


class _Header(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A filter in the kernel's format, created in the zygote and installed in each worker."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        self._header = _Header(len(program) // 8, ctypes.addressof(self._program))
        self._address = ctypes.addressof(self._header)

    def restrict(self) -> None:
        """Install the filter on this process for good, as the last layer: it denies the calls of the other layers."""
        prctl("seccomp", PR_SET_SECCOMP, _MODE_FILTER, self._address)

    def restrict_and_listen(self) -> int:
        """Install the filter on this process for good. Return the descriptor of its listener."""
        return syscall("seccomp", number("seccomp"), _SET_FILTER, _AND_LISTEN, self._address)

"""The numbers of system calls on Linux, by machine: the allowed ones, and those whose arguments are checked.

Every other call is refused: fork, vfork, exec, every socket but an unnamed pair, sendmsg and recvmsg (they pass
descriptors), kill and similar ones, ptrace, prctl, chmod, chown, links, mknod, xattrs, mounts, memfd, io_uring, bpf,
keys, perf, userfaultfd, SysV memory, handles, clocks, modules. The aarch64 table has no open, stat, poll and fork
because the C library uses the newer calls.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SyscallTable:
    """One machine's table. `first_x32` is the first number of the x32 calls, if the machine has them.

    A zygote that imports packages may also use the calls in `ahead`, to fork and confine its workers, and those in
    `checked_ahead` with checked arguments. `setup` has the calls that apply layers, `canaries` those of the self-test,
    and `sockets` those that make a socket, directly or through a queue.
    """

    architecture: int
    first_x32: int | None
    checked: Mapping[str, int]
    free: Mapping[str, int]
    ahead: Mapping[str, int]
    checked_ahead: Mapping[str, int]
    setup: Mapping[str, int]
    canaries: Mapping[str, int]
    sockets: Mapping[str, int]


_X86_64_MEMORY: Final = {
    "munmap": 11,
    "brk": 12,
    "mremap": 25,
    "msync": 26,
    "madvise": 28,
    "membarrier": 324,
}
_X86_64_FILES: Final = {
    "read": 0,
    "write": 1,
    "close": 3,
    "stat": 4,
    "fstat": 5,
    "lstat": 6,
    "lseek": 8,
    "pread64": 17,
    "pwrite64": 18,
    "readv": 19,
    "writev": 20,
    "access": 21,
    "pipe": 22,
    "dup": 32,
    "dup2": 33,
    "sendfile": 40,
    "fsync": 74,
    "fdatasync": 75,
    "ftruncate": 77,
    "getdents": 78,
    "getcwd": 79,
    "chdir": 80,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "unlink": 87,
    "readlink": 89,
    "umask": 95,
    "statfs": 137,
    "fstatfs": 138,
    "getdents64": 217,
    "fadvise64": 221,
    "mkdirat": 258,
    "newfstatat": 262,
    "unlinkat": 263,
    "renameat": 264,
    "readlinkat": 267,
    "faccessat": 269,
    "fallocate": 285,
    "dup3": 292,
    "pipe2": 293,
    "renameat2": 316,
    "copy_file_range": 326,
    "statx": 332,
    "close_range": 436,
    "faccessat2": 439,
}
_X86_64_WAITING: Final = {
    "poll": 7,
    "select": 23,
    "sched_yield": 24,
    "nanosleep": 35,
    "alarm": 37,
    "setitimer": 38,
    "recvfrom": 45,
    "shutdown": 48,
    "futex": 202,
    "restart_syscall": 219,
    "epoll_wait": 232,
    "epoll_ctl": 233,
    "pselect6": 270,
    "ppoll": 271,
    "epoll_pwait": 281,
    "eventfd2": 290,
    "epoll_create1": 291,
}
_X86_64_ITSELF: Final = {
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "getpid": 39,
    "exit": 60,
    "uname": 63,
    "gettimeofday": 96,
    "getrlimit": 97,
    "getrusage": 98,
    "sysinfo": 99,
    "times": 100,
    "getuid": 102,
    "getgid": 104,
    "geteuid": 107,
    "getegid": 108,
    "getppid": 110,
    "getgroups": 115,
    "sigaltstack": 131,
    "gettid": 186,
    "time": 201,
    "sched_getaffinity": 204,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "set_robust_list": 273,
    "getrandom": 318,
    "rseq": 334,
}
_X86_64: Final = SyscallTable(
    architecture=0xC000003E,
    first_x32=0x40000000,
    checked={
        "open": 2,
        "mmap": 9,
        "mprotect": 10,
        "ioctl": 16,
        "sendto": 44,
        "socketpair": 53,
        "clone": 56,
        "fcntl": 72,
        "openat": 257,
        "prlimit64": 302,
        "clone3": 435,
    },
    free=_X86_64_MEMORY | _X86_64_FILES | _X86_64_WAITING | _X86_64_ITSELF,
    ahead={"sendmsg": 46, "wait4": 61, "pidfd_open": 434, "landlock_restrict_self": 446},
    checked_ahead={"fork": 57, "mkdir": 83, "umask": 95, "prctl": 157, "mkdirat": 258},
    setup={
        "pivot_root": 155,
        "umount2": 166,
        "mount": 165,
        "capset": 126,
        "unshare": 272,
        "seccomp": 317,
    },
    canaries={"ptrace": 101, "keyctl": 250, "bpf": 321, "io_uring_setup": 425},
    sockets={"socket": 41, "socketpair": 53, "io_uring_setup": 425},
)

_AARCH64_MEMORY: Final = {
    "munmap": 215,
    "brk": 214,
    "mremap": 216,
    "msync": 227,
    "madvise": 233,
    "membarrier": 283,
}
_AARCH64_FILES: Final = {
    "read": 63,
    "write": 64,
    "close": 57,
    "fstat": 80,
    "lseek": 62,
    "pread64": 67,
    "pwrite64": 68,
    "readv": 65,
    "writev": 66,
    "dup": 23,
    "sendfile": 71,
    "fsync": 82,
    "fdatasync": 83,
    "ftruncate": 46,
    "getcwd": 17,
    "chdir": 49,
    "umask": 166,
    "statfs": 43,
    "fstatfs": 44,
    "getdents64": 61,
    "fadvise64": 223,
    "mkdirat": 34,
    "newfstatat": 79,
    "unlinkat": 35,
    "renameat": 38,
    "readlinkat": 78,
    "faccessat": 48,
    "fallocate": 47,
    "dup3": 24,
    "pipe2": 59,
    "renameat2": 276,
    "copy_file_range": 285,
    "statx": 291,
    "close_range": 436,
    "faccessat2": 439,
}
_AARCH64_WAITING: Final = {
    "sched_yield": 124,
    "nanosleep": 101,
    "setitimer": 103,
    "recvfrom": 207,
    "shutdown": 210,
    "futex": 98,
    "restart_syscall": 128,
    "epoll_ctl": 21,
    "pselect6": 72,
    "ppoll": 73,
    "epoll_pwait": 22,
    "eventfd2": 19,
    "epoll_create1": 20,
}
_AARCH64_ITSELF: Final = {
    "rt_sigaction": 134,
    "rt_sigprocmask": 135,
    "rt_sigreturn": 139,
    "getpid": 172,
    "exit": 93,
    "uname": 160,
    "gettimeofday": 169,
    "getrlimit": 163,
    "getrusage": 165,
    "sysinfo": 179,
    "times": 153,
    "getuid": 174,
    "getgid": 176,
    "geteuid": 175,
    "getegid": 177,
    "getppid": 173,
    "getgroups": 158,
    "sigaltstack": 132,
    "gettid": 178,
    "sched_getaffinity": 123,
    "clock_gettime": 113,
    "clock_getres": 114,
    "clock_nanosleep": 115,
    "exit_group": 94,
    "set_robust_list": 99,
    "getrandom": 278,
    "rseq": 293,
}
_AARCH64: Final = SyscallTable(
    architecture=0xC00000B7,
    first_x32=None,
    checked={
        "mmap": 222,
        "mprotect": 226,
        "ioctl": 29,
        "sendto": 206,
        "socketpair": 199,
        "clone": 220,
        "fcntl": 25,
        "openat": 56,
        "prlimit64": 261,
        "clone3": 435,
    },
    free=_AARCH64_MEMORY | _AARCH64_FILES | _AARCH64_WAITING | _AARCH64_ITSELF,
    ahead={"sendmsg": 211, "wait4": 260, "pidfd_open": 434, "landlock_restrict_self": 446},
    checked_ahead={"mkdirat": 34, "umask": 166, "prctl": 167},
    setup={
        "pivot_root": 41,
        "umount2": 39,
        "mount": 40,
        "capset": 91,
        "unshare": 97,
        "seccomp": 277,
    },
    canaries={"ptrace": 117, "keyctl": 219, "bpf": 280, "io_uring_setup": 425},
    sockets={"socket": 198, "socketpair": 199, "io_uring_setup": 425},
)

TABLES: Final = {"x86_64": _X86_64, "aarch64": _AARCH64}
NEVER_RUN: Final = frozenset(
    {"aarch64"}
)  # its table was compared with the kernel's, but never run on such a machine


def native_calls() -> SyscallTable:
    """Return the table of this machine. Raise OSError if there is none."""
    machine = os.uname().machine
    if machine not in TABLES:
        raise OSError(f"the system calls of {machine} are not known")
    return TABLES[machine]


def number(name: str) -> int:
    """Return a call's number on this machine."""
    table = native_calls()
    return {**table.setup, **table.canaries}[name]

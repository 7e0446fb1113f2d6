"""The numbers of the same system calls on Linux aarch64, from the kernel's table for new architectures.

Written and compared with that table, and never run: on such a machine the self-test decides. What the table has not
(open, stat, poll, fork …) is not here either; the C library asks for the newer call. 32-bit calls have another
architecture and end the process.
"""

from typing import Final

ARCHITECTURE: Final = 0xC00000B7
FIRST_X32: Final = None  # no calls with a bit of their own

CHECKED: Final = {
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
}

_MEMORY: Final = {"munmap": 215, "brk": 214, "mremap": 216, "msync": 227, "madvise": 233, "membarrier": 283}
_FILES: Final = {
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
_WAITING: Final = {
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
_ITSELF: Final = {
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
FREE: Final = _MEMORY | _FILES | _WAITING | _ITSELF

# What a zygote that imports packages may call beyond its workers, to fork and to confine them; and what it may call
# only with arguments that do no more than that.
AHEAD: Final = {"sendmsg": 211, "wait4": 260, "pidfd_open": 434, "landlock_restrict_self": 446}
CHECKED_AHEAD: Final = {"mkdirat": 34, "umask": 166, "prctl": 167}

# What putting the layers on takes.
SETUP: Final = {"pivot_root": 41, "umount2": 39, "mount": 40, "capset": 91, "unshare": 97, "seccomp": 277}

# What the self-test asks for in vain.
CANARIES: Final = {"ptrace": 117, "keyctl": 219, "bpf": 280, "io_uring_setup": 425}

"""The numbers of system calls on Linux x86-64: the free ones, and those with arguments that are checked.

Not here, so refused: fork, vfork, exec, every socket but an unnamed pair, sendmsg and recvmsg (they
pass descriptors), kill and its kin, ptrace, prctl, chmod, chown, links, mknod, xattrs, mounts,
memfd, io_uring, bpf, keys, perf, userfaultfd, SysV memory, handles, clocks, modules.
"""

from typing import Final

ARCHITECTURE: Final = 0xC000003E
FIRST_X32: Final = 0x40000000

CHECKED: Final = {
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
}

_MEMORY: Final = {"munmap": 11, "brk": 12, "mremap": 25, "msync": 26, "madvise": 28, "membarrier": 324}
_FILES: Final = {
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
_WAITING: Final = {
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
_ITSELF: Final = {
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
FREE: Final = _MEMORY | _FILES | _WAITING | _ITSELF

# What a zygote that imports packages may call beyond its workers, to fork and to confine them; and what it may call
# only with arguments that do no more than that.
AHEAD: Final = {"sendmsg": 46, "wait4": 61, "pidfd_open": 434, "landlock_restrict_self": 446}
CHECKED_AHEAD: Final = {"fork": 57, "mkdir": 83, "umask": 95, "prctl": 157, "mkdirat": 258}

# What putting the layers on takes.
SETUP: Final = {"pivot_root": 155, "umount2": 166, "mount": 165, "capset": 126, "unshare": 272, "seccomp": 317}

# What the self-test asks for in vain.
CANARIES: Final = {"ptrace": 101, "keyctl": 250, "bpf": 321, "io_uring_setup": 425}

"""Each branch of the seccomp filter, run on a classic BPF interpreter: at least one allowed and one refused call."""

import errno
import struct

import pytest

from sandbox.confine.calls import TABLES
from sandbox.confine.seccomp import (
    ALLOW,
    ASK,
    EQUAL,
    KILL,
    RETURN,
    Program,
    build,
    build_ahead,
    refuse,
)

INTEL = TABLES["x86_64"]
EPERM = refuse(errno.EPERM)
THREAD = 0x3D0F00  # what glibc passes for a new thread
ABSENT = {
    "fork": 57,
    "vfork": 58,
    "execve": 59,
    "execveat": 322,
    "kill": 62,
    "tgkill": 234,
    "ptrace": 101,
}
ABSENT |= {
    "socket": 41,
    "connect": 42,
    "sendmsg": 46,
    "recvmsg": 47,
    "bind": 49,
    "listen": 50,
    "prctl": 157,
}
ABSENT |= {
    "chmod": 90,
    "chown": 92,
    "utimensat": 280,
    "link": 86,
    "symlink": 88,
    "mknod": 133,
    "setxattr": 188,
}
ABSENT |= {
    "mount": 165,
    "unshare": 272,
    "setns": 308,
    "bpf": 321,
    "io_uring_setup": 425,
    "memfd_create": 319,
}
ABSENT |= {
    "keyctl": 250,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "shmget": 29,
    "setuid": 105,
    "truncate": 76,
}
ABSENT |= {
    "pkey_mprotect": 329,
    "process_vm_readv": 310,
    "pidfd_getfd": 438,
    "seccomp": 317,
    "landlock": 444,
}


def verdict(
    program: bytes, number: int, *arguments: int, architecture: int = INTEL.architecture
) -> int:
    """Return what the kernel would do with this call."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    instructions = [
        struct.unpack("=HBBI", program[at : at + 8]) for at in range(0, len(program), 8)
    ]
    at = accumulator = 0
    while True:
        code, yes, no, operand = instructions[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, operand)[0]
            case 0x54:
                accumulator &= operand
            case 0x06:
                return int(operand)
            case 0x15:
                at += yes if accumulator == operand else no
            case 0x35:
                at += yes if accumulator >= operand else no
            case 0x45:
                at += yes if accumulator & operand else no
            case _:
                raise AssertionError(f"the filter holds an unknown instruction {code:#x}")


STRICT, WITH_FILES = build(executable_files=False), build(executable_files=True)
AHEAD_OF_WORKERS = build_ahead()


@pytest.mark.parametrize(
    "program", [pytest.param(STRICT, id="strict"), pytest.param(WITH_FILES, id="with-files")]
)
def test_every_call_number_is_free_or_checked_or_refused(program: bytes) -> None:
    free = set(INTEL.free.values())
    for number in range(600):
        if number not in INTEL.checked.values():
            assert verdict(program, number) == (ALLOW if number in free else EPERM), number


def test_a_dangerous_call_is_refused_whatever_its_arguments() -> None:
    for name, number in ABSENT.items():
        for arguments in ((), (1, 1, 1, 1, 1, 1), (2**64 - 1,) * 6):
            assert verdict(WITH_FILES, number, *arguments) == EPERM, name


Calls = dict[str, list[tuple[int, ...]]]
NO_TERMINAL, ABSENT_CALL = refuse(errno.ENOTTY), refuse(errno.ENOSYS)
CHECKED: dict[int, Calls] = {
    ALLOW: {
        "clone": [(THREAD,)],
        "mprotect": [(0, 0, 3)],
        "mmap": [(0, 0, 3, 0x22)],
        "ioctl": [(0, 0x5451), (0, 0x5450), (0, 0x5421)],  # close on exec or not, non-blocking
        "fcntl": [
            (3, 0),
            (3, 7),
            (3, 37),
            (3, 1030),
        ],  # duplicate, lock and wait, lock an open file
        "prlimit64": [(0, 7, 0, 1)],
        "open": [(1, 0o102, 0o1777)],
        "openat": [(3, 1, 0o102, 0o600)],
        "socketpair": [(1, 1), (1, 1 | 0x80000 | 0x800)],
        "sendto": [(3, 1, 1, 0, 0, 0)],
    },
    EPERM: {
        # a process, a vfork, a thread in a new namespace, and one in a new time namespace
        "clone": [(17,), (0x100 | 0x4000 | 17,), (THREAD | 0x10000000,), (THREAD | 0x80,)],
        "mprotect": [(0, 0, 5)],
        "mmap": [
            (0, 0, 7, 0x22),
            (0, 0, 5, 0x22),
            (0, 0, 7, 2),
        ],  # memory as code, empty memory, writable code
        "fcntl": [
            (3, 8),
            (3, 10),
            (3, 15),
            (3, 1024),
            (3, 1026),
        ],  # who gets which signals, lease, notify
        "prlimit64": [
            (1, 7, 0, 1),
            (0, 7, 1, 0),
            (0, 7, 1 << 32, 0),
        ],  # of another; set; set from high memory
        "open": [(1, 0o102, 0o4755)],  # a program that runs as its owner
        "openat": [(3, 1, 0o102, 0o2755)],
        "socketpair": [(1, 2), (2, 1)],
        "sendto": [(3, 1, 1, 0, 1, 16), (3, 1, 1, 0, 1 << 32, 16)],
    },
    NO_TERMINAL: {"ioctl": [(0, 0x5412), (0, 0x5401)]},  # push a key, ask for a terminal
    ABSENT_CALL: {"clone3": [()]},
}


@pytest.mark.parametrize(
    "program", [pytest.param(STRICT, id="strict"), pytest.param(WITH_FILES, id="with-files")]
)
def test_a_checked_call_depends_on_its_arguments(program: bytes) -> None:
    for expected, table in CHECKED.items():
        for name, calls in table.items():
            for arguments in calls:
                assert verdict(program, INTEL.checked[name], *arguments) == expected, (
                    name,
                    arguments,
                )
    assert {name for table in CHECKED.values() for name in table} == INTEL.checked.keys()


def test_only_where_no_file_can_be_written_and_run_may_a_file_be_mapped_as_code() -> None:
    for program, expected in ((STRICT, EPERM), (WITH_FILES, ALLOW)):
        assert verdict(program, INTEL.checked["mmap"], 0, 4096, 5, 2, 3) == expected


def test_a_call_of_another_kind_ends_the_process() -> None:
    for program in (STRICT, AHEAD_OF_WORKERS):
        assert verdict(program, 39, architecture=0x40000003) == KILL, "32 bits"
        for number in (
            0x40000000 | 39,
            0x40000000 | 41,
            2**32 - 1,
        ):  # calls of x32, and no call at all
            assert verdict(program, number) == KILL


BEYOND = {
    "chmod": 90,
    "fchmod": 91,
    "fchmodat": 268,
    "fchmodat2": 452,
    "creat": 85,
    "mknod": 133,
    "openat2": 437,
}
BEYOND |= {
    "setpriority": 141,
    "ioprio_set": 251,
    "sched_setscheduler": 144,
    "sched_setattr": 314,
    "setrlimit": 160,
}
BEYOND |= {
    "setsid": 112,
    "setpgid": 109,
    "add_key": 248,
    "request_key": 249,
    "shmget": 29,
    "shmat": 30,
    "semget": 64,
}
BEYOND |= {
    "msgget": 68,
    "memfd_create": 319,
    "utime": 132,
    "utimes": 235,
    "futimesat": 261,
    "tkill": 200,
}
BEYOND |= {
    "rt_sigqueueinfo": 129,
    "rt_tgsigqueueinfo": 297,
    "pidfd_send_signal": 424,
    "pidfd_getfd": 438,
}
BEYOND |= {
    "personality": 135,
    "landlock_add_rule": 445,
    "waitid": 247,
    "process_madvise": 440,
    "vfork": 58,
}


def test_a_zygote_that_imports_packages_has_a_workers_calls_and_those_that_fork_and_confine() -> (
    None
):
    free = (set(INTEL.free.values()) | set(INTEL.ahead.values())) - set(
        INTEL.checked_ahead.values()
    )
    for number in range(600):
        if number not in {**INTEL.checked, **INTEL.checked_ahead}.values():
            assert verdict(AHEAD_OF_WORKERS, number) == (ALLOW if number in free else EPERM), number


def test_what_reaches_others_is_refused_while_packages_are_imported() -> None:
    for name in {**ABSENT, **BEYOND}.keys() - {"fork", "sendmsg", "prctl"}:
        for arguments in ((), (1, 1, 1, 1, 1, 1), (2**64 - 1,) * 6):
            assert verdict(AHEAD_OF_WORKERS, {**ABSENT, **BEYOND}[name], *arguments) == EPERM, name


CHECKED_AHEAD: dict[int, Calls] = {
    ASK: {
        "clone": [(0x01200011,), (17,)],
        "fork": [()],
    },  # a fork of the C library, a plain one, the old one
    ALLOW: {
        "clone": [(THREAD,)],
        "prlimit64": [(0, 7, 1, 0)],
        "prctl": [(22, 2, 1), (1, 9)],  # a filter more, and to end with the parent
        "mkdir": [(1, 0o777)],
        "mkdirat": [(1, 1, 0o700)],
        "umask": [(0o77,)],
        "mmap": [(0, 4096, 5, 2, 3)],
    },
    EPERM: {
        # a sibling, a vfork, new users, a process whose end is not told
        "clone": [(0x8000 | 17,), (0x4100 | 17,), (0x10000000 | 17,), (0x01200000,)],
        "prlimit64": [(1, 7, 1, 0), (1, 7, 0, 1)],
        "prctl": [
            (1, 0),
            (4, 1),
            (36, 1),
        ],  # to outlive the parent, to be read by others, to adopt orphans
        "mkdir": [(1, 0o500)],
        "mkdirat": [(1, 1, 0)],
        "umask": [(0o777,)],
        "mmap": [(0, 0, 7, 0x22)],
        "mprotect": [(0, 0, 5)],
        "open": [(1, 0o102, 0o4755)],
        "openat": [(3, 1, 0o102, 0o2755)],
        "socketpair": [(1, 2)],
        "fcntl": [(3, 8)],
    },
    ABSENT_CALL: {"clone3": [()]},
}


def test_what_forks_and_confines_does_no_more_than_that() -> None:
    for expected, table in CHECKED_AHEAD.items():
        for name, calls in table.items():
            for arguments in calls:
                number = {**INTEL.checked, **INTEL.checked_ahead}[name]
                assert verdict(AHEAD_OF_WORKERS, number, *arguments) == expected, (name, arguments)


def test_a_jump_that_does_not_reach_and_a_label_that_is_used_twice_are_errors() -> None:
    program = Program()
    program.test(EQUAL, 1, yes="far")
    for _number in range(300):
        program.add(RETURN, KILL)
    program.label("far")
    with pytest.raises(ValueError, match="does not reach"):
        program.assemble()
    with pytest.raises(ValueError, match="used twice"):
        program.label("far")


def test_the_filter_is_short_enough_to_be_put_on_quickly() -> None:
    for program in (WITH_FILES, AHEAD_OF_WORKERS):
        assert len(program) // 8 < 256

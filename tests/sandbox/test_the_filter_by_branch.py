"""Each branch of the seccomp filter, run on a classic BPF interpreter: at least one allowed and one refused call."""

import errno
import struct

import pytest

from sandbox.confine import seccomp
from sandbox.confine.calls import TABLES
from sandbox.confine.seccomp import ALLOW, ASK, EQUAL, KILL, RETURN, Program, build, build_ahead, refuse

INTEL = TABLES["x86_64"]
EPERM = refuse(errno.EPERM)
THREAD = 0x3D0F00  # what glibc passes for a new thread
ABSENT = {"fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "kill": 62, "tgkill": 234, "ptrace": 101}
ABSENT |= {"socket": 41, "connect": 42, "sendmsg": 46, "recvmsg": 47, "bind": 49, "listen": 50, "prctl": 157}
ABSENT |= {"chmod": 90, "chown": 92, "utimensat": 280, "link": 86, "symlink": 88, "mknod": 133, "setxattr": 188}
ABSENT |= {"mount": 165, "unshare": 272, "setns": 308, "bpf": 321, "io_uring_setup": 425, "memfd_create": 319}
ABSENT |= {"keyctl": 250, "perf_event_open": 298, "userfaultfd": 323, "shmget": 29, "setuid": 105, "truncate": 76}
ABSENT |= {"pkey_mprotect": 329, "process_vm_readv": 310, "pidfd_getfd": 438, "seccomp": 317, "landlock": 444}


def verdict(program: bytes, number: int, *arguments: int, architecture: int = INTEL.architecture) -> int:
    """Return what the kernel would do with this call."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    instructions = [struct.unpack("=HBBI", program[at : at + 8]) for at in range(0, len(program), 8)]
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


@pytest.mark.parametrize("program", [pytest.param(STRICT, id="strict"), pytest.param(WITH_FILES, id="with-files")])
def test_every_call_number_is_free_or_checked_or_refused(program: bytes) -> None:
    free = set(INTEL.free.values())
    for number in range(600):
        if number not in INTEL.checked.values():
            assert verdict(program, number) == (ALLOW if number in free else EPERM), number


def test_a_dangerous_call_is_refused_whatever_its_arguments() -> None:
    for name, number in ABSENT.items():
        for arguments in ((), (1, 1, 1, 1, 1, 1), (2**64 - 1,) * 6):
            assert verdict(WITH_FILES, number, *arguments) == EPERM, name


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        pytest.param("clone", (THREAD,), ALLOW, id="a-thread"),
        pytest.param("clone", (17,), EPERM, id="a-process"),
        pytest.param("clone", (0x100 | 0x4000 | 17,), EPERM, id="a-vfork"),
        pytest.param("clone", (THREAD | 0x10000000,), EPERM, id="a-thread-in-a-new-namespace"),
        pytest.param("clone", (THREAD | 0x80,), EPERM, id="a-thread-in-a-new-time-namespace"),
        pytest.param("clone3", (), refuse(errno.ENOSYS), id="clone3"),
        pytest.param("mprotect", (0, 0, 3), ALLOW, id="make-writable"),
        pytest.param("mprotect", (0, 0, 5), EPERM, id="make-executable"),
        pytest.param("mmap", (0, 0, 3, 0x22), ALLOW, id="map-memory"),
        pytest.param("mmap", (0, 0, 7, 0x22), EPERM, id="map-memory-as-code"),
        pytest.param("mmap", (0, 0, 5, 0x22), EPERM, id="map-empty-memory-as-code"),
        pytest.param("mmap", (0, 0, 7, 2), EPERM, id="map-a-file-as-writable-code"),
        pytest.param("ioctl", (0, 0x5451), ALLOW, id="close-on-exec"),
        pytest.param("ioctl", (0, 0x5450), ALLOW, id="not-close-on-exec"),
        pytest.param("ioctl", (0, 0x5421), ALLOW, id="non-blocking"),
        pytest.param("ioctl", (0, 0x5412), refuse(errno.ENOTTY), id="push-a-key"),
        pytest.param("ioctl", (0, 0x5401), refuse(errno.ENOTTY), id="ask-for-a-terminal"),
        pytest.param("fcntl", (3, 0), ALLOW, id="duplicate"),
        pytest.param("fcntl", (3, 7), ALLOW, id="lock-and-wait"),
        pytest.param("fcntl", (3, 37), ALLOW, id="lock-an-open-file"),
        pytest.param("fcntl", (3, 1030), ALLOW, id="duplicate-and-close-on-exec"),
        pytest.param("fcntl", (3, 8), EPERM, id="choose-who-gets-signals"),
        pytest.param("fcntl", (3, 10), EPERM, id="choose-which-signal"),
        pytest.param("fcntl", (3, 15), EPERM, id="choose-a-thread-that-gets-signals"),
        pytest.param("fcntl", (3, 1024), EPERM, id="lease"),
        pytest.param("fcntl", (3, 1026), EPERM, id="notify"),
        pytest.param("prlimit64", (0, 7, 0, 1), ALLOW, id="read-own-limits"),
        pytest.param("prlimit64", (1, 7, 0, 1), EPERM, id="read-limits-of-another"),
        pytest.param("prlimit64", (0, 7, 1, 0), EPERM, id="set-own-limits"),
        pytest.param("prlimit64", (0, 7, 1 << 32, 0), EPERM, id="set-own-limits-from-high-memory"),
        pytest.param("open", (1, 0o102, 0o1777), ALLOW, id="make-a-file"),
        pytest.param("open", (1, 0o102, 0o4755), EPERM, id="make-a-program-that-runs-as-its-owner"),
        pytest.param("openat", (3, 1, 0o102, 0o600), ALLOW, id="make-a-file-in-a-folder"),
        pytest.param("openat", (3, 1, 0o102, 0o2755), EPERM, id="make-a-program-that-runs-as-its-group"),
        pytest.param("socketpair", (1, 1), ALLOW, id="an-unnamed-pair"),
        pytest.param("socketpair", (1, 1 | 0x80000 | 0x800), ALLOW, id="an-unnamed-pair-with-flags"),
        pytest.param("socketpair", (1, 2), EPERM, id="a-pair-of-datagrams"),
        pytest.param("socketpair", (2, 1), EPERM, id="a-pair-of-another-family"),
        pytest.param("sendto", (3, 1, 1, 0, 0, 0), ALLOW, id="send-to-the-other-end"),
        pytest.param("sendto", (3, 1, 1, 0, 1, 16), EPERM, id="send-to-an-address"),
        pytest.param("sendto", (3, 1, 1, 0, 1 << 32, 16), EPERM, id="send-to-an-address-in-high-memory"),
    ],
)
@pytest.mark.parametrize("program", [pytest.param(STRICT, id="strict"), pytest.param(WITH_FILES, id="with-files")])
def test_a_checked_call_depends_on_its_arguments(
    program: bytes, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert verdict(program, INTEL.checked[name], *arguments) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [pytest.param(STRICT, EPERM, id="strict"), pytest.param(WITH_FILES, ALLOW, id="with-files")],
)
def test_only_where_no_file_can_be_written_and_run_may_a_file_be_mapped_as_code(program: bytes, expected: int) -> None:
    assert verdict(program, INTEL.checked["mmap"], 0, 4096, 5, 2, 3) == expected


@pytest.mark.parametrize(
    ("number", "architecture"),
    [
        pytest.param(39, 0x40000003, id="calls-of-32-bit"),
        pytest.param(0x40000000 | 39, INTEL.architecture, id="calls-of-x32"),
        pytest.param(2**32 - 1, INTEL.architecture, id="no-call-at-all"),
    ],
)
def test_a_call_of_another_kind_ends_the_process(number: int, architecture: int) -> None:
    assert verdict(STRICT, number, architecture=architecture) == KILL


AHEAD_OF_WORKERS = build_ahead()
BEYOND = {"chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "creat": 85, "mknod": 133, "openat2": 437}
BEYOND |= {"setpriority": 141, "ioprio_set": 251, "sched_setscheduler": 144, "sched_setattr": 314, "setrlimit": 160}
BEYOND |= {"setsid": 112, "setpgid": 109, "add_key": 248, "request_key": 249, "shmget": 29, "shmat": 30, "semget": 64}
BEYOND |= {"msgget": 68, "memfd_create": 319, "utime": 132, "utimes": 235, "futimesat": 261, "tkill": 200}
BEYOND |= {"rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424, "pidfd_getfd": 438}
BEYOND |= {"personality": 135, "landlock_add_rule": 445, "waitid": 247, "process_madvise": 440, "vfork": 58}


def test_a_zygote_that_imports_packages_has_a_workers_calls_and_those_that_fork_and_confine() -> None:
    free = (set(INTEL.free.values()) | set(INTEL.ahead.values())) - set(INTEL.checked_ahead.values())
    for number in range(600):
        if number not in {**INTEL.checked, **INTEL.checked_ahead}.values():
            assert verdict(AHEAD_OF_WORKERS, number) == (ALLOW if number in free else EPERM), number
    assert verdict(AHEAD_OF_WORKERS, 0x40000000 | 41) == KILL
    assert verdict(AHEAD_OF_WORKERS, 39, architecture=0x40000003) == KILL


def test_what_reaches_others_is_refused_while_packages_are_imported() -> None:
    for name in {**ABSENT, **BEYOND}.keys() - {"fork", "sendmsg", "prctl"}:
        for arguments in ((), (1, 1, 1, 1, 1, 1), (2**64 - 1,) * 6):
            assert verdict(AHEAD_OF_WORKERS, {**ABSENT, **BEYOND}[name], *arguments) == EPERM, name


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        pytest.param("clone", (THREAD,), ALLOW, id="a-thread"),
        pytest.param("clone", (0x01200011,), ASK, id="a-fork-of-the-c-library"),
        pytest.param("clone", (17,), ASK, id="a-plain-fork"),
        pytest.param("fork", (), ASK, id="the-old-fork"),
        pytest.param("clone", (0x8000 | 17,), EPERM, id="a-sibling"),
        pytest.param("clone", (0x4100 | 17,), EPERM, id="a-vfork"),
        pytest.param("clone", (0x10000000 | 17,), EPERM, id="new-users"),
        pytest.param("clone", (0x01200000,), EPERM, id="a-process-whose-end-is-not-told"),
        pytest.param("clone3", (), refuse(errno.ENOSYS), id="clone3"),
        pytest.param("prlimit64", (0, 7, 1, 0), ALLOW, id="set-own-limits"),
        pytest.param("prlimit64", (1, 7, 1, 0), EPERM, id="set-limits-of-another"),
        pytest.param("prlimit64", (1, 7, 0, 1), EPERM, id="read-limits-of-another"),
        pytest.param("prctl", (22, 2, 1), ALLOW, id="a-filter-more"),
        pytest.param("prctl", (1, 9), ALLOW, id="to-end-with-the-parent"),
        pytest.param("prctl", (1, 0), EPERM, id="to-outlive-the-parent"),
        pytest.param("prctl", (4, 1), EPERM, id="to-be-read-by-others"),
        pytest.param("prctl", (36, 1), EPERM, id="to-adopt-orphans"),
        pytest.param("mkdir", (1, 0o777), ALLOW, id="a-folder"),
        pytest.param("mkdir", (1, 0o500), EPERM, id="a-closed-folder"),
        pytest.param("mkdirat", (1, 1, 0o700), ALLOW, id="a-private-folder"),
        pytest.param("mkdirat", (1, 1, 0), EPERM, id="a-folder-closed-to-all"),
        pytest.param("umask", (0o77,), ALLOW, id="a-usual-mask"),
        pytest.param("umask", (0o777,), EPERM, id="a-mask-that-closes-folders"),
        pytest.param("mmap", (0, 4096, 5, 2, 3), ALLOW, id="a-library"),
        pytest.param("mmap", (0, 0, 7, 0x22), EPERM, id="memory-as-code"),
        pytest.param("mprotect", (0, 0, 5), EPERM, id="make-executable"),
        pytest.param("open", (1, 0o102, 0o4755), EPERM, id="a-program-that-runs-as-its-owner"),
        pytest.param("openat", (3, 1, 0o102, 0o2755), EPERM, id="a-program-that-runs-as-its-group"),
        pytest.param("socketpair", (1, 2), EPERM, id="a-pair-of-datagrams"),
        pytest.param("fcntl", (3, 8), EPERM, id="choose-who-gets-signals"),
    ],
)
def test_what_forks_and_confines_does_no_more_than_that(name: str, arguments: tuple[int, ...], expected: int) -> None:
    assert verdict(AHEAD_OF_WORKERS, {**INTEL.checked, **INTEL.checked_ahead}[name], *arguments) == expected


def test_a_jump_that_does_not_reach_is_an_error_when_the_filter_is_built() -> None:
    program = Program()
    program.test(EQUAL, 1, yes="far")
    for _number in range(300):
        program.add(RETURN, KILL)
    program.label("far")
    with pytest.raises(ValueError, match="does not reach"):
        program.assemble()


def test_a_label_that_is_used_twice_is_an_error() -> None:
    program = Program()
    program.label("here")
    with pytest.raises(ValueError, match="used twice"):
        program.label("here")


def test_the_filter_is_short_enough_to_be_put_on_quickly() -> None:
    for program in (seccomp.build(executable_files=True), seccomp.build_ahead()):
        assert len(program) // 8 < 256

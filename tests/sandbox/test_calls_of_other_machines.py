"""The system call table for aarch64 as data: it was never run, so it is compared with the kernel's own."""

import errno
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Sandbox, SandboxUnavailable
from sandbox.confine import calls
from sandbox.confine.calls import TABLES, SyscallTable
from sandbox.confine.seccomp import ALLOW, ASK, KILL, build, build_ahead, refuse
from tests.attacks.world import REPOSITORY
from tests.sandbox.test_the_filter_by_branch import verdict

ARM, INTEL = TABLES["aarch64"], TABLES["x86_64"]
PUBLISHED = {
    name: int(number)
    for line in Path(__file__).with_name("generic_calls.txt").read_text().splitlines()
    if not line.startswith("#")
    for number, name in [line.split()]
}
# Calls that the newer table omits; the C library uses openat, newfstatat, ppoll, renameat2 … instead.
OLD = "open stat lstat access pipe dup2 getdents rename mkdir rmdir unlink readlink poll select alarm epoll_wait time"
OLD_AHEAD = {"fork", "mkdir"}
HEADER = Path("/usr/include/asm-generic/unistd.h")
FILTER = build(executable_files=True, table=ARM)
EPERM = refuse(errno.EPERM)


def on_arm(name: str, *arguments: int, architecture: int = ARM.architecture) -> int:
    """Return what the filter of that machine would do with the call."""
    return verdict(FILTER, PUBLISHED[name], *arguments, architecture=architecture)


def named(table: SyscallTable) -> dict[str, int]:
    """Return every call of a table."""
    return {
        **table.checked,
        **table.free,
        **table.ahead,
        **table.checked_ahead,
        **table.setup,
        **table.canaries,
    }


def test_every_number_is_the_one_that_the_kernel_publishes() -> None:
    assert named(ARM) == {name: PUBLISHED[name] for name in named(ARM)}


def test_the_published_numbers_are_those_of_the_installed_header() -> None:
    if not HEADER.exists():
        pytest.skip("no kernel headers here")
    found = dict(
        re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", HEADER.read_text(), re.MULTILINE)
    )
    found["newfstatat"] = found["fstatat"]
    assert {name: int(found[name]) for name in PUBLISHED} == PUBLISHED


def test_every_allowed_call_that_exists_there_is_allowed_and_no_other() -> None:
    assert INTEL.free.keys() - ARM.free.keys() == set(OLD.split()) - {"open"}
    assert INTEL.checked.keys() - ARM.checked.keys() == {"open"}
    assert INTEL.checked_ahead.keys() - ARM.checked_ahead.keys() == OLD_AHEAD
    for kind in ("free", "checked", "ahead", "checked_ahead", "setup", "canaries"):
        assert getattr(ARM, kind).keys() <= getattr(INTEL, kind).keys()
    assert not (set(OLD.split()) | OLD_AHEAD) & PUBLISHED.keys()


def test_no_number_stands_twice_in_a_table() -> None:
    for table in (ARM, INTEL):
        numbers = [*{**table.checked, **table.free}.values()]
        assert len(numbers) == len({*numbers})


def test_every_number_of_that_machine_is_free_or_checked_or_refused() -> None:
    for number in range(600):
        if number not in ARM.checked.values():
            assert verdict(FILTER, number, architecture=ARM.architecture) == (
                ALLOW if number in ARM.free.values() else EPERM
            ), number


def test_the_checked_calls_are_checked_under_the_numbers_of_that_machine() -> None:
    for name, arguments, expected in (
        ("clone", (0x3D0F00,), ALLOW),  # a thread
        ("clone", (17,), EPERM),
        ("clone3", (), refuse(errno.ENOSYS)),
        ("mmap", (0, 0, 7, 0x22), EPERM),
        ("mmap", (0, 0, 5, 2, 3), ALLOW),  # a library
        ("mprotect", (0, 0, 5), EPERM),
        ("openat", (3, 1, 0o102, 0o4755), EPERM),
        ("openat", (3, 1, 0o102, 0o600), ALLOW),
        ("ioctl", (0, 0x5412), refuse(errno.ENOTTY)),
        ("socketpair", (2, 1), EPERM),
        ("prlimit64", (0, 7, 1, 0), EPERM),
        *((name, (), EPERM) for name in ("execve", "socket", "unshare", "sendmsg", "prctl")),
    ):
        assert on_arm(name, *arguments) == expected, (name, arguments)


def test_calls_of_another_architecture_end_the_process_and_there_is_no_x32() -> None:
    assert ARM.architecture == 0xC00000B7
    for foreign in (
        INTEL.architecture,
        0x40000028,
    ):  # the other machine, and 32-bit programs on this one
        assert on_arm("getpid", architecture=foreign) == KILL
    assert verdict(FILTER, 0x40000000 | 172, architecture=ARM.architecture) == EPERM
    assert ARM.first_x32 is None


def test_a_zygote_that_imports_packages_has_the_same_short_list_there() -> None:
    ahead, checked = build_ahead(ARM), {**ARM.checked, **ARM.checked_ahead}
    free = (set(ARM.free.values()) | set(ARM.ahead.values())) - set(checked.values())
    for number in set(range(600)) - set(checked.values()):
        expected = ALLOW if number in free else EPERM
        assert verdict(ahead, number, architecture=ARM.architecture) == expected, number
    assert verdict(ahead, PUBLISHED["clone"], 0x01200011, architecture=ARM.architecture) == ASK
    assert verdict(ahead, PUBLISHED["clone"], 0x8011, architecture=ARM.architecture) == EPERM


def machine(monkeypatch: pytest.MonkeyPatch, name: str, system: str = "linux") -> None:
    """Pretend to be another machine."""
    monkeypatch.setattr(platform, "machine", lambda: name)
    monkeypatch.setattr(sys, "platform", system)


async def test_that_machine_may_try_and_the_self_test_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(calls.TABLES, "aarch64", INTEL)  # so that the result applies here
    machine(monkeypatch, "aarch64")
    async with await Sandbox.start(packages=()) as sandbox:
        assert (
            "aarch64 was never run before this, so the self-test alone decides"
            in sandbox.missing[0]
        )


@pytest.mark.parametrize(
    ("name", "system", "says"),
    [
        pytest.param("riscv64", "linux", r"no sandbox for linux on riscv64 yet", id="no-table"),
        pytest.param("armv8l", "linux", r"no sandbox for linux on armv8l yet", id="32-bit"),
        pytest.param("AMD64", "win32", r"WSL2 by `wsl --install`.*WSL1", id="windows"),
        pytest.param("arm64", "darwin", r"use a Linux virtual machine or container", id="macos"),
    ],
)
async def test_machines_without_a_table_are_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, name: str, system: str, says: str
) -> None:
    machine(monkeypatch, name, system)
    with pytest.raises(SandboxUnavailable, match=says):
        await Sandbox.start()


def test_the_message_is_reached_without_the_modules_that_windows_lacks() -> None:
    code = (
        "import asyncio, os, subprocess, sys, tempfile\n"
        "sys.modules['resource'] = sys.modules['fcntl'] = sys.modules['pwd'] = None\n"
        "sys.platform = 'win32'; del os.uname, os.geteuid, os.fork\n"
        "import sandbox\n"
        "try: asyncio.run(sandbox.Sandbox.start())\n"
        "except sandbox.SandboxUnavailable as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    assert "no sandbox for win32" in done.stdout, done.stderr

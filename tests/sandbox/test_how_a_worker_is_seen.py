"""A worker's process id as the kernel reports it, and the usage counter that stays open on it."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.processes import ends
from sandbox.processes.ends import WorkerUsage, number_of, pid_of


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_both_ways_to_ask_for_a_processs_number_agree_until_it_is_reaped(
    child: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing:
        assert pid_of(nothing.fileno()) == -1
    descriptor = os.pidfd_open(child.pid)
    try:
        assert number_of(descriptor) == pid_of(descriptor) == child.pid
        with monkeypatch.context() as patch:
            patch.setattr(
                ends, "_ASK", 0xC040FFFE
            )  # a kernel that is too old to be asked: its text is read
            assert number_of(descriptor) == child.pid
        child.kill()
        child.wait()
        assert number_of(descriptor) == pid_of(descriptor) == 0
    finally:
        os.close(descriptor)


def test_a_sight_tells_the_peak_of_the_process_that_it_was_opened_for(
    child: "subprocess.Popen[bytes]",
) -> None:
    while not Path(f"/proc/{child.pid}/cmdline").read_bytes().startswith(b"sleep\0"):
        time.sleep(
            0.001
        )  # until the program is loaded, the kernel counts only what the fork inherited
    sight = WorkerUsage.of(child.pid)
    assert (sight.used().memory or 0) > 1 << 16
    child.kill()
    child.wait()
    assert sight.used() == ends.Used()
    sight.close()


@pytest.mark.parametrize("pid", [0, -1, 1 << 22], ids=["not-seen", "no-process", "gone"])
def test_of_a_process_that_is_not_seen_nothing_is_told_and_nothing_held(pid: int) -> None:
    sight = WorkerUsage.of(pid)
    assert sight.status == -1
    assert sight.used().memory is None
    sight.close()

"""A worker's process id as the kernel reports it, and the usage counter that stays open on it."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.processes import usage
from sandbox.processes.usage import WorkerUsage, number_of, pid_of


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def descriptor(child: "subprocess.Popen[bytes]") -> Iterator[int]:
    descriptor = os.pidfd_open(child.pid)
    yield descriptor
    os.close(descriptor)


def test_both_ways_to_ask_for_a_processs_number_agree(child: "subprocess.Popen[bytes]", descriptor: int) -> None:
    assert number_of(descriptor) == pid_of(descriptor) == child.pid


def test_where_the_kernel_is_too_old_to_be_asked_its_text_is_read(
    child: "subprocess.Popen[bytes]", descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_ASK", 0xC040FFFE)  # an unknown request
    assert number_of(descriptor) == child.pid


def test_a_process_that_was_reaped_has_no_number_any_more(child: "subprocess.Popen[bytes]", descriptor: int) -> None:
    child.kill()
    child.wait()
    assert number_of(descriptor) == pid_of(descriptor) == 0


def test_what_is_no_process_has_no_number_at_all() -> None:
    with Path(os.devnull).open() as nothing:
        assert pid_of(nothing.fileno()) == -1


def test_a_sight_tells_the_peak_of_the_process_that_it_was_opened_for(child: "subprocess.Popen[bytes]") -> None:
    while not Path(f"/proc/{child.pid}/cmdline").read_bytes().startswith(b"sleep\0"):
        time.sleep(0.001)  # until the program is loaded, the kernel counts only what the fork inherited
    sight = WorkerUsage.of(child.pid)
    assert (sight.used().memory or 0) > 1 << 16
    child.kill()
    child.wait()
    assert sight.used() == usage.Used()
    sight.close()


@pytest.mark.parametrize("pid", [0, -1, 1 << 22], ids=["not-seen", "no-process", "gone"])
def test_of_a_process_that_is_not_seen_nothing_is_told_and_nothing_held(pid: int) -> None:
    sight = WorkerUsage.of(pid)
    assert sight.status == -1
    assert sight.used().memory is None
    sight.close()

"""A call's clock starts with its worker: delays caused by other calls are not charged to it."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from sandbox import FunctionCall, Job, Limits, Returned
from tests.attacks.outside import standing_still, zygotes_of
from tests.attacks.rows import code
from tests.kit.levels import start

WORLD = {"m": code("m", "def f() -> int:\n    return 1\n")}


async def test_a_call_that_waits_for_its_worker_does_not_lose_its_time() -> None:
    async with await start(packages=()) as sandbox:
        assert isinstance(await sandbox.run(Job(WORLD, "m", FunctionCall("f", {}))), Returned)
        with standing_still(zygotes_of(os.getpid())):  # limits other than the usual: no spare worker fits
            call = asyncio.ensure_future(
                sandbox.run(Job(WORLD, "m", FunctionCall("f", {}), limits=Limits(wall_s=2, cpu_s=59)))
            )
            await asyncio.sleep(2.5)
        assert isinstance(await call, Returned)


def test_a_process_that_ends_after_it_was_listed_does_not_keep_the_others_stopped() -> None:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        pytest.skip("there are no descriptors of processes, as below gVisor")
    with subprocess.Popen(["/bin/sleep", "60"]) as goes_on, subprocess.Popen(["/bin/true"]) as ended:
        ended.wait()
        try:
            with standing_still([ended.pid, goes_on.pid, ended.pid]):
                assert _comes_to(goes_on.pid, stopped=True)
            assert _comes_to(goes_on.pid, stopped=False)
        finally:
            goes_on.kill()


def _comes_to(pid: int, *, stopped: bool) -> bool:
    """Wait until a process is stopped or running: a signal takes effect when the process is next scheduled."""
    patience = time.monotonic() + 10
    while (_state(pid) == "T") != stopped and time.monotonic() < patience:
        time.sleep(0.01)
    return (_state(pid) == "T") == stopped


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]

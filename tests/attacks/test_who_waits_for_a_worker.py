"""A call's clock begins with its worker: what other calls hold up is not charged to it."""

import asyncio
import os
import signal

from sandbox import Limits, Returned, Sandbox
from tests.attacks.outside import zygotes_of
from tests.attacks.rows import code

WORLD = {"m": code("m", "def f() -> int:\n    return 1\n")}


async def test_a_call_that_waits_for_its_worker_does_not_lose_its_time() -> None:
    async with await Sandbox.start(packages=()) as sandbox:
        assert isinstance(await sandbox.call(WORLD, "m", "f", {}), Returned)
        stopped = zygotes_of(os.getpid())
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:  # other limits than the usual: there is no spare for it
            call = asyncio.ensure_future(sandbox.call(WORLD, "m", "f", {}, limits=Limits(wall_s=2, cpu_s=59)))
            await asyncio.sleep(2.5)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert isinstance(await call, Returned)

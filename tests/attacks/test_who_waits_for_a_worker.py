"""A call's clock starts with its worker: delays caused by other calls are not charged to it."""

import asyncio
import os

from sandbox import FunctionCall, Job, Limits, Returned
from tests.attacks.outside import standing_still, zygotes_of
from tests.attacks.rows import code
from tests.kit.levels import start

WORLD = {"m": code("m", "def f() -> int:\n    return 1\n")}


async def test_a_call_that_waits_for_its_worker_does_not_lose_its_time() -> None:
    async with await start(packages=()) as sandbox:
        assert isinstance(await sandbox.run(Job(WORLD, "m", FunctionCall("f", {}))), Returned)
        with standing_still(
            zygotes_of(os.getpid())
        ):  # limits other than the usual: no spare worker fits
            call = asyncio.ensure_future(
                sandbox.run(
                    Job(WORLD, "m", FunctionCall("f", {}), limits=Limits(wall_s=1, cpu_s=59))
                )
            )
            await asyncio.sleep(1.4)
        assert isinstance(await call, Returned)

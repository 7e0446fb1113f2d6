"""Zygotes, workers and hosts that die leave nothing behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox import Access, FunctionCall, Job, Killed, Limits, Returned, Sandbox
from sandbox.processes import pool
from sandbox.processes.pool import Places
from sandbox.processes.zygote import wipe
from tests.attacks.outside import is_zygote, zygotes_of
from tests.attacks.world import REPOSITORY
from tests.kit.levels import start
from tests.sandbox.support import modules

LIFE = modules(
    life="""
    import builtins, os, time

    def rest(seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    def poison() -> int:
        builtins.sum = lambda items: 666
        return sum([1])

    def total() -> int:
        return sum([1, 2])

    def draw() -> float:
        import random
        return random.random()

    def read(path: str) -> str:
        return open(path).read()
    """
)


@pytest.mark.parametrize(
    "which", [pytest.param(0, id="the-waiting-parent"), pytest.param(1, id="the-zygote")]
)
async def test_a_zygote_that_dies_takes_its_calls_along_and_the_next_call_works(which: int) -> None:
    before = zygotes_of(os.getpid())
    async with await start(packages=()) as sandbox:
        call = asyncio.ensure_future(
            sandbox.run(Job(LIFE, "life", FunctionCall("rest", {"seconds": 20})))
        )
        await asyncio.sleep(0.3)
        os.kill(sorted(zygotes_of(os.getpid()) - before)[which], signal.SIGKILL)
        outcome = await call
        assert isinstance(outcome, Killed)
        assert "ended" in outcome.reason
        again = await sandbox.run(Job(LIFE, "life", FunctionCall("total", {})))
        assert isinstance(again, Returned), again


async def test_one_that_shares_needs_no_zygote_of_its_own_and_closing_leaves_none_behind() -> None:
    await asyncio.sleep(1)  # until other sandboxes of this process have started their idle children
    before = zygotes_of(os.getpid())
    async with await start(packages=()) as lender:
        for _time in range(2):
            async with lender.share() as sharing:
                assert isinstance(
                    await sharing.run(Job(LIFE, "life", FunctionCall("total", {}))), Returned
                )
                assert sharing.zygotes == 1
        assert isinstance(await lender.run(Job(LIFE, "life", FunctionCall("total", {}))), Returned)
        assert lender.zygotes == 1
    assert zygotes_of(os.getpid()) == before


async def test_a_zygote_with_access_that_nobody_calls_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "REST_S", 0.1)
    reaching = Job(
        LIFE, "life", FunctionCall("total", {}), access=Access(readable=(str(tmp_path),))
    )
    async with await start(packages=()) as sandbox:
        for _time in range(2):
            assert isinstance(await sandbox.run(reaching), Returned)
            async with asyncio.timeout(20):
                while sandbox.zygotes > 1:  # noqa: ASYNC110 - a process has no event here
                    await asyncio.sleep(0.05)


async def test_a_granted_file_that_was_replaced_is_read_as_it_is_now(tmp_path: Path) -> None:
    file, new = tmp_path / "file", tmp_path / "new"
    async with await start(packages=()) as sandbox:
        for text in ("old", "new"):
            new.write_text(text)
            new.replace(file)
            read = FunctionCall("read", {"path": str(file)})
            outcome = await sandbox.run(
                Job(LIFE, "life", read, access=Access(readable=(str(file),)))
            )
            assert isinstance(outcome, Returned), outcome
            assert outcome.value == text


async def test_those_that_share_take_their_calls_places_from_one_number_together() -> None:
    rest = Job(LIFE, "life", FunctionCall("rest", {"seconds": 0.5}))
    async with (
        await start(packages=(), parallel=1) as lender,
        lender.share() as one,
        lender.share() as other,
    ):
        began = time.monotonic()
        outcomes = await asyncio.gather(one.run(rest), other.run(rest), lender.run(rest))
        assert time.monotonic() - began >= 1.5
    assert [type(outcome) for outcome in outcomes] == [Returned] * 3


def test_when_the_host_is_killed_nothing_stays() -> None:
    code = (
        "import asyncio, sys; from sandbox import FunctionCall, Job\n"
        "from tests.kit.levels import start; from tests.sandbox.support import modules\n"
        "async def main():\n"
        "    async with await start(packages=()) as sandbox:\n"
        "        world = modules(m='def f() -> None:\\n    while True: pass\\n')\n"
        "        call = asyncio.ensure_future(sandbox.run(Job(world, 'm', FunctionCall('f', {}))))\n"
        "        await asyncio.sleep(0.3); print('running', flush=True); await call\n"
        "asyncio.run(main())\n"
    )
    host = subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE)
    with host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"running\n"
        started = zygotes_of(host.pid)
        assert len(started) >= 2
        host.kill()
    patience = time.monotonic() + 20
    while (left := {pid for pid in started if is_zygote(pid)}) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not left


async def test_what_one_call_breaks_the_next_never_sees(sandbox: Sandbox) -> None:
    poisoned = await sandbox.run(Job(LIFE, "life", FunctionCall("poison", {})))
    after = await sandbox.run(Job(LIFE, "life", FunctionCall("total", {})))
    assert [getattr(outcome, "value", outcome) for outcome in (poisoned, after)] == [666, 3]
    drawn = [await sandbox.run(Job(LIFE, "life", FunctionCall("draw", {}))) for _time in range(4)]
    assert len({getattr(outcome, "value", None) for outcome in drawn}) == 4, (
        "each has random numbers of its own"
    )


async def test_other_limits_get_a_worker_of_their_own(sandbox: Sandbox) -> None:
    world = modules(
        big="def fill(size: int) -> int:\n    return open('f', 'wb').write(bytes(size))\n"
    )
    limits = Limits(file_size=2 << 20, scratch=1 << 20)
    outcomes = [
        await sandbox.run(Job(world, "big", FunctionCall("fill", {"size": size}), limits=each))
        for size, each in ((1 << 19, limits), (3 << 19, limits), (3 << 19, Limits()))
    ]
    assert [type(outcome).__name__ for outcome in outcomes] == (
        ["Returned", "Raised" if sandbox.layers["namespaces"] else "Returned", "Returned"]
    )


async def test_zygotes_for_other_needs_end_when_there_are_too_many(tmp_path: Path) -> None:
    world = modules(m="def f() -> int:\n    return 1\n")
    reach = Access(readable=(str(tmp_path),))
    async with await start(packages=()) as sandbox:
        for access, most in ((Access(), 6), (reach, 12)):
            for size in range(1, 8):
                outcome = await sandbox.run(
                    Job(
                        world,
                        "m",
                        FunctionCall("f", {}),
                        limits=Limits(scratch=size << 20),
                        access=access,
                    )
                )
                assert isinstance(outcome, Returned), outcome
            assert sandbox.zygotes <= most


def test_a_folder_is_emptied_however_deep_and_closed_it_was_left(tmp_path: Path) -> None:
    folder = tmp_path / "slot"
    folder.mkdir()
    deep = folder
    for number in range(300):
        deep = deep / f"{number % 10}"
        deep.mkdir()
    (folder / "closed").mkdir()
    (folder / "closed" / "inner").mkdir(mode=0)
    (folder / "closed").chmod(0)
    (folder / ".pulled-0").write_text("in the way")
    (folder / "link").symlink_to(tmp_path)
    (tmp_path / "kept").write_text("kept")
    wipe(folder)
    assert list(folder.iterdir()) == []
    assert (tmp_path / "kept").read_text() == "kept"


async def test_places_are_given_in_turn_and_never_lost_by_cancelling() -> None:
    places = Places(1)
    order: list[int] = []

    async def work(number: int) -> None:
        async with places:
            order.append(number)
            await asyncio.sleep(0)

    await places.__aenter__()
    tasks = [asyncio.ensure_future(work(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    places.leave()
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [2, 3]
    async with asyncio.timeout(5), places:
        pass

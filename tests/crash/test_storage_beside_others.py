"""Several processes on one state file: all writes are kept, and those of a zombie that wakes up are rejected."""

import asyncio
from pathlib import Path

from agent_core.storage import Entry, Post, open_store
from tests.crash.storage_work import sleep_through_a_take_over, source, write_beside_others
from tests.kit.crash import Worker
from tests.storage.support import ManualClock, texts

AGENTS = ("ann", "bob", "cat", "dan")


async def _examine(path: str) -> None:
    async with open_store(path, clock=ManualClock()) as store:
        for agent in AGENTS:
            assert texts(await store.history(agent)) == [str(n) for n in range(100)]
        rows = await store.module_history("shared")
        assert [row.text for row in rows] == [
            source(number + 1) for number in range(20 * len(AGENTS))
        ]
        assert await store.manifest() == {"shared": rows[-1].version}
        assert await store.check() is None


def test_four_processes_that_start_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    _write_at_once(str(tmp_path / "state.db"))


def test_four_processes_that_write_into_one_database_lose_nothing(database: str) -> None:
    _write_at_once(database)


def _write_at_once(path: str) -> None:
    workers = [Worker(write_beside_others, f"{path}:{agent}") for agent in AGENTS]
    assert [worker.reports() for worker in workers] == [["done"]] * len(AGENTS)
    asyncio.run(_examine(path))


async def _take_over(path: Path) -> int:
    async with open_store(path, clock=ManualClock(prefix="successor")) as store:
        turn = await store.next("main", "successor")
        assert turn is not None
        await store.append(turn.id, turn.attempt, turn.n, [Entry("user", {"text": "successor"})])
        return turn.n


def test_a_process_that_slept_through_a_take_over_writes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    asyncio.run(_post(path))
    sleeper = Worker(sleep_through_a_take_over, str(path))
    assert sleeper.next_report() == "asleep"
    assert asyncio.run(_take_over(path)) == 1
    (tmp_path / "state.db.over").touch()
    assert sleeper.reports() == ["refused"]
    assert asyncio.run(_history(path)) == ["sleeper", "successor"]


async def _post(path: Path) -> None:
    async with open_store(path, clock=ManualClock()) as store:
        await store.post(Post("main", "tick", {}))


async def _history(path: Path) -> list[str]:
    async with open_store(path, clock=ManualClock()) as store:
        return texts(await store.history("main"))

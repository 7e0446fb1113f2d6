"""Forgetting: after `kill -9` at any moment the name is everywhere or nowhere, and the state is intact."""

import asyncio
import random
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.base.clock import Clock
from agent_core.base.matching import Mention
from agent_core.memory import words
from agent_core.runtime.taken_up import said_by
from agent_core.storage import Erasure, PassageRow, SavePassages, open_store
from tests.kit.crash import Worker, kill_at_work

NAME = "Quillon"
ROWS = 400
LONGEST_S = 0.25  # about as long as it takes to forget and to rewrite the file


def remember_and_forget(path: str, reports: Connection) -> None:
    """Store a name in many rows, then forget it."""
    asyncio.run(_remember_and_forget(path, reports))


async def _remember_and_forget(path: str, reports: Connection) -> None:
    store = open_store(Path(path), clock=Clock())
    rows = (
        PassageRow(f"p-{n}", "main", f"{NAME} and {n}", f"quillon {n}", 1.0) for n in range(ROWS)
    )
    await store.apply([SavePassages(tuple(rows))])
    reports.send("kept")
    await store.forget(Erasure(Mention(NAME), words.indexed, lambda payload, _: payload, said_by))
    reports.send("forgotten")


async def _holding(path: Path) -> int:
    """Reopen the store, check that it is intact, and return how many rows contain the name."""
    async with open_store(path, clock=Clock()) as store:
        assert store.recovered is None
        assert await store.check() is None
        total, passages = await store.list_passages("main", (), 0, ROWS)
    assert total == ROWS
    return sum(NAME in passage.text for passage in passages)


def test_a_kill_in_the_middle_leaves_the_name_everywhere_or_nowhere(tmp_path: Path) -> None:
    chance, ended = random.Random(3), set[bool]()
    for number in range(12):
        path = tmp_path / f"state-{number}.db"
        told = kill_at_work(Worker(remember_and_forget, str(path)), chance.random() * LONGEST_S)
        holding = asyncio.run(_holding(path))
        assert holding in {0, ROWS}
        assert holding == 0 or "forgotten" not in told
        if holding == 0:  # the reopening has finished the operation
            assert b"uillon" not in path.read_bytes()
            assert not Path(f"{path}.scrub").exists()
        ended.add(holding == 0)
    assert ended == {True, False}

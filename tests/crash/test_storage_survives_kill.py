"""Promise 5 for the store: after kill -9 at any moment, what was acknowledged is stored, and nothing twice."""

import asyncio
import random
from pathlib import Path

import pytest

from agent_core.storage import Entry, content_hash, open_store
from tests.crash.storage_work import ENTRIES_OF_A_TURN, count_up, source
from tests.kit.crash import Worker, kill_after, kill_at_work
from tests.storage.support import ManualClock, texts

LONGEST_S = 0.03  # from before the file is created to the middle of several turns


async def _examine(path: str, acknowledged: list[str]) -> int:
    """Check that the state is intact and nothing acknowledged is missing; return how many numbers are stored."""
    async with open_store(path, clock=ManualClock()) as store:
        assert store.recovered is None
        assert await store.check() is None
        entries = await store.history("main")
        assert texts(entries) == [str(number) for number in range(len(entries))]
        for report in acknowledged:
            kind, what = report.split()
            stored = (
                entries[int(what)].payload["text"] == what
                if kind == "appended"
                else _is_whole(entries, what)
            )
            assert stored, report
        versions = [row.version for row in await store.module_history("counter")]
        assert versions == [content_hash(source(number)) for number in range(len(entries))]
        assert await store.manifest() == ({"counter": versions[-1]} if versions else {})
        assert len(await store.due()) <= 1
    return len(entries)


def _is_whole(entries: list[Entry], turn: str) -> bool:
    return [entry.n for entry in entries if entry.turn == turn] == list(range(ENTRIES_OF_A_TURN))


def _kill_again_and_again(path: str, times: int, seed: int) -> int:
    chance, stored = random.Random(seed), 0
    for kill in [kill_after, kill_at_work] * (times // 2):
        acknowledged = kill(Worker(count_up, path), chance.random() * LONGEST_S)
        before, stored = stored, asyncio.run(_examine(path, acknowledged))
        appended = sum(report.startswith("appended") for report in acknowledged)
        assert 0 <= stored - before - appended <= 1, (
            "one append may be stored and not yet acknowledged"
        )
    return stored


def test_twenty_kills_lose_nothing_acknowledged_and_repeat_nothing(tmp_path: Path) -> None:
    assert _kill_again_and_again(str(tmp_path / "state.db"), 20, seed=1) >= 10


def test_kills_lose_nothing_acknowledged_in_a_database_either(database: str) -> None:
    assert _kill_again_and_again(database, 10, seed=2) >= 5


def test_kills_while_the_state_file_is_made_leave_a_good_one_or_none(tmp_path: Path) -> None:
    for number in range(6):
        path = tmp_path / f"state-{number}.db"
        acknowledged = kill_after(Worker(count_up, str(path)), number * 0.0012)
        asyncio.run(_examine(str(path), acknowledged))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_thousand_kills_lose_nothing_acknowledged_and_repeat_nothing(tmp_path: Path) -> None:
    for seed in range(20):
        _kill_again_and_again(str(tmp_path / f"state-{seed}.db"), 100, seed)

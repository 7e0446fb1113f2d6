"""Edits, passages and compactions: after `kill -9` at any moment, nothing reported is lost or doubled."""

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from agent_core.base.clock import Clock
from agent_core.storage import SUMMARY, open_store
from agent_core.workspace.workspace import Workspace
from tests.crash.memory_work import remember, remembering
from tests.kit import Repeat, scripted
from tests.kit.crash import Worker, kill_at_work


async def check(root: Path, told: list[str]) -> int:
    """Check the blocks, their history and the passages; return the number of compactions."""
    async with Workspace.open(root, flags={"model.base_url": "http://127.0.0.1:9/v1"}) as workspace:
        memory = (await workspace.agent()).memory
        changes = await memory.blocks.history("human")
        (human,) = [row for row in memory.blocks.rows if row.label == "human"]
        total, passages = await memory.store.list_passages("main", (), 0, 100_000)
    assert [change.version for change in changes] == [*range(1, len(changes) + 1)]
    assert (human.version, human.value) == (changes[-1].version, changes[-1].value)
    edits = Counter(
        re.findall(r"Turn \d+$|Also \w+-\d+$", change.action.rstrip('"'))[0]
        for change in changes[1:]
    )
    texts = Counter(passage.text for passage in passages)
    assert {*edits.values(), *texts.values()} <= {1}
    for name, number, outcome in (report.split() for report in told if report != "ready"):
        assert outcome == "returned"
        if name == "archival_memory_insert":
            assert f"Passage {number} tells of day {number}." in texts
        else:
            assert (
                f"Turn {number}"
                if name == "core_memory_rewrite"
                else f"Also {int(number):x}-{number}"
            ) in edits
    assert total == len(passages)
    async with open_store(root / ".knapper" / "state.db", clock=Clock()) as store:
        assert await store.check() is None
        return len(await store.history("main", kinds=(SUMMARY,)))


async def kill_again_and_again(root: Path, times: int, seed: int) -> int:
    chance, told = random.Random(seed), list[str]()
    with scripted([Repeat(remembering)]) as model:
        for number in range(times):
            worker = Worker(remember, f"{root}|{model.base_url}|{number * 100 + 1}")
            told += kill_at_work(worker, chance.uniform(0, 0.6))
        assert model.refusals == [] == model.errors
    return await check(root, told)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_what_was_remembered_is_whole_after_three_hundred_kills(tmp_path: Path) -> None:
    assert await kill_again_and_again(tmp_path, times=300, seed=17) > 10

"""A library that is tended is whole after `kill -9` at any instant, and what was done is undone."""

import os
import random
from contextlib import AsyncExitStack
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from agent_core.workspace.workspace import Workspace
from tests.crash.tending_work import tend
from tests.functions.test_tending import with_copies
from tests.kit import Script, scripted
from tests.kit.crash import Worker, kill_at_work
from tests.kit.desk import Desk, desk


async def whole_after(root: Path) -> tuple[bool, dict[str, str]]:
    """Return whether the copy is gone, and the sources after what was done is undone."""
    flags = {"model.base_url": "http://127.0.0.1:9/v1"}
    async with Workspace.open(root, flags=flags) as workspace:
        workshop = workspace.workshop
        assert not workshop.rejected()
        names = set(workshop.names())
        assert {"count_vowels", "vowels_twice"} <= names
        assert (await workshop.call("vowels_twice", {"text": "queue"})).value == 8
        done = [row for row in await workspace._store.tended() if not row.undone]
        assert ("vowel_count" in names) == ("deleted" not in {row.kind for row in done})
        assert all(step.undone for step in await workshop.tending.undo())
        return "vowel_count" not in names, {name: workshop.plans.source(name) for name in workshop.names()}


@pytest.mark.timeout(180)
async def test_a_library_is_whole_after_tending_was_killed_at_any_instant(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir()
    async with AsyncExitStack() as stack:

        async def open_desk(script: Script, **settings: Any) -> Desk:
            model = stack.enter_context(scripted(script))
            return await stack.enter_async_context(desk(kept, model, **settings))

        made = await with_copies(open_desk)
        before = {name: made.workspace.workshop.plans.source(name) for name in made.workspace.workshop.names()}
    chance, ends = random.Random(os.getpid()), list[bool]()
    for number in range(5):
        root = copytree(kept, tmp_path / f"killed{number}", symlinks=True)
        if number < 4:
            kill_at_work(Worker(tend, str(root)), chance.uniform(0, 4))
        else:
            Worker(tend, str(root)).reports()
        is_gone, after = await whole_after(root)
        ends.append(is_gone)
        assert after == before
    assert ends[-1], "a run that is not killed merges the two"

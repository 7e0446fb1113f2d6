"""Shared by the tests of these commands: a workspace with an agent that has a history and memory."""

import json
from pathlib import Path
from typing import Any

from agent_core.base.clock import Clock
from agent_core.storage import (
    BlockRow,
    PassageRow,
    SaveBlock,
    SavePassages,
    open_store,
    prepare_state_dir,
)
from tests.kit.program import knapper
from tests.storage.support import say


async def remembering(root: Path, agent: str = "main") -> Path:
    """Return the folder; its agent has a turn, a block that was changed once, and a passage."""
    async with open_store(prepare_state_dir(root) / "state.db", clock=Clock()) as store:
        await say(store, "the code word is heron", agent=agent)
        for version, value in enumerate(("Name: Ada", "Name: Ada Lovelace"), 1):
            row = BlockRow("block-1", "human", value, 100, version=version)
            await store.apply(
                [SaveBlock(row, agent, "begun" if version == 1 else "core_memory_replace")]
            )
        await store.apply(
            [
                SavePassages(
                    (PassageRow("p-1", agent, "Herons fish at dusk.", "herons fish dusk", 1.0),)
                )
            ]
        )
    return root


def run(cwd: Path, *words: str, code: int = 0, given: str = "") -> Any:
    """Return a command's JSON output."""
    done = knapper(*words, "--json", cwd=cwd, given=given)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)

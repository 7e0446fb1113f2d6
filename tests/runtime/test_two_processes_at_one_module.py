"""Two processes at one workspace: the one whose function was admitted has it, and the other learns why not."""

import asyncio
import json
from pathlib import Path

from agent_core.registry.function import CACHE_FORMAT
from agent_core.registry.source import hash_of
from agent_core.storage import STATE, BeginWrite, SaveReading, only_writer
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from tests.kit.desk import VOWELS, another


async def test_what_another_process_writes_is_its_to_finish(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace:
        file = tmp_path / "functions/letters.py"
        async with only_writer(tmp_path / STATE):
            file.write_text(VOWELS)
            saving = asyncio.create_task(workspace.functions.saved([file]))
            making = asyncio.create_task(
                workspace.functions.create("count_more", another("count_more"), "more")
            )
            await asyncio.wait({saving, making}, timeout=1)
            assert (saving.done(), list((tmp_path / "functions").glob("*.py"))) == (False, [file])
        await saving
        assert (await making).admitted
        assert sorted(workspace.functions.names()) == ["count_more", "count_vowels"]


async def test_state_that_others_wrote_does_not_keep_it_shut(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/letters.py").write_text(VOWELS)
    version = hash_of(VOWELS)
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace:
        broken = json.dumps({"format": CACHE_FORMAT, "version": version, "functions": [[1]]})
        wrong = SaveReading("functions/letters.py", (0, 0, 0), version, broken)
        await workspace._store.apply([BeginWrite("../outside.py", version, VOWELS, None), wrong])
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace:
        assert list(workspace.functions.names()) == ["count_vowels"]

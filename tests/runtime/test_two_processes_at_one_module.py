"""Two processes at one workspace: the one whose function was admitted has it, and the other learns why not."""

import asyncio
import json
from pathlib import Path

from agent_core.functions.service.change_executor import only_writer
from agent_core.registry.function import CACHE_FORMAT
from agent_core.registry.source import hash_of
from agent_core.storage import STATE, BeginWrite, SaveReading
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from tests.kit.desk import VOWELS, another


async def test_functions_that_are_made_at_once_are_there_or_refused(tmp_path: Path, one_sandbox: Sandbox) -> None:
    async with (
        Workspace.open(tmp_path, sandbox=one_sandbox) as one,
        Workspace.open(tmp_path, sandbox=one_sandbox) as other,
    ):
        shops = [one.functions, other.functions] * 2
        made = await asyncio.gather(
            *(shop.create(f"f{n}", another(f"f{n}"), "letters") for n, shop in enumerate(shops))
        )
    joined = [verdict.name for verdict in made if verdict.admitted]
    text = (tmp_path / "functions/letters.py").read_text()
    assert joined
    assert [f"f{n}" for n in range(4) if f"def f{n}(" in text] == sorted(joined)
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as after:
        assert list(after.functions.names()) == sorted(joined)


async def test_what_another_process_has_written_halfway_is_its_to_finish_and_a_change_waits_for_it(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace:
        file = tmp_path / "functions/letters.py"
        async with only_writer(tmp_path / STATE):
            file.write_text(VOWELS)
            saving = asyncio.create_task(workspace.functions.saved([file]))
            making = asyncio.create_task(workspace.functions.create("count_more", another("count_more"), "more"))
            await asyncio.wait({saving, making}, timeout=1)
            assert (saving.done(), list((tmp_path / "functions").glob("*.py"))) == (False, [file])
        await saving
        assert (await making).admitted
        assert sorted(workspace.functions.names()) == ["count_more", "count_vowels"]


async def test_state_that_this_program_did_not_write_does_not_keep_it_shut(
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

"""Several hands at one module: each change is planned anew on what the others made, and none is lost."""

import asyncio
import sys
from pathlib import Path

import pytest

from agent_core.assemble import Workspace
from tests.kit.desk import VOWELS

_CREATE = ("-m", "agent_core", "functions", "create", "--module", "letters", "--file", "-")


def named(name: str) -> str:
    """The example function under another name."""
    return VOWELS.replace("count_vowels", name)


async def created(root: Path, name: str) -> tuple[int, str]:
    """`toolwright functions create` in a process of its own: its exit code and what it said."""
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    process = await asyncio.create_subprocess_exec(sys.executable, *_CREATE, "-C", str(root), name, **pipes)
    said, _ = await process.communicate(named(name).encode())
    return process.returncode or 0, said.decode()


@pytest.mark.timeout(120)
async def test_ten_processes_that_create_at_once_on_one_module_all_succeed(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    done = await asyncio.gather(*(created(tmp_path, f"f{n}") for n in range(10)))
    assert [code for code, _ in done] == [0] * 10, done
    async with Workspace.open(tmp_path) as workspace:
        assert list(workspace.workshop.names()) == sorted(f"f{n}" for n in range(10))
        rows = await workspace._store.open_writes()
    assert rows == []

"""Several hands at one module: each change is planned anew on what the others made, and none is lost."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from agent_core.assemble import Workspace
from tests.workshop.support import named

_CREATE = ("-m", "agent_core", "functions", "create", "--module", "letters", "--file", "-")


async def created(root: Path, name: str) -> tuple[int, str]:
    """`toolwright functions create` in a process of its own: its exit code and what it said."""
    arguments = (sys.executable, *_CREATE, "-C", str(root), name)
    process = await asyncio.create_subprocess_exec(*arguments, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
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

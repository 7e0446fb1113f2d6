"""Several authors at one module: each change is replanned on top of the others, and none is lost."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import change_executor
from agent_core.storage import STATE
from tests.functions.support import Room, named, room
from tests.kit.desk import VOWELS
from tests.kit.program import knapper

pytestmark = pytest.mark.asyncio(loop_scope="module")


def created(root: Path, name: str) -> tuple[int, str]:
    """Run `knapper functions create` in a subprocess; return its exit code and output."""
    words = ("functions", "create", "--module", "letters", "--file", "-", name)
    done = knapper(*words, cwd=root, given=named(name))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(120)
async def test_ten_processes_that_create_at_once_on_one_module_all_succeed(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    with ThreadPoolExecutor(10) as at_once:
        starts = (asyncio.wrap_future(at_once.submit(created, tmp_path, f"f{n}")) for n in range(10))
        done = await asyncio.gather(*starts)
    assert [code for code, _ in done] == [0] * 10, done
    async with room(tmp_path, sandbox) as after:
        assert list(after.shop.names()) == sorted(f"f{n}" for n in range(10))
        assert await after.store.open_writes() == []


async def test_a_change_waits_for_whoever_is_writing_and_is_then_made(here: Room) -> None:
    async with change_executor.only_writer(here.root / STATE):
        making = asyncio.create_task(here.shop.create("count_vowels", VOWELS, "letters"))
        await asyncio.wait([making], timeout=1)
        assert (making.done(), here.leftovers()) == (False, [])
    assert (await making).admitted


async def test_a_change_that_waited_too_long_is_refused_and_nothing_is_written(
    here: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_executor, "_PATIENCE_S", 0.05)
    async with change_executor.only_writer(here.root / STATE):
        verdict = await here.shop.create("count_vowels", VOWELS, "letters")
    assert (verdict.admitted, verdict.problems[-1].code) == (False, "no-turn")
    assert (here.leftovers(), here.shop.names()) == ([], [])

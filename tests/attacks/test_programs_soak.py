"""Hostile and broken programs through `functions call`: each is answered, and nothing of them remains."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_core.base.errors import KnapperError
from agent_core.workspace.workspace import Workspace
from tests.attacks.outside import zygotes_of
from tests.attacks.programs import module, program

RUN = '''\
"""Whatever is drawn."""


def run(program: str) -> object:
    """Run a program, and give what it leaves in `result`.

    Args:
        program: The text.
    """
    around: dict[str, object] = {"result": None}
    exec(program, around)
    return around["result"]
'''
FLAGS = {"sandbox.wall_s": 1.0, "standing.quarantine_failures": 0}
WORDS = {"returned", "raised", "timed_out", "killed", "refused"}


@pytest.mark.timeout(280)
async def test_forty_programs_are_answered_and_leave_nothing(tmp_path: Path) -> None:
    await soak(tmp_path, 40, files=8, warm=30)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_ten_thousand_programs_are_answered_and_leave_nothing(tmp_path: Path) -> None:
    await soak(tmp_path, 10_000, files=200, warm=100)


async def soak(root: Path, count: int, *, files: int, warm: int) -> None:
    """Run them, four at once, and compare this process before and after."""
    folder = root / "functions"
    folder.mkdir()
    (folder / "programs.py").write_text(RUN)
    for seed in range(files):
        (folder / f"made_{seed}.py").write_bytes(module(seed))
    open_before, zygotes = _descriptors(), zygotes_of(os.getpid())
    async with Workspace.open(root, flags=FLAGS) as workspace:
        await _all(workspace, range(-warm, 0))
        await _all_files(workspace, files)
        before, standing = _memory(), await _settled()
        words = await _all(workspace, range(count - files))
        words += await _all_files(workspace, files)
        after = _memory()
        print(count, "programs:", dict(words), f"memory {before >> 10} → {after >> 10} KiB")
        assert sum(words.values()) == count, words
        assert words.keys() <= WORDS | {"no function"}, words
        assert after < before * 1.1
        assert await _settled() <= standing + 2
        assert (await workspace.functions.call("run", {"program": "result = 42"})).value == 42
    assert not _descriptors() - open_before  # one that an earlier test left may close meanwhile
    assert not zygotes_of(os.getpid()) - zygotes
    assert set(os.listdir(root)) <= {"functions", ".knapper"}  # noqa: PTH208


async def _all(workspace: Workspace, seeds: Iterable[int]) -> Counter[str]:
    waiting = iter(seeds)
    words: Counter[str] = Counter()

    async def work() -> None:
        for seed in waiting:
            words[await _answer(workspace, "run", {"program": program(seed)})] += 1

    await asyncio.gather(*(work() for _worker in range(4)))
    return words


async def _all_files(workspace: Workspace, count: int) -> Counter[str]:
    return Counter([await _answer(workspace, f"made_{seed}", {}) for seed in range(count)])


async def _answer(workspace: Workspace, name: str, arguments: dict[str, str]) -> str:
    try:
        word: str = (await workspace.functions.call(name, arguments)).outcome
    except KnapperError:
        return "no function"
    return word


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def _settled() -> int:
    """Return the number of descriptors once the spare workers are ready: each has four."""
    seen: list[int] = []
    while seen[-5:] != [len(_descriptors())] * 5:
        seen.append(len(_descriptors()))
        await asyncio.sleep(0.1)
    return seen[-1]


def _descriptors() -> set[tuple[str, str]]:
    """Return the open descriptors of this process, each with what it is open on."""
    found = set[tuple[str, str]]()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            found.add((link.name, str(link.readlink())))
    return found

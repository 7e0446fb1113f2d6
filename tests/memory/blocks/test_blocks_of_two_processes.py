"""Two processes, two agents, one shared block: every edit is in the history and in the block."""

import asyncio
import sys
from pathlib import Path

import pytest

from agent_core.memory.classes import Block, Memory
from tests.memory.blocks.conftest import HUMAN, OpenBlocks


async def _run(path: Path, agent: str, count: int) -> int:
    arguments = ["-m", "tests.memory.blocks.writer", str(path), agent, str(count)]
    return await (await asyncio.create_subprocess_exec(sys.executable, *arguments)).wait()


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(40, id="forty-each", marks=pytest.mark.slow),
        pytest.param(
            1000, id="a-thousand-each", marks=[pytest.mark.slow, pytest.mark.timeout(600)]
        ),
    ],
)
async def test_no_edit_of_two_processes_is_lost(
    blocks_of: OpenBlocks, tmp_path: Path, count: int
) -> None:
    shared = Memory(blocks=[Block(label="log", value=[], shared=True, limit=1_000_000)])
    one, other = await blocks_of("a", shared), await blocks_of("b", Memory())
    await other.commit(await other.attach("log", HUMAN))
    codes = await asyncio.gather(
        *(_run(tmp_path / "state.db", agent, count) for agent in ("a", "b"))
    )
    assert codes == [0, 0]
    _, *changes = await one.history("log")
    assert [change.version for change in changes] == [*range(2, 2 * count + 2)]
    assert {agent: sum(change.agent == agent for change in changes) for agent in ("a", "b")} == {
        "a": count,
        "b": count,
    }
    wanted = {f"{agent} was here for the {n}. time" for agent in ("a", "b") for n in range(count)}
    assert sorted((await blocks_of("a", Memory())).memory.log.lines) == sorted(wanted)

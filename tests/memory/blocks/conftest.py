"""A store in a temporary folder, and agents with blocks in it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_core.base.clock import Clock
from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import ChatMemory, Memory
from agent_core.storage import Store, open_store

OpenBlocks: TypeAlias = Callable[..., Awaitable[Blocks]]


@dataclass(frozen=True)
class By:
    """The author of edits."""

    by: str = "agent"
    agent: str = "a"
    turn: str = "t1"


HUMAN = By("human", "", "")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = open_store(tmp_path / "state.db", clock=Clock())
    yield store
    await store.close()


@pytest.fixture
async def blocks_of(store: Store) -> OpenBlocks:
    async def blocks_of(agent: str = "a", memory: Memory | None = None) -> Blocks:
        blocks = Blocks(store, agent, memory or ChatMemory(), Clock())
        await blocks.load()
        return blocks

    return blocks_of


async def edit(blocks: Blocks, function: str, **arguments: str) -> str:
    """Call a function as the dispatcher does, outside of a turn, and return the result."""
    return (await blocks.commit(await blocks.call(function, arguments, By()))).text

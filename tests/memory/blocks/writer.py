"""A process with an agent that adds lines to a shared block: `python -m tests.memory.blocks.writer PATH a 1000`."""

import asyncio
import sys
from pathlib import Path

from agent_core.base.clock import Clock
from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import Memory
from agent_core.storage import open_store
from tests.memory.blocks.conftest import By


async def write(path: Path, agent: str, count: int) -> None:
    """Make this many edits; each must succeed."""
    store = open_store(path, clock=Clock())
    blocks = Blocks(store, agent, Memory(), Clock())
    await blocks.load()
    for n in range(count):
        arguments = {"name": "log", "content": f"{agent} was here for the {n}. time"}
        edit = await blocks.commit(
            await blocks.call("core_memory_append", arguments, By(agent=agent))
        )
        assert edit.outcome == "returned", edit.text
    await store.close()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))

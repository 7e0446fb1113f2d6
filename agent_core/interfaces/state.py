"""What is on disk of a workspace, opened for one command: no function is read, no agent is started. Heavy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent_core.assemble import Workspace
from agent_core.clock import Clock
from agent_core.portable import Known, Moves, reader_of_files
from agent_core.presets import presets
from agent_core.settings import load
from agent_core.storage import AgentLock, SqliteStore, lock_agent, open_store, prepare_state_dir
from agent_core.storage.sqlite_whole import SqliteWholes

from .scene import Scene

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class State:
    """The store of a workspace, and what moves agents in it."""

    store: SqliteStore
    moves: Moves
    folder: Path
    agent: str
    """The agent that is meant where none is named."""

    def alone(self, agent: str) -> AgentLock:
        """The right to change an agent whole.

        Raises:
            AgentBusy: a process runs it.
        """
        return lock_agent(self.folder, agent)


@asynccontextmanager
async def opened_state(root: Path) -> AsyncIterator[State]:
    """The state of a workspace.

    Raises:
        NoWorkspace: there is none: a command that looks makes nothing.
    """
    root = Workspace.find(root)
    folder = prepare_state_dir(root)
    store = open_store(folder / "state.db", clock=Clock())
    try:
        settings = load(root)
        known = Known({name for name, _ in presets(root)}, {"chat", settings.memory.class_name})
        async with reader_of_files() as reader:
            yield State(store, Moves(store, SqliteWholes(store), reader, known), folder, settings.agent)
    finally:
        await store.close()


def with_state(scene: Scene, use: Callable[[State], Awaitable[T]]) -> T:
    """Open the state of the scene's workspace, and use it."""

    async def opened() -> T:
        async with opened_state(scene.root) as state:
            if state.store.recovered:
                scene.talk(state.store.recovered)
            return await use(state)

    return asyncio.run(opened())

"""The state of a workspace on disk, opened without loading functions or agents. Slow to import."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base.settings import load
from agent_core.storage import Store, prepare_state_dir
from agent_core.workspace.portable import Moves, opened_moves
from agent_core.workspace.scaffold import existing
from agent_core.workspace.state_store import open_state

if TYPE_CHECKING:  # slow to import
    from agent_core.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """The store of a workspace, and the operations that move agents in and out of it."""

    store: Store
    moves: Moves
    root: Path
    folder: Path
    agent: str
    """The default agent, used where none is named."""

    def alone(self, agent: str) -> AbstractAsyncContextManager[None]:
        """Hold an agent exclusively while the block runs.

        Raises:
            AgentBusy: a process is running the agent.
        """
        return self.store.hold(self.folder, agent)


@asynccontextmanager
async def state_of(workspace: "Workspace") -> AsyncIterator[WorkspaceState]:
    """Provide the state of an open workspace over its existing connection."""
    root, settings = workspace.root, workspace.settings
    async with opened_moves(workspace.store, root, settings) as moves:
        yield WorkspaceState(workspace.store, moves, root, prepare_state_dir(root), settings.agent)


@asynccontextmanager
async def opened_state(root: Path) -> AsyncIterator[WorkspaceState]:
    """Open the state of a workspace.

    Raises:
        NoWorkspace: there is no workspace; commands that only read do not create one.
    """
    root = existing(root)
    folder, settings = prepare_state_dir(root), load(root)
    store = open_state(root, settings)
    try:
        async with opened_moves(store, root, settings) as moves:
            yield WorkspaceState(store, moves, root, folder, settings.agent)
    finally:
        await store.close()

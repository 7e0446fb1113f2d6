"""What the operations of a server work with: an open workspace, its state, and its agents at work."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from agent_core.storage import CallOwners
from agent_core.workspace.workspace import Workspace

from ..faults import keep_traceback
from ..state import WorkspaceState, state_of
from .agent_host import AgentHost
from .failures import NotThere
from .identity import CONVERSATION, Identity


@dataclass(frozen=True, slots=True)
class Rooms:
    """What the handlers work with."""

    workspace: Workspace
    state: WorkspaceState
    host: AgentHost
    crash: Callable[[BaseException], str]
    """Keeps a traceback, and returns a sentence that says where."""

    async def shows(self, agent: str, identity: Identity) -> bool:
        """Return whether an agent exists for a token: with an agent, the conversations that belong to it do.

        A group does if each of its members does, too: who talks to it talks to them.
        """
        if identity.sees(agent):
            group = self.workspace.groups.read().get(agent) if identity.agents else None
            return group is None or all(map(identity.sees, group.members))
        if not any(agent.startswith(f"{name}{CONVERSATION}") for name in identity.agents):
            return False
        owner = str((await self.state.store.agent_settings(agent) or {}).get("chat_of") or "")
        return agent.startswith(f"{owner}{CONVERSATION}") and await self.shows(owner, identity)

    async def shown(self, agents: Iterable[str], identity: Identity) -> list[str]:
        """Return which of these agents exist for a token."""
        return [name for name in agents if await self.shows(name, identity)]

    async def known(self, agent: str, identity: Identity) -> str:
        """Return the name of an agent that exists for a token.

        Raises:
            NotThere: there is none, or not for this token.
        """
        is_there = self.host.is_open(agent) or await self.workspace.can_be_talked_to(agent)
        if is_there and await self.shows(agent, identity):
            return agent
        raise NotThere(f"There is no agent `{agent[:80]}`.", fix="The list of agents has the names.")

    async def owners(self, identity: Identity) -> CallOwners:
        """Return the agents whose calls a token may read; None if it may read all."""
        if not identity.agents:
            return None
        return frozenset(await self.shown(await self.state.store.agent_names(), identity))


@asynccontextmanager
async def opened_rooms(workspace: Workspace, grace_s: float) -> AsyncIterator[Rooms]:
    """Let the agents of an open workspace go on with what waits for them; at the end, turns have a grace."""
    crash = partial(keep_traceback, root=workspace.root)
    async with state_of(workspace) as state:
        host = AgentHost(workspace, crash)
        async with host.at_work(grace_s):
            yield Rooms(workspace, state, host, crash)

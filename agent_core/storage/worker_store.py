"""The processes at a store: which one runs which agent, and how they notify each other of work."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

Hear: TypeAlias = Callable[[str], None]
"""A listener for topics that may have news: WORK, FUNCTIONS, or "" for any; or LOST."""

WORK, FUNCTIONS = "work", "functions"
LOST = "lost"
"""Another process took over an agent that this one held, because this process seemed dead."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A process that uses a shared store: `silent_s` is the time since its last heartbeat in seconds.

    `version` is that of its program, and `skew_s` is how far the store's clock was ahead of its own when it connected;
    less than half a second counts as 0.
    """

    id: str
    name: str
    slots: int
    silent_s: float
    is_alive: bool
    agents: tuple[str, ...]
    version: str = ""
    skew_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a shared store: its engine, the number of its last migration, and how long an answer took."""

    engine: str
    schema: int
    answer_ms: float


class WorkerStore(Protocol):
    """The processes at one store."""

    @property
    def is_shared(self) -> bool:
        """True if processes in several folders, on several machines, may use it."""

    @property
    def owner(self) -> str:
        """The name of this process, which is stored in the turns that it claims."""

    @property
    def leases_taken(self) -> int:
        """The number of agents that this process took from processes without recent heartbeats."""

    def hold(self, folder: Path, agent: str) -> AbstractAsyncContextManager[None]:
        """Hold the right to run an agent during the block; `folder` is the state folder of the workspace.

        Raises:
            AgentBusy: another process has it; the message names the process.
            UsageError: the name is not valid for an agent.
            WorkspaceError: the lock cannot be created.
        """

    async def lend(self, agent: str) -> None:
        """Allow other processes to take an agent that this one holds, until `take_back`; a lock in a folder is kept."""

    async def take_back(self, agent: str) -> bool:
        """Hold a lent agent again; return False if another process has it, or changed it meanwhile."""

    def heard(self, hear: Hear, *, to_run: bool = False) -> AbstractAsyncContextManager[None]:
        """Call `hear` in this loop when other processes wrote something, during the block. Calls may be lost.

        With `to_run`, `hear` is not called for work for which another process was woken.
        """

    async def offer_slots(self, slots: int) -> None:
        """Record how many agents' turns this process runs at once."""

    async def workers(self) -> list[WorkerRow]:
        """Return the processes at a shared store, the one with the latest heartbeat first."""

    async def health(self) -> Health | None:
        """Return the state of a shared store; None if the store is a file."""

    async def functions_number(self) -> int:
        """Return a number that increases with each change of a function."""

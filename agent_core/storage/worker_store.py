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
"""Another process took over an agent that this one held, because it seemed dead."""


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
        """The name of this process, as the turns that it claims have it."""

    @property
    def leases_taken(self) -> int:
        """How many agents this process has taken from others that were not heard of any more."""

    def hold(self, folder: Path, agent: str) -> AbstractAsyncContextManager[None]:
        """Keep the right to run an agent while the block runs; `folder` is the state folder of the workspace.

        Raises:
            AgentBusy: another process has it; the message names the process.
            UsageError: the name cannot be an agent's.
            WorkspaceError: a lock cannot be made.
        """

    async def lend(self, agent: str) -> None:
        """Let other processes have an agent that is held here, until it is taken back; a lock in a folder stays."""

    async def take_back(self, agent: str) -> bool:
        """Hold an agent again that was lent; False: what was read of it is out of date, or another process has it."""

    def heard(self, hear: Hear, *, to_run: bool = False) -> AbstractAsyncContextManager[None]:
        """Call `hear` in this loop when other processes wrote something, while the block runs. Calls may be lost.

        Who hears it only `to_run` turns is not told of work for which another process was woken.
        """

    async def offer_slots(self, slots: int) -> None:
        """Say that this process runs the turns of so many agents at once."""

    async def workers(self) -> list[WorkerRow]:
        """Return the processes at a shared store, those that were heard last first."""

    async def health(self) -> Health | None:
        """Ask a shared store how it is; None: it is a file."""

    async def functions_number(self) -> int:
        """Return a number that rises with each change of a function."""

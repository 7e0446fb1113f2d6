"""The store as its users see it: the combined subjects, and the only way to open it.

Each method is one transaction, and its result is on disk. Ids are UUIDv7; order is a number that the store assigns.
Code that needs one subject takes only its protocol. To add a database, implement the protocols and add a scheme here;
the contract tests in `tests/storage/` run against any store.
"""

from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import add_extra

from .agent_store import AgentStore
from .approval_store import ApprovalStore
from .call_store import KEEP_CALLS, CallStore
from .forget_store import ForgetStore
from .function_store import FunctionStore
from .memory_store import MemoryStore
from .sqlite import SqliteStore
from .subject import StoreClock
from .thread_store import ThreadStore
from .token_store import TokenStore
from .turn_store import TurnStore
from .worker_store import WorkerStore


class Store(
    TurnStore,
    ThreadStore,
    FunctionStore,
    CallStore,
    ApprovalStore,
    MemoryStore,
    AgentStore,
    ForgetStore,
    TokenStore,
    WorkerStore,
    AbstractAsyncContextManager["Store"],
    Protocol,
):
    """All state that outlives the process."""

    @property
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be set aside."""

    @property
    def place(self) -> str:
        """The address of the store, without a password."""

    async def claim(self, workspace: str) -> None:
        """Give the store to another workspace, whose functions folder is authoritative from now on."""

    async def join(self, workspace: str) -> None:
        """Let another workspace use the store too: its folder becomes a copy of the functions in the store."""

    async def vacuum(self) -> None:
        """Free the space of deleted data. Other users wait meanwhile."""

    async def check(self) -> str | None:
        """Read the whole store and return a description of a problem, or None."""

    async def close(self) -> None:
        """Finish running work and close the store. A second call does nothing."""


def open_store(url: str | Path, *, clock: StoreClock, keep_calls: int = KEEP_CALLS, workspace: str = "") -> Store:
    """Open the store at this address, a new one if there is none.

    The address is `sqlite:///PATH`, the path of its file alone, or `postgresql://USER@HOST/DATABASE` in libpq's format.
    `keep_calls` calls per function are kept individually. A database belongs to the first `workspace` id that opens it.

    Raises:
        StorageError: the scheme is unknown, the store cannot be opened, or a newer program created it.
    """
    scheme, separator, place = ("", "", "") if isinstance(url, Path) else url.partition("://")
    if not separator:
        return SqliteStore.open(Path(url), clock, keep_calls)
    if scheme in ("postgresql", "postgres"):
        if find_spec("psycopg") is None:
            message = "A store in PostgreSQL needs the package psycopg, which is not installed."
            raise StorageError(message, fix=f"Type: {add_extra('postgres')}")
        from .postgres import PostgresStore  # noqa: PLC0415 an extra

        return PostgresStore.open(str(url), clock, keep_calls, workspace)
    if scheme != "sqlite" or not place.startswith("/") or place == "/":
        fix = "Use sqlite:///PATH, or the path of a file, or postgresql://USER@HOST/DATABASE."
        raise StorageError(f"No store can be opened at `{url}`.", fix=fix)
    return SqliteStore.open(Path(place[1:]), clock, keep_calls)

"""`Wholes` on SQLite: complete agents, on the thread and connection of a store."""

from . import moving
from .sqlite import SqliteStore
from .whole import Moved, WholeAgent


class SqliteWholes:
    """The complete agents of one store."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def names(self) -> list[str]:
        """Return the names of all agents that have stored data."""
        return await self._store._read(moving.names)

    async def read(self, agent: str) -> WholeAgent | None:
        """Return all stored data of an agent."""
        return await self._store._read(moving.read, agent)

    async def write(self, whole: WholeAgent, *, share: bool = False, drop: bool = False) -> Moved:
        """Insert an agent."""
        return await self._store._write(moving.write, whole, share, drop)
